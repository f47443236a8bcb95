/* Types, generic arguments and parameters, constraints. A type is written as an expression: `float[3]` is an
 * index, `A.B<int>` is generic arguments for a member; only what no expression looks like has nodes of its
 * own.
 *
 *   type       = { modifier } base { "*" | "[" [ size ] "]" }
 *   declared   = type { "&" type }
 *   base       = name { "." name | "::" name | generic-arguments | "[" [ size ] "]" } | "This" | function-type
 *              | "(" type { "," type } ")"
 *              | "expand" type | "each" type | end-of-pack "(" pack ")"
 *              | "__packBranch" "(" pack "," type "," type ")"
 *   parameters = "<" parameter { "," parameter } ">"
 *   parameter  = [ "typename" | "each" ] name [ ":" bounds ] [ "=" type ]
 *              | "let" [ "each" ] name [ ":" type ] [ "=" value ] | [ "each" ] type name [ "=" value ]
 *   where      = { "where" constraint { "," constraint } }
 *   constraint = [ "optional" ] type ( ":" bounds | "==" type ) | "countof" "(" pack ")" "==" value
 *              | "nonempty" "(" pack ")" | type "(" type ")" [ "implicit" ] */
#include "syntax/parser.h"

/* ---- the parts of a type */

static uint32_t type_modifier(const Parser *p) {
    bool name_follows = parser_peek(p, 1)->kind == TOKEN_name;
    switch (token_word(p->token)) {
    case KEYWORD_no_diff: return EXPR_NO_DIFF;
    case KEYWORD_const: return EXPR_CONST;
    case KEYWORD_row_major: return name_follows ? EXPR_ROW_MAJOR : 0;
    case KEYWORD_column_major: return name_follows ? EXPR_COLUMN_MAJOR : 0;
    default: return 0;
    }
}

/* RWTexture2D<unorm float4>: the format of the image counts. */
static bool at_format(const Parser *p) {
    bool word = parser_at_word(p, KEYWORD_unorm) || parser_at_word(p, KEYWORD_snorm);
    return word && parser_peek(p, 1)->kind == TOKEN_name;
}

/* `dyn I`, `some I`, where no name can follow a type: both are I. */
static void take_interface_form(Parser *p) {
    bool word = parser_at_word(p, KEYWORD_dyn) || parser_at_word(p, KEYWORD_some);
    if (word && parser_peek(p, 1)->kind == TOKEN_name && !map_has(&p->file->types, PTR_KEY(p->token->name)))
        parser_advance(p);
}

static Expr *named(Parser *p, Name name) {
    Expr *expr = expr_new(p->arena, EXPR_name, p->token->loc);
    p->height = 1;
    expr->name = name;
    return expr;
}

/* `unsigned int` and `unsigned` are uint. */
static Expr *unsigned_type(Parser *p) {
    Expr *expr = named(p, name_from(p->syntax->names, "uint"));
    parser_advance(p);
    if (parser_at_word(p, KEYWORD_type) && strcmp(p->token->name->text, "int") == 0) parser_advance(p);
    return expr;
}

/* ---- C's numbers of several words */

static bool is_c_word(const Token *token, const char *word) {
    return token->kind == TOKEN_name && strcmp(token->name->text, word) == 0;
}

static bool is_any_c_word(const Token *token) {
    static const char *const words[] = {"unsigned", "signed", "long", "short", "char", "int", "double"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_c_word(token, words[i])) return true;
    return false;
}

/* How many words there are of the name of such a type, with something declared behind it; 0: it is none. */
static int count_c_words(const Parser *p) {
    int count = 0;
    while (is_any_c_word(parser_peek(p, count))) count++;
    const Token *next = parser_peek(p, count);
    bool declares = token_is_identifier(next) || next->kind == TOKEN_star;
    bool known = count == 2 && is_c_word(p->token, "unsigned") && is_c_word(parser_peek(p, 1), "int");
    return count > 1 && declares && !known ? count : 0;
}

