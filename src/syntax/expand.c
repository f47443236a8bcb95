/* Expanding macros, as the C standard describes it.
 *
 * Tokens to be read next stand in frames, a stack: the body of each macro being expanded, its parameters
 * replaced, and under all of them the file. While its frame is there a macro is active, and its name, met
 * meanwhile, is painted: it stays a plain name for ever. This is what keeps recursion finite; that the result
 * is finite does not keep it small, hence MAX_PRODUCED.
 *
 * An argument is expanded alone before it replaces its parameter: the frames below and the file are out of
 * its reach (`floor`, `isolated`). Next to `#` and `##` it is taken as written. */
#include "syntax/parser.h"

enum { MAX_PRODUCED = 1000000, MAX_CALL_DEPTH = 200 };

static bool run_away(Preprocessor *pp, DiagId id, const Token *use) {
    if (!pp->stopped) diag_report(pp->syntax->diags, id, use->loc, pp->outermost ? pp->outermost->text : "");
    preprocess_stop(pp);
    return false;
}

/* ---- frames */

static void push_frame(Preprocessor *pp, MacroFrame frame) {
    if (frame.macro) frame.macro->active = true;
    vec_push(pp->arena, &pp->frames, frame);
}

static void pop_frame(Preprocessor *pp) {
    MacroFrame *frame = &vec_last(&pp->frames);
    if (frame->macro) frame->macro->active = false;
    if (frame->count == 0 && frame->use.line_start) pp->line_start_pending = true;
    pp->frames.count--;
}

static void paint(const Preprocessor *pp, Token *token) {
    if (token->kind != TOKEN_name) return;
    const Macro *macro = macro_find(pp, token->name);
    if (macro && macro->active) token->flags |= TOKEN_PAINTED;
}

/* The next token of the frames within reach. */
static bool next_in_frames(Preprocessor *pp, MacroToken *out) {
    for (; pp->frames.count > pp->floor; pop_frame(pp)) {
        MacroFrame *frame = &vec_last(&pp->frames);
        if (frame->next == frame->count) continue;
        *out = frame->tokens[frame->next++];
        if (frame->relocate) out->token.loc = frame->use.loc, out->token.len = frame->use.len;
        out->token.line_start = false;
        if (frame->next == 1 && frame->macro) {
            out->token.line_start = frame->use.line_start;
            out->token.space_before = frame->use.space_before;
        }
        paint(pp, &out->token);
        return true;
    }
    return false;
}

static const Token *look_ahead(Preprocessor *pp) {
    if (!pp->has_ahead) lex_next(pp->lexer, &pp->ahead);
    pp->has_ahead = true;
    return &pp->ahead;
}

/* The next token of the file, for the arguments of a macro call; directives on the way are obeyed. */
static bool next_in_file(Preprocessor *pp, MacroToken *out) {
    while (!pp->isolated && !pp->stopped) {
        const Token *ahead = look_ahead(pp);
        if (ahead->kind == TOKEN_end) return false;
        pp->has_ahead = false;
        if (ahead->kind != TOKEN_hash || !ahead->line_start) {
            *out = macro_token(pp, ahead);
            return true;
        }
        bool before = pp->in_arguments;
        pp->in_arguments = true;
        preprocess_directive(pp);
        pp->in_arguments = before;
    }
    return false;
}

static bool next_token(Preprocessor *pp, MacroToken *out) {
    return next_in_frames(pp, out) || next_in_file(pp, out);
}

static bool parenthesis_follows(Preprocessor *pp) {
    for (int i = pp->frames.count - 1; i >= pp->floor; i--) {
        const MacroFrame *frame = &pp->frames.at[i];
        if (frame->next < frame->count) return frame->tokens[frame->next].token.kind == TOKEN_paren_open;
    }
    return !pp->isolated && look_ahead(pp)->kind == TOKEN_paren_open;
}

/* ---- arguments */

typedef struct Arguments {
    MacroTokens *raw;      /* one for each parameter */
    MacroTokens *expanded; /* made when first asked for */
    bool *is_expanded;
} Arguments;

