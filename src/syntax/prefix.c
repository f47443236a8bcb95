/* What stands before a declaration: attributes, modifiers, __generic. */
#include "syntax/parser.h"

/* ---- attributes */

/* name, or space::name */
static Name attribute_name(Parser *p) {
    if (!parser_at(p, TOKEN_name)) {
        parser_expected(p, "the name of an attribute");
        return NULL;
    }
    Name name = p->token->name;
    parser_advance(p);
    while (!p->panic && parser_take(p, TOKEN_scope)) {
        if (!parser_at(p, TOKEN_name)) {
            parser_expected(p, "the name of an attribute after '::'");
            return NULL;
        }
        name = name_from(p->syntax->names, format_text(p->arena, "%s::%s", name->text, p->token->name->text));
        parser_advance(p);
    }
    return name;
}

static void attribute_list(Parser *p, AttributeVec *out) {
    do {
        if (parser_at(p, TOKEN_bracket_close)) return;
        Attribute *attribute = arena_new(p->arena, Attribute);
        attribute->loc = p->token->loc;
        attribute->name = attribute_name(p);
        if (!attribute->name) return;
        if (parser_at(p, TOKEN_paren_open)) attribute->args = parse_arguments(p);
        vec_push(p->arena, out, attribute);
    } while (!p->panic && parser_take(p, TOKEN_comma));
}

void parse_attributes(Parser *p, AttributeVec *out) {
    while (!p->panic && parser_at(p, TOKEN_bracket_open)) {
        int open = parser_open_bracket(p, TOKEN_bracket_open, "'['"), inner = -1;
        if (parser_at(p, TOKEN_bracket_open)) inner = parser_open_bracket(p, TOKEN_bracket_open, "'['");
        attribute_list(p, out);
        parser_close_bracket(p, inner);
        parser_close_bracket(p, open);
    }
}

/* __glsl_extension(name): the same without brackets. */
static bool clause_without_brackets(Parser *p, AttributeVec *out) {
    switch (token_word(p->token)) {
    case KEYWORD_cuda_sm_version:
    case KEYWORD_glsl_extension:
    case KEYWORD_glsl_version:
    case KEYWORD_specialized_for_target:
    case KEYWORD_spirv_version:
    case KEYWORD_target_intrinsic:
    case KEYWORD_wgsl_extension: break;
    default: return false;
    }
    Attribute *attribute = arena_new(p->arena, Attribute);
    attribute->loc = p->token->loc;
    attribute->name = p->token->name;
    parser_advance(p);
    if (parser_at(p, TOKEN_paren_open)) attribute->args = parse_arguments(p);
    vec_push(p->arena, out, attribute);
    return true;
}

/* ---- layout(...) */

/* local_size_x = 64: for the entry points that follow. */
static void set_group_size(Parser *p, const char *word, Expr *value) {
    bool known = strncmp(word, "local_size_", 11) == 0 && word[11] >= 'x' && word[11] <= 'z' && !word[12];
    if (!value || !known) return;
    while (p->group_size.count < 3) {
        Expr *one = expr_new(p->arena, EXPR_int, value->loc);
        one->number = 1;
        vec_push(p->arena, &p->group_size, one);
    }
    p->group_size.at[word[11] - 'x'] = value;
}

/* constant_id = 3: the constant that follows can be set before the program is compiled. */
static void note_constant(Parser *p, Name word, Loc loc, AttributeVec *out) {
    if (strcmp(word->text, "constant_id") != 0) return;
    Attribute *attribute = arena_new(p->arena, Attribute);
    attribute->loc = loc;
    attribute->name = name_from(p->syntax->names, "vk::constant_id");
    vec_push(p->arena, out, attribute);
}

/* layout(binding = 0, set = 1): things are bound by their names here, so nothing but constants and the size
 * of groups has a meaning. What lays out the inputs of a stage, `layout(...) in;`, declares nothing. */