/* unsigned char, long long: told, and read as what it means. */
static Expr *c_number(Parser *p, int words) {
    Loc loc = p->token->loc;
    const char *written = "", *width = "32", *sign = "";
    bool is_double = false;
    for (int i = 0; i < words; i++) {
        const Token *word = parser_peek(p, i);
        written = format_text(p->arena, "%s%s%s", written, i ? " " : "", word->name->text);
        if (is_c_word(word, "unsigned")) sign = "u";
        if (is_c_word(word, "char")) width = "8";
        if (is_c_word(word, "short")) width = "16";
        if (is_c_word(word, "long")) width = "64";
        is_double |= is_c_word(word, "double");
    }
    const char *type = is_double ? "double" : format_text(p->arena, "%sint%s_t", sign, width);
    Expr *expr = named(p, name_from(p->syntax->names, type));
    if (!p->panic) diag_report(p->syntax->diags, DIAG_c_number, loc, written, type);
    while (words-- > 0) parser_advance(p);
    return expr;
}

/* functype (A, B) [ throws E ] -> R */
static Expr *function_type(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_function_type, p->token->loc);
    int angle = p->angle, height = 0;
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' after 'functype'");
    p->angle = 0;
    while (!p->panic && !parser_at(p, TOKEN_paren_close)) {
        take_interface_form(p);
        Expr *type = parse_type(p);
        vec_push(p->arena, &expr->args, type);
        height = max_int(height, p->height);
        if (!parser_take(p, TOKEN_comma)) break;
    }
    parser_close_bracket(p, open);
    p->angle = angle;
    if (!p->panic && parser_take_word(p, KEYWORD_throws)) {
        expr->b = parse_type(p);
        height = max_int(height, p->height);
    }
    if (parser_expect(p, TOKEN_arrow)) expr->a = parse_type(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *pack_type(Parser *p, ExprKind kind) {
    Expr *expr = expr_new(p->arena, kind, p->token->loc);
    parser_advance(p);
    expr->a = parse_type(p);
    return parse_grown(p, expr, p->height);
}

/* __first(P) and the like */
static Expr *part_of_pack(Parser *p, ExprKind kind, PackEnd end) {
    Expr *expr = expr_new(p->arena, kind, p->token->loc);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle;
    p->angle = 0;
    expr->number = end;
    expr->a = parse_type_or_expression(p);
    int height = p->height;
    parser_close_bracket(p, open);
    p->angle = angle;
    return parse_grown(p, expr, height);
}

/* __packBranch(P, Empty, NonEmpty) */
static Expr *branch_type(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_branch, p->token->loc);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle, height = 0;
    p->angle = 0;
    for (int i = 0; i < 3 && !p->panic; i++) {
        if (i && !parser_expect(p, TOKEN_comma)) break;
        Expr *operand = parse_type(p);
        vec_push(p->arena, &expr->args, operand);
        height = max_int(height, p->height);
    }
    parser_close_bracket(p, open);
    p->angle = angle;
    return parse_grown(p, expr, height);
}

/* __first( and the like */
static bool parse_is_pack_word(const Parser *p) {
    switch (token_word(p->token)) {
    case KEYWORD_first:
    case KEYWORD_last:
    case KEYWORD_trim_first:
    case KEYWORD_trim_last:
    case KEYWORD_pack_branch: return parser_peek(p, 1)->kind == TOKEN_paren_open;
    default: return false;
    }
}

Expr *parse_pack_word(Parser *p) {
    switch (token_word(p->token)) {
    case KEYWORD_first: return part_of_pack(p, EXPR_end, PACK_first);
    case KEYWORD_last: return part_of_pack(p, EXPR_end, PACK_last);
    case KEYWORD_trim_first: return part_of_pack(p, EXPR_trim, PACK_first);
    case KEYWORD_trim_last: return part_of_pack(p, EXPR_trim, PACK_last);
    default: return branch_type(p);
    }
}

/* (A, B) is Tuple<A, B>; (A) is A. */
static Expr *types_in_parentheses(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_apply, p->token->loc);
    expr->a = named(p, name_from(p->syntax->names, "Tuple"));
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle, height = 0;
    p->angle = 0;
    do {
        Expr *type = parse_type(p);
        vec_push(p->arena, &expr->args, type);
        height = max_int(height, p->height);
    } while (!p->panic && parser_take(p, TOKEN_comma));
    parser_close_bracket(p, open);
    p->angle = angle;
    return expr->args.count == 1 ? expr->args.at[0] : parse_grown(p, expr, height);
}