static bool count_is_wrong(Preprocessor *pp, const Macro *macro, const Token *use, int found) {
    int least = macro->nparams - macro->variadic;
    if (found >= least && (found <= macro->nparams || macro->variadic)) return false;
    const char *only = macro->variadic ? "at least " : "";
    diag_report(pp->syntax->diags, DIAG_macro_argument_count, use->loc, macro->name->text, only, least,
                least == 1 ? "" : "s", found);
    if (macro->loc) diag_note(pp->syntax->diags, DIAG_macro_defined_here, macro->loc);
    return true;
}

/* Reads up to the parenthesis that closes the call. Arguments beyond the last are counted and dropped. */
static bool read_arguments(Preprocessor *pp, const Macro *macro, const Token *use, Arguments *arguments) {
    int index = 0, depth = 0;
    bool any = false;
    MacroToken token;
    while (next_token(pp, &token)) {
        TokenKind kind = (TokenKind)token.token.kind;
        if (kind == TOKEN_paren_close && depth == 0) {
            bool none = macro->nparams == 0 && !any;
            return !count_is_wrong(pp, macro, use, none ? 0 : index + 1);
        }
        depth += (kind == TOKEN_paren_open) - (kind == TOKEN_paren_close);
        any = true;
        bool last_takes_all = macro->variadic && index >= macro->nparams - 1;
        if (kind == TOKEN_comma && depth == 0 && !last_takes_all) {
            index++;
            continue;
        }
        if (token.token.line_start) token.token.space_before = true;
        if (index < macro->nparams) vec_push(pp->arena, &arguments->raw[index], token);
    }
    if (!pp->stopped && !pp->lexer->cut_off)
        diag_report(pp->syntax->diags, DIAG_macro_call_unclosed, use->loc, macro->name->text);
    pp->cut_off |= !pp->isolated;
    return false;
}

static bool begin_expansion(Preprocessor *pp, const MacroToken *use);

/* Everything that the tokens expand to, on their own. */
static MacroTokens expand_alone(Preprocessor *pp, const MacroTokens *tokens) {
    int floor = pp->floor;
    bool isolated = pp->isolated;
    MacroTokens result = {0};
    MacroToken token;
    pp->floor = pp->frames.count;
    pp->isolated = true;
    push_frame(pp, (MacroFrame){.tokens = tokens->at, .count = tokens->count});
    while (next_in_frames(pp, &token)) {
        if (begin_expansion(pp, &token)) continue;
        vec_push(pp->arena, &result, token);
        bool defined = pp->in_condition && token.token.kind == TOKEN_name &&
                       strcmp(token.token.name->text, "defined") == 0;
        while (defined && next_in_frames(pp, &token)) { /* what follows is a name, not its value */
            vec_push(pp->arena, &result, token);
            if (token.token.kind != TOKEN_paren_open) break;
        }
    }
    while (pp->frames.count > pp->floor) pop_frame(pp);
    pp->floor = floor;
    pp->isolated = isolated;
    return result;
}

static const MacroTokens *expanded_argument(Preprocessor *pp, Arguments *arguments, int index) {
    if (!arguments->is_expanded[index]) arguments->expanded[index] = expand_alone(pp, &arguments->raw[index]);
    arguments->is_expanded[index] = true;
    return &arguments->expanded[index];
}

/* ---- # and ## */

static MacroToken stringize(Preprocessor *pp, const MacroTokens *argument, const Token *use) {
    Text value = {.arena = pp->arena}, spelling = {.arena = pp->arena};
    text_char(&spelling, '"');
    for (int i = 0; i < argument->count; i++) {
        const MacroToken *item = &argument->at[i];
        if (i && item->token.space_before) text_char(&value, ' '), text_char(&spelling, ' ');
        text_add(&value, (Str){item->text, item->len});
        for (int k = 0; k < item->len; k++) {
            if (item->text[k] == '"' || item->text[k] == '\\') text_char(&spelling, '\\');
            text_char(&spelling, item->text[k]);
        }
    }
    text_char(&spelling, '"');
    Token token = {.kind = TOKEN_string, .loc = use->loc, .len = use->len, .text = text_str(&value)};
    return (MacroToken){.token = token, .text = spelling.at, .len = spelling.len};
}