static bool take_layout(Parser *p, AttributeVec *out) {
    if (!parser_at_word(p, KEYWORD_layout) || parser_peek(p, 1)->kind != TOKEN_paren_open) return false;
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    do {
        Loc loc = p->token->loc;
        Name word = parser_expect_member_name(p, "the name of a layout qualifier");
        if (!word) break;
        note_constant(p, word, loc, out);
        set_group_size(p, word->text, parser_take(p, TOKEN_equal) ? parse_condition(p) : NULL);
    } while (!p->panic && parser_take(p, TOKEN_comma));
    parser_close_bracket(p, open);
    bool alone =
        parser_at_word(p, KEYWORD_in) || parser_at_word(p, KEYWORD_out) || parser_at_word(p, KEYWORD_uniform);
    if (!p->panic && alone && parser_peek(p, 1)->kind == TOKEN_semicolon) parser_advance(p);
    return true;
}

/* extern "C": every function is called as in C. */
static bool take_linkage(Parser *p) {
    if (!parser_at_word(p, KEYWORD_extern) || parser_peek(p, 1)->kind != TOKEN_string) return false;
    parser_advance(p);
    parser_advance(p);
    return true;
}

/* ---- modifiers */

/* The number in __implicit_conversion(80). */
static int64_t conversion_cost(Parser *p) {
    int64_t cost = 0;
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' after '__implicit_conversion'");
    if (parser_at(p, TOKEN_int)) {
        cost = (int64_t)p->token->number;
        parser_advance(p);
    } else parser_expected(p, "a number");
    parser_close_bracket(p, open);
    return cost;
}

/* `[Differentiable] float f`, `[numthreads(1, 1, 1)]`, not the index of a variable that is called like a
 * modifier. */
static bool at_attribute(const Parser *p, int ahead) {
    if (parser_peek(p, ahead)->kind != TOKEN_bracket_open || parser_peek(p, ahead + 1)->kind != TOKEN_name)
        return false;
    TokenKind after = (TokenKind)parser_peek(p, ahead + 2)->kind,
              behind = (TokenKind)parser_peek(p, ahead + 3)->kind;
    return after == TOKEN_paren_open || after == TOKEN_comma || after == TOKEN_scope ||
           (after == TOKEN_bracket_close &&
            (behind == TOKEN_name || behind == TOKEN_bracket_open || scan_is_tuple_of(p, p->at + ahead + 3)));
}

/* `point Vertex v`, not `point v;`, where the word is a type that another module may have declared. */
static bool before_declaration(const Parser *p) {
    TokenKind after = (TokenKind)parser_peek(p, 2)->kind;
    return after != TOKEN_semicolon && after != TOKEN_equal && after != TOKEN_comma &&
           after != TOKEN_paren_close;
}

/* Contextual words are modifiers only in front of something that goes on. */
static uint32_t modifier_here(const Parser *p) {
    uint32_t bits = keyword_modifiers(token_word(p->token));
    if (!bits || !token_is_identifier(p->token)) return bits;
    const Token *next = parser_peek(p, 1);
    bool goes_on = (next->kind == TOKEN_name || at_attribute(p, 1) || scan_is_tuple_of(p, p->at + 1)) &&
                   !map_has(&p->file->types, PTR_KEY(p->token->name)) &&
                   (bits != MODIFIER_idle || before_declaration(p));
    return goes_on ? bits : 0;
}

void parse_prefix(Parser *p, Prefix *prefix) {
    prefix->loc = p->token->loc;
    while (!p->panic) {
        uint32_t bits = modifier_here(p);
        if (bits) {
            parser_advance(p);
            prefix->modifiers |= bits;
            if (bits & MODIFIER_implicit) prefix->number = conversion_cost(p);
        } else if (parser_at(p, TOKEN_bracket_open)) parse_attributes(p, &prefix->attributes);
        else if (clause_without_brackets(p, &prefix->attributes)) continue;
        else if (take_layout(p, &prefix->attributes) || take_linkage(p)) continue;
        else if (parser_take_word(p, KEYWORD_generic))
            prefix->generics = parse_generic_parameters(p, prefix->generics);
        else break;
    }
}