static Expr *type_name(Parser *p) {
    if (parser_at(p, TOKEN_paren_open)) return types_in_parentheses(p);
    if (parser_at(p, TOKEN_scope)) return parse_outermost_name(p);
    if (parse_is_pack_word(p)) return parse_pack_word(p);
    Keyword word = token_word(p->token);
    bool name_follows = parser_peek(p, 1)->kind == TOKEN_name;
    int c_words = count_c_words(p);
    if (c_words) return c_number(p, c_words);
    switch (word) {
    case KEYWORD_functype:
        if (parser_peek(p, 1)->kind == TOKEN_paren_open) return function_type(p);
        break;
    case KEYWORD_unsigned: return unsigned_type(p);
    case KEYWORD_expand:
    case KEYWORD_each:
        if (name_follows) return pack_type(p, word == KEYWORD_each ? EXPR_each : EXPR_expand);
        break;
    case KEYWORD_struct:
    case KEYWORD_class:
    case KEYWORD_enum: parser_advance(p); break;
    case KEYWORD_this_type: {
        Expr *this_type = expr_new(p->arena, EXPR_this_type, p->token->loc);
        p->height = 1;
        parser_advance(p);
        return this_type;
    }
    default: break;
    }
    if (!token_is_identifier(p->token)) {
        parser_expected(p, "a type");
        return parse_error_expr(p);
    }
    Expr *expr = named(p, p->token->name);
    parser_advance(p);
    return expr;
}

static Expr *member_type(Parser *p, Expr *base) {
    bool scope = parser_at(p, TOKEN_scope);
    int height = p->height;
    parser_advance(p);
    Expr *expr = expr_new(p->arena, EXPR_member, p->token->loc);
    expr->a = base;
    expr->flags = scope ? EXPR_SCOPE : 0;
    expr->name = parser_at(p, TOKEN_name) ? p->token->name : NULL;
    if (expr->name) parser_advance(p);
    else parser_expected(p, "the name of a type");
    return expr->name ? parse_grown(p, expr, height) : parse_error_expr(p);
}

static Expr *array_type(Parser *p, Expr *element) {
    Expr *expr = expr_new(p->arena, EXPR_index, p->token->loc);
    int open = parser_open_bracket(p, TOKEN_bracket_open, "'['"), angle = p->angle, height = p->height;
    p->angle = 0;
    expr->a = element;
    if (!parser_at(p, TOKEN_bracket_close)) {
        Expr *size = parse_expression(p);
        vec_push(p->arena, &expr->args, size);
        height = max_int(height, p->height);
    }
    parser_close_bracket(p, open);
    p->angle = angle;
    return parse_grown(p, expr, height);
}