/* The two as one token. */
static void paste(Preprocessor *pp, MacroToken *left, const MacroToken *right, const Token *use) {
    char *text = format_text(pp->arena, "%.*s%.*s", left->len, left->text, right->len, right->text);
    int len = left->len + right->len;
    Lexer lexer;
    Token token;
    lex_open_text(&lexer, pp->syntax, (Str){text, len}, use->loc);
    lexer.quiet = lexer.pieces = true;
    lex_next(&lexer, &token);
    if (token.kind == TOKEN_error || token.kind == TOKEN_end || token.len != len) {
        diag_report(pp->syntax->diags, DIAG_bad_paste, use->loc, text);
        token.kind = TOKEN_error;
    }
    token.loc = use->loc;
    token.len = use->len;
    token.space_before = left->token.space_before;
    *left = (MacroToken){.token = token, .text = text, .len = len};
}

/* ---- substitution */

typedef struct Substitution {
    Preprocessor *pp;
    const Macro *macro;
    const Token *use;
    Arguments *arguments;
    MacroTokens out;
    int left;     /* where the operand before a ## starts in `out` */
    int optional; /* where the parenthesis stands that ends the last __VA_OPT__ */
} Substitution;

static void append(Substitution *s, const MacroTokens *tokens, bool space_before) {
    for (int i = 0; i < tokens->count; i++) {
        MacroToken token = tokens->at[i];
        if (i == 0) token.token.space_before = space_before;
        token.param = 0;
        vec_push(s->pp->arena, &s->out, token);
    }
}

static void append_plain(Substitution *s, const MacroToken *item) {
    MacroToken token = *item;
    token.token.loc = s->use->loc;
    token.token.len = s->use->len;
    vec_push(s->pp->arena, &s->out, token);
}

/* `, ## __VA_ARGS__`: the comma goes if there are no arguments, and nothing is pasted. */
static bool is_comma_rule(const Substitution *s, const MacroToken *right) {
    if (!s->macro->variadic || right->param != s->macro->nparams) return false;
    return s->out.count > s->left && vec_last(&s->out).token.kind == TOKEN_comma;
}

static void paste_operand(Substitution *s, const MacroTokens *tokens) {
    MacroTokens rest = *tokens;
    if (rest.count == 0) return;
    if (s->out.count > s->left) {
        paste(s->pp, &vec_last(&s->out), &rest.at[0], s->use);
        rest.at++, rest.count--;
    }
    append(s, &rest, rest.count && rest.at[0].token.space_before);
}

/* The operand after a ##; gives the number of body tokens that it is. */
static int paste_next(Substitution *s, const MacroToken *right) {
    MacroTokens single = {0};
    if (right->param && is_comma_rule(s, right)) {
        if (s->arguments->raw[right->param - 1].count == 0) s->out.count--;
        else append(s, expanded_argument(s->pp, s->arguments, right->param - 1), right->token.space_before);
        return 1;
    }
    if (right->param) {
        paste_operand(s, &s->arguments->raw[right->param - 1]);
        return 1;
    }
    MacroToken token = *right;
    bool text = s->macro->kind == MACRO_function && right->token.kind == TOKEN_hash;
    if (text) token = stringize(s->pp, &s->arguments->raw[right[1].param - 1], s->use);
    token.token.loc = s->use->loc;
    vec_push(s->pp->arena, &single, token);
    paste_operand(s, &single);
    return text ? 2 : 1;
}

/* `__VA_OPT__(...)`: what is in the parentheses, if there are arguments for the dots. */
static bool begins_optional(const Substitution *s, int index) {
    const MacroTokens *body = &s->macro->body;
    const Token *word = &body->at[index].token;
    return s->macro->variadic && word->kind == TOKEN_name && strcmp(word->name->text, "__VA_OPT__") == 0 &&
           index + 1 < body->count && body->at[index + 1].token.kind == TOKEN_paren_open;
}