static Expr *apply_type(Parser *p, Expr *base) {
    Expr *expr = expr_new(p->arena, EXPR_apply, base->loc);
    int height = p->height;
    expr->a = base;
    expr->args = parse_generic_arguments(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *type_suffix(Parser *p, Expr *base) {
    while (!p->panic) {
        if (parser_at(p, TOKEN_dot) || parser_at(p, TOKEN_scope)) base = member_type(p, base);
        else if (parser_at(p, TOKEN_bracket_open)) base = array_type(p, base);
        else if (parser_at(p, TOKEN_less) && base->kind != EXPR_apply) base = apply_type(p, base);
        else break;
    }
    return base;
}

/* ---- types */

static Expr *with_modifiers(Parser *p, Expr *type, uint32_t flags, Loc loc) {
    if (!flags) return type;
    Expr *expr = expr_new(p->arena, EXPR_modified_type, loc);
    expr->a = type;
    expr->flags = flags;
    return parse_grown(p, expr, p->height);
}

Expr *parse_base_type(Parser *p) {
    uint32_t flags = 0, flag;
    Loc loc = p->token->loc;
    for (; (flag = type_modifier(p)) || at_format(p); parser_advance(p)) flags |= flag;
    if (!parser_enter(p)) {
        parser_leave(p);
        return parse_error_expr(p);
    }
    Expr *type = type_suffix(p, type_name(p));
    parser_leave(p);
    return with_modifiers(p, type, flags, loc);
}

Expr *parse_pointer_suffix(Parser *p, Expr *type) {
    while (!p->panic && parser_at(p, TOKEN_star)) {
        Expr *expr = expr_new(p->arena, EXPR_pointer_type, p->token->loc);
        expr->a = type;
        type = parse_grown(p, expr, p->height);
        parser_advance(p);
        parser_take_word(p, KEYWORD_const);
    }
    return type;
}

Expr *parse_type_after(Parser *p, Expr *base) {
    while (!p->panic && parser_at(p, TOKEN_star)) base = type_suffix(p, parse_pointer_suffix(p, base));
    return base;
}

Expr *parse_type(Parser *p) { return parse_type_after(p, parse_base_type(p)); }

Expr *parse_all_types(Parser *p, Expr *first) {
    if (p->panic || !parser_at(p, TOKEN_amp)) return first;
    Expr *expr = expr_new(p->arena, EXPR_all_types, p->token->loc);
    int height = p->height;
    vec_push(p->arena, &expr->args, first);
    while (!p->panic && parser_take(p, TOKEN_amp)) {
        Expr *type = parse_type(p);
        vec_push(p->arena, &expr->args, type);
        height = max_int(height, p->height);
    }
    return parse_grown(p, expr, height);
}

Expr *parse_declared_type(Parser *p) {
    take_interface_form(p);
    return parse_all_types(p, parse_type(p));
}

/* `int a[2][3]`: two rows of three, so the last dimension is the innermost. */
Expr *parse_array_suffix(Parser *p, Expr *type) {
    if (p->panic || !parser_at(p, TOKEN_bracket_open)) return type;
    if (!parser_enter(p)) {
        parser_leave(p);
        return parse_error_expr(p);
    }
    Expr *outer = array_type(p, NULL);
    if (outer->kind == EXPR_index) outer->a = parse_array_suffix(p, type);
    parser_leave(p);
    return outer;
}

/* ---- generic arguments */

/* The > that closes a list, also if it is the first half of a longer token. */
static void close_angle(Parser *p, const Token *open) {
    TokenKind rest = TOKEN_end;
    switch ((TokenKind)p->token->kind) {
    case TOKEN_greater: parser_advance(p); return;
    case TOKEN_shift_right: rest = TOKEN_greater; break;
    case TOKEN_greater_equal: rest = TOKEN_equal; break;
    case TOKEN_shift_right_equal: rest = TOKEN_greater_equal; break;
    default:
        if (parser_complain(p)) {
            diag_report(p->syntax->diags, DIAG_expected_token, p->token->loc, "'>'",
                        token_describe(p->arena, p->token));
            diag_note(p->syntax->diags, DIAG_match_open, open->loc, "<");
        }
        return;
    }
    p->part = *p->token;
    p->part.kind = (uint8_t)rest;
    p->part.line_start = p->part.space_before = false;
    p->part.loc++;
    p->part.len--;
    p->token = &p->part;
}

static bool closes_angle(const Parser *p) {
    TokenKind kind = (TokenKind)p->token->kind;
    return kind == TOKEN_greater || kind == TOKEN_shift_right || kind == TOKEN_greater_equal ||
           kind == TOKEN_shift_right_equal;
}

/* Is a type all of this argument? `expand (each N) + 1` is a value. */
static bool is_whole_type(const Parser *p) {
    int end = scan_type(p, p->at);
    TokenKind kind = end < 0 ? TOKEN_end : (TokenKind)parser_peek(p, end - p->at)->kind;
    return kind == TOKEN_comma || kind == TOKEN_greater || kind == TOKEN_shift_right;
}

static Expr *generic_argument(Parser *p) {
    take_interface_form(p);
    if (parser_at(p, TOKEN_paren_open) && is_whole_type(p)) return parse_type(p);
    switch (token_word(p->token)) {
    case KEYWORD_no_diff:
    case KEYWORD_const:
    case KEYWORD_struct:
    case KEYWORD_row_major:
    case KEYWORD_column_major: return parse_type(p);
    case KEYWORD_unorm:
    case KEYWORD_snorm: return at_format(p) ? parse_type(p) : parse_term(p);
    case KEYWORD_expand:
    case KEYWORD_each: return is_whole_type(p) ? parse_type(p) : parse_term(p);
    default: return parse_term(p);
    }
}

ExprVec parse_generic_arguments(Parser *p) {
    const Token *open = &p->file->tokens[p->at];
    int angle = p->angle, height = 0;
    ExprVec args = {0};
    parser_expect(p, TOKEN_less);
    p->angle = 1;
    while (!p->panic && !closes_angle(p)) {
        Expr *arg = generic_argument(p);
        vec_push(p->arena, &args, arg);
        if (p->height > height) height = p->height;
        if (!parser_take(p, TOKEN_comma)) break;
    }
    close_angle(p, open);
    p->angle = angle;
    p->height = height;
    return args;
}

/* ---- constraints */

static void add_constraint(Parser *p, Generics *generics, Constraint constraint) {
    vec_push(p->arena, &generics->constraints, constraint);
}

/* I & J: one constraint for each. */
static void add_bounds(Parser *p, Generics *generics, Expr *subject, bool optional) {
    do {
        Constraint constraint = {.loc = p->token->loc, .subject = subject, .optional = optional};
        constraint.bound = parse_type(p);
        add_constraint(p, generics, constraint);
        subject = expr_copy(p->arena, subject);
    } while (!p->panic && parser_take(p, TOKEN_amp));
}

/* Is the other side a number: 1, N + 1, countof(Q)? A bare name may be either. */
static bool is_number_side(const Parser *p) {
    int end = scan_type(p, p->at);
    if (end < 0) return true;
    switch ((TokenKind)parser_peek(p, end - p->at)->kind) {
    case TOKEN_plus:
    case TOKEN_minus:
    case TOKEN_star:
    case TOKEN_slash:
    case TOKEN_percent:
    case TOKEN_paren_open: return true;
    default: return false;
    }
}

static void where_equal(Parser *p, Generics *generics, Expr *subject, bool optional) {
    Constraint constraint = {.loc = p->token->loc, .subject = subject, .equal = true, .optional = optional};
    parser_advance(p);
    constraint.bound = subject->kind == EXPR_countof || is_number_side(p) ? parse_term(p) : parse_type(p);
    add_constraint(p, generics, constraint);
}

/* nonempty(P) */
static void where_nonempty(Parser *p, Generics *generics) {
    Demand demand = {.kind = DEMAND_nonempty, .loc = p->token->loc};
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    demand.subject = parse_type(p);
    parser_close_bracket(p, open);
    vec_push(p->arena, &generics->demands, demand);
}

/* To(From), To(From) implicit */
static void where_converts(Parser *p, Generics *generics, Expr *to) {
    Demand demand = {.kind = DEMAND_cast, .loc = p->token->loc, .to = to};
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    demand.subject = parse_type(p);
    parser_close_bracket(p, open);
    if (parser_take_word(p, KEYWORD_implicitly)) demand.kind = DEMAND_implicit;
    vec_push(p->arena, &generics->demands, demand);
}

/* After a comma: another constraint, or another bound of the last one? */
static bool subject_follows(const Parser *p) {
    if (parser_at_word(p, KEYWORD_optional) && parser_peek(p, 1)->kind == TOKEN_name) return true;
    int end = scan_type(p, p->at);
    if (end < 0) return false;
    TokenKind kind = (TokenKind)parser_peek(p, end - p->at)->kind;
    return kind == TOKEN_colon || kind == TOKEN_equal_equal || kind == TOKEN_paren_open;
}

static void where_clause(Parser *p, Generics *generics) {
    do {
        bool optional = parser_at_word(p, KEYWORD_optional) && parser_peek(p, 1)->kind == TOKEN_name;
        if (optional) parser_advance(p);
        bool opens = parser_peek(p, 1)->kind == TOKEN_paren_open;
        if (opens && parser_at_word(p, KEYWORD_nonempty)) {
            where_nonempty(p, generics);
            if (!parser_take(p, TOKEN_comma)) return;
            continue;
        }
        Expr *subject = opens && parser_at_word(p, KEYWORD_countof) ? parse_primary(p) : parse_type(p);
        if (parser_at(p, TOKEN_equal_equal)) where_equal(p, generics, subject, optional);
        else if (parser_at(p, TOKEN_paren_open)) where_converts(p, generics, subject);
        else if (parser_take(p, TOKEN_colon)) {
            add_bounds(p, generics, subject, optional);
            while (!p->panic && parser_at(p, TOKEN_comma)) {
                parser_advance(p);
                if (subject_follows(p)) break;
                add_bounds(p, generics, expr_copy(p->arena, subject), optional);
            }
            if (!p->panic && parser_previous(p)->kind == TOKEN_comma) continue;
            return;
        } else parser_expected(p, "':' or '==' in a 'where' clause");
        if (!parser_take(p, TOKEN_comma)) return;
    } while (!p->panic);
}

Generics *parse_constraints(Parser *p, Generics *generics) {
    if (!generics) generics = arena_new(p->arena, Generics);
    where_clause(p, generics);
    return generics;
}

Generics *parse_where(Parser *p, Generics *generics) {
    while (!p->panic && parser_take_word(p, KEYWORD_where)) generics = parse_constraints(p, generics);
    return generics;
}

void parse_bases(Parser *p, ExprVec *bases) {
    do {
        Expr *base = parse_type(p);
        vec_push(p->arena, bases, base);
    } while (!p->panic && (parser_take(p, TOKEN_comma) || parser_take(p, TOKEN_amp)));
}

/* ---- generic parameters */

static bool at_pack(const Parser *p) {
    return parser_at_word(p, KEYWORD_each) && token_is_identifier(parser_peek(p, 1));
}

static bool take_each(Parser *p) {
    bool pack = at_pack(p);
    if (pack) parser_advance(p);
    return pack;
}

static void type_parameter(Parser *p, Generics *generics) {
    bool pack = take_each(p);
    if (!pack && parser_at_word(p, KEYWORD_typename)) parser_advance(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of a generic parameter");
    if (!name) return;
    Decl *param = decl_new(p->arena, DECL_type_param, loc, name);
    if (pack) param->modifiers |= MODIFIER_pack;
    vec_push(p->arena, &generics->params, param);
    Expr *subject = expr_new(p->arena, EXPR_name, loc);
    subject->name = name;
    if (parser_take(p, TOKEN_colon)) add_bounds(p, generics, subject, false);
    if (parser_take(p, TOKEN_equal)) param->init = parse_type(p);
}

static void add_value_parameter(Parser *p, Generics *generics, Expr *type, Name name, Loc loc, bool pack) {
    Decl *param = decl_new(p->arena, DECL_value_param, loc, name);
    param->type_expr = type;
    if (pack) param->modifiers |= MODIFIER_pack;
    vec_push(p->arena, &generics->params, param);
    if (parser_take(p, TOKEN_equal)) param->init = parse_term(p);
}

/* let N : int, let each N : int, let N = 3 */
static void let_parameter(Parser *p, Generics *generics) {
    parser_advance(p);
    bool pack = take_each(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of a generic parameter");
    if (!name) return;
    bool typed = pack || !parser_at(p, TOKEN_equal); /* else its type is that of the default */
    if (typed && !parser_expect(p, TOKEN_colon)) return;
    add_value_parameter(p, generics, typed ? parse_type(p) : NULL, name, loc, pack);
}

/* int N, each int N */
static void typed_parameter(Parser *p, Generics *generics) {
    bool pack = take_each(p);
    Expr *type = parse_type(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of a generic parameter");
    if (name) add_value_parameter(p, generics, type, name, loc, pack);
}

/* Is it `int N` or `each int N`, a type and a name? */
static bool is_typed_parameter(const Parser *p) {
    if (parser_at_word(p, KEYWORD_typename)) return false;
    int first = at_pack(p) ? 1 : 0, next = first + 1;
    while (parser_peek(p, next)->kind == TOKEN_dot || parser_peek(p, next)->kind == TOKEN_scope) next += 2;
    return token_is_identifier(parser_peek(p, first)) && token_is_identifier(parser_peek(p, next));
}

Generics *parse_generic_parameters(Parser *p, Generics *generics) {
    const Token *open = p->token;
    int angle = p->angle;
    if (!generics) generics = arena_new(p->arena, Generics);
    parser_expect(p, TOKEN_less);
    p->angle = 1;
    while (!p->panic && !closes_angle(p)) {
        if (parser_at_word(p, KEYWORD_let) && token_is_identifier(parser_peek(p, 1)))
            let_parameter(p, generics);
        else if (is_typed_parameter(p)) typed_parameter(p, generics);
        else type_parameter(p, generics);
        if (!parser_take(p, TOKEN_comma)) break;
    }
    close_angle(p, open);
    p->angle = angle;
    return generics;
}