static int closing_parenthesis(const MacroTokens *body, int index) {
    for (int depth = 0; index < body->count; index++) {
        int kind = body->at[index].token.kind;
        depth += (kind == TOKEN_paren_open) - (kind == TOKEN_paren_close);
        if (depth == 0) return index;
    }
    return body->count;
}

/* At the edge of what __VA_OPT__ says: the index to go on at, or `index`. */
static int pass_optional(Substitution *s, int index) {
    if (s->optional && index == s->optional) return index + 1;
    if (!begins_optional(s, index)) return index;
    s->optional = closing_parenthesis(&s->macro->body, index + 1);
    bool any = s->arguments->raw[s->macro->nparams - 1].count > 0;
    return any ? index + 2 : s->optional + 1;
}

static void substitute_one(Substitution *s, int *index) {
    const MacroTokens *body = &s->macro->body;
    int passed = pass_optional(s, *index);
    if (passed != *index) {
        *index = passed;
        return;
    }
    const MacroToken *item = &body->at[*index];
    int next = *index + 1;
    if (item->token.kind == TOKEN_hash_hash) {
        *index = next + paste_next(s, &body->at[next]);
        return;
    }
    s->left = s->out.count;
    if (item->token.kind == TOKEN_hash && s->macro->kind == MACRO_function) {
        MacroToken text = stringize(s->pp, &s->arguments->raw[body->at[next].param - 1], s->use);
        text.token.space_before = item->token.space_before;
        vec_push(s->pp->arena, &s->out, text);
        *index = next + 1;
        return;
    }
    *index = next;
    bool before_paste = next < body->count && body->at[next].token.kind == TOKEN_hash_hash;
    if (!item->param) append_plain(s, item);
    else if (before_paste) append(s, &s->arguments->raw[item->param - 1], item->token.space_before);
    else append(s, expanded_argument(s->pp, s->arguments, item->param - 1), item->token.space_before);
}

static MacroTokens substitute(Preprocessor *pp, const Macro *macro, const Token *use, Arguments *arguments) {
    Substitution s = {pp, macro, use, arguments, {0}, 0, 0};
    for (int i = 0; i < macro->body.count && s.out.count < MAX_PRODUCED;) substitute_one(&s, &i);
    return s.out;
}

/* ---- one use of a macro */

static bool contains_paste(const Macro *macro) {
    for (int i = 0; i < macro->body.count; i++)
        if (macro->body.at[i].token.kind == TOKEN_hash_hash) return true;
    return false;
}

static bool produce(Preprocessor *pp, const Token *use, int count) {
    if (count > MAX_PRODUCED - pp->produced) return run_away(pp, DIAG_macro_runs_away, use);
    pp->produced += count;
    return true;
}

static void push_built_in(Preprocessor *pp, Macro *macro, const Token *use) {
    Position position = source_position(pp->syntax->sources, use->loc);
    MacroToken *token = arena_new(pp->arena, MacroToken);
    token->token = (Token){.loc = use->loc, .len = use->len};
    if (macro->kind == MACRO_line) {
        token->token.kind = TOKEN_int;
        token->token.number = (uint64_t)position.line;
        token->text = format_text(pp->arena, "%d", position.line);
    } else {
        token->token.kind = TOKEN_string;
        token->token.text = position.path ? str_of(position.path->text) : STR("");
        token->text = format_text(pp->arena, "\"%.*s\"", STR_ARG(token->token.text));
    }
    token->len = (int)strlen(token->text);
    push_frame(pp, (MacroFrame){.macro = macro, .tokens = token, .count = 1, .use = *use});
}

/* In place of a call that went wrong, so that the parser has nothing to add. */
static void push_error(Preprocessor *pp, const Token *use) {
    MacroToken *token = arena_new(pp->arena, MacroToken);
    token->token = (Token){.kind = TOKEN_error, .loc = use->loc, .len = use->len};
    token->text = "";
    push_frame(pp, (MacroFrame){.tokens = token, .count = 1, .use = *use});
}

static void push_call(Preprocessor *pp, Macro *macro, const Token *use) {
    Arguments arguments;
    MacroToken parenthesis;
    next_token(pp, &parenthesis);
    arguments.raw = arena_array(pp->arena, MacroTokens, macro->nparams + 1);
    arguments.expanded = arena_array(pp->arena, MacroTokens, macro->nparams + 1);
    arguments.is_expanded = arena_array(pp->arena, bool, macro->nparams + 1);
    bool pieces = pp->lexer->pieces;
    pp->lexer->pieces = true;
    bool complete = read_arguments(pp, macro, use, &arguments);
    pp->lexer->pieces = pieces;
    if (!complete) {
        push_error(pp, use);
        return;
    }
    if (++pp->depth > MAX_CALL_DEPTH) run_away(pp, DIAG_macro_too_deep, use);
    if (!pp->stopped) {
        MacroTokens tokens = substitute(pp, macro, use, &arguments);
        if (produce(pp, use, tokens.count + 1))
            push_frame(pp,
                       (MacroFrame){.macro = macro, .tokens = tokens.at, .count = tokens.count, .use = *use});
    }
    pp->depth--;
}

static void push_object(Preprocessor *pp, Macro *macro, const Token *use) {
    if (!produce(pp, use, macro->body.count + 1)) return;
    MacroFrame frame = {.macro = macro, .use = *use, .relocate = true};
    MacroTokens tokens = macro->body;
    if (contains_paste(macro)) tokens = substitute(pp, macro, use, NULL);
    frame.tokens = tokens.at;
    frame.count = tokens.count;
    push_frame(pp, frame);
}

/* If the token is the use of a macro, what it stands for is read next; else false. */
static bool begin_expansion(Preprocessor *pp, const MacroToken *token) {
    if (token->token.kind != TOKEN_name || token->token.flags & TOKEN_PAINTED) return false;
    Macro *macro = macro_find(pp, token->token.name);
    if (!macro || macro->active || pp->stopped) return false;
    if (macro->kind == MACRO_function && !parenthesis_follows(pp)) return false;
    Token use = token->token;
    switch ((MacroKind)macro->kind) {
    case MACRO_object: push_object(pp, macro, &use); break;
    case MACRO_function: push_call(pp, macro, &use); break;
    case MACRO_file:
    case MACRO_line: push_built_in(pp, macro, &use); break;
    }
    return true;
}

/* ---- the entries */

/* What stayed a number to the end is one: what is wrong with it is told now. */
static void tell_mistake(const Preprocessor *pp, const MacroToken *number) {
    Lexer lexer;
    Token again;
    if (!(number->token.flags & TOKEN_UNTOLD)) return;
    lex_open_text(&lexer, pp->syntax, (Str){number->text, number->len}, number->token.loc);
    lex_next(&lexer, &again);
}

void macro_expand_use(Preprocessor *pp, const Token *name, Macro *macro) {
    MacroToken token = macro_token(pp, name);
    pp->outermost = name->name;
    pp->produced = 0;
    if (macro->active || !begin_expansion(pp, &token)) {
        vec_push(pp->arena, pp->out, *name);
        return;
    }
    while (next_in_frames(pp, &token)) {
        if (begin_expansion(pp, &token)) continue;
        if (pp->line_start_pending) token.token.line_start = true;
        pp->line_start_pending = false;
        tell_mistake(pp, &token);
        vec_push(pp->arena, pp->out, token.token);
    }
}

MacroTokens macro_expand_line(Preprocessor *pp, const MacroTokens *line) {
    pp->produced = 0;
    if (line->count && line->at[0].token.kind == TOKEN_name) pp->outermost = line->at[0].token.name;
    MacroTokens tokens = expand_alone(pp, line);
    for (int i = 0; i < tokens.count; i++) tell_mistake(pp, &tokens.at[i]);
    return tokens;
}
