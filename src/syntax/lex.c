/* From text to tokens, one at a time. Comments and space leave no tokens; what the preprocessor and the
 * parser need of them are the flags line_start and space_before.
 *
 * The text ends with a NUL byte and has none inside (lex_open sees to it), so that no character needs a test
 * for the end. Bytes that are not UTF-8 give one error for each run of them; a file that is no text at all
 * gives one error and no tokens. Inside comments and strings any bytes may stand. */
#include "syntax/parser.h"

enum { MAX_STRAY = 10 };

typedef enum CharClass { CHAR_other, CHAR_word, CHAR_digit, CHAR_blank } CharClass;

static const uint8_t classes[256] = {
    [' '] = CHAR_blank,  ['\t'] = CHAR_blank, ['\r'] = CHAR_blank, ['\v'] = CHAR_blank, ['\f'] = CHAR_blank,
    ['\n'] = CHAR_blank, ['0'] = CHAR_digit,  ['1'] = CHAR_digit,  ['2'] = CHAR_digit,  ['3'] = CHAR_digit,
    ['4'] = CHAR_digit,  ['5'] = CHAR_digit,  ['6'] = CHAR_digit,  ['7'] = CHAR_digit,  ['8'] = CHAR_digit,
    ['9'] = CHAR_digit,  ['_'] = CHAR_word,   ['A'] = CHAR_word,   ['B'] = CHAR_word,   ['C'] = CHAR_word,
    ['D'] = CHAR_word,   ['E'] = CHAR_word,   ['F'] = CHAR_word,   ['G'] = CHAR_word,   ['H'] = CHAR_word,
    ['I'] = CHAR_word,   ['J'] = CHAR_word,   ['K'] = CHAR_word,   ['L'] = CHAR_word,   ['M'] = CHAR_word,
    ['N'] = CHAR_word,   ['O'] = CHAR_word,   ['P'] = CHAR_word,   ['Q'] = CHAR_word,   ['R'] = CHAR_word,
    ['S'] = CHAR_word,   ['T'] = CHAR_word,   ['U'] = CHAR_word,   ['V'] = CHAR_word,   ['W'] = CHAR_word,
    ['X'] = CHAR_word,   ['Y'] = CHAR_word,   ['Z'] = CHAR_word,   ['a'] = CHAR_word,   ['b'] = CHAR_word,
    ['c'] = CHAR_word,   ['d'] = CHAR_word,   ['e'] = CHAR_word,   ['f'] = CHAR_word,   ['g'] = CHAR_word,
    ['h'] = CHAR_word,   ['i'] = CHAR_word,   ['j'] = CHAR_word,   ['k'] = CHAR_word,   ['l'] = CHAR_word,
    ['m'] = CHAR_word,   ['n'] = CHAR_word,   ['o'] = CHAR_word,   ['p'] = CHAR_word,   ['q'] = CHAR_word,
    ['r'] = CHAR_word,   ['s'] = CHAR_word,   ['t'] = CHAR_word,   ['u'] = CHAR_word,   ['v'] = CHAR_word,
    ['w'] = CHAR_word,   ['x'] = CHAR_word,   ['y'] = CHAR_word,   ['z'] = CHAR_word,
};

static CharClass class_of(char c) { return (CharClass)classes[(unsigned char)c]; }

bool lex_is_word(char c) { return class_of(c) == CHAR_word || class_of(c) == CHAR_digit; }

Loc lex_loc(const Lexer *lexer, const char *at) {
    return lexer->file ? lexer->file->base + (Loc)(at - lexer->file->text.at) : lexer->loc;
}

/* ---- opening */

static void refuse(Lexer *lexer, DiagId id, const char *at) {
    diag_report(lexer->syntax->diags, id, lex_loc(lexer, at));
    lexer->at = lexer->end;
}

/* Where it shows that this is no text: a zero byte, or many control characters at the start. */
static const char *find_binary(Str text) {
    const char *first = NULL;
    int controls = 0, looked_at = text.len < 4096 ? text.len : 4096;
    for (int i = 0; i < looked_at; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c >= 0x20 || class_of(text.at[i]) == CHAR_blank) continue;
        if (!controls++) first = text.at + i;
    }
    return controls * 20 > looked_at ? first : memchr(text.at, 0, (size_t)text.len);
}

void lex_open(Lexer *lexer, Syntax *syntax, const SourceFile *file) {
    Str text = file->text;
    *lexer = (Lexer){.syntax = syntax, .file = file, .line_start = true};
    lexer->at = text.at;
    lexer->end = text.at + text.len;
    if (text.len == 0) return;
    const char *zero = find_binary(text);
    if (str_starts(text, "\xff\xfe") || str_starts(text, "\xfe\xff")) refuse(lexer, DIAG_file_utf16, text.at);
    else if (zero) refuse(lexer, DIAG_file_not_text, zero);
    else if (str_starts(text, "\xef\xbb\xbf")) lexer->at += 3;
}

void lex_open_text(Lexer *lexer, Syntax *syntax, Str text, Loc loc) {
    *lexer = (Lexer){.syntax = syntax, .at = text.at, .end = text.at + text.len, .loc = loc};
}

/* ---- space and comments */

/* At a backslash: past the end of the line, if that is what follows. */
static const char *splice(const char *at) {
    if (at[1] == '\n') return at + 2;
    return at[1] == '\r' && at[2] == '\n' ? at + 3 : at;
}

static const char *skip_line_comment(const Lexer *lexer, const char *at) {
    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(lexer->end - at));
        if (!newline) return lexer->end;
        const char *last = newline - 1;
        if (last > at && *last == '\r') last--;
        if (*last != '\\') return newline;
        at = newline + 1;
    }
}

static const char *skip_block_comment(Lexer *lexer, const char *start) {
    for (const char *at = start + 2;; at++) {
        at = memchr(at, '*', (size_t)(lexer->end - at));
        if (!at) break;
        if (at[1] != '/') continue;
        if (!lexer->in_directive && memchr(start, '\n', (size_t)(at - start))) lexer->line_start = true;
        return at + 2;
    }
    if (lexer->file) diag_report(lexer->syntax->diags, DIAG_unterminated_comment, lex_loc(lexer, start));
    lexer->cut_off = true;
    return lexer->end;
}

/* To the next token; false if that is the end of a directive. */
static bool skip_blank(Lexer *lexer) {
    const char *at = lexer->at;
    for (;; lexer->at = at) {
        while (*at == ' ') at++;
        lexer->at = at;
        if (*at == '\n') {
            if (lexer->in_directive) return false;
            lexer->line_start = true;
            at++;
        } else if (class_of(*at) == CHAR_blank) at++;
        else if (*at == '/' && at[1] == '/') at = skip_line_comment(lexer, at + 2);
        else if (*at == '/' && at[1] == '*') at = skip_block_comment(lexer, at);
        else if (*at == '\\' && splice(at) != at) at = splice(at);
        else return true;
    }
}

Str lex_line(Lexer *lexer) {
    const char *start = lexer->at, *end = memchr(start, '\n', (size_t)(lexer->end - start));
    if (!end) end = lexer->end;
    lexer->at = end;
    while (start < end && class_of(*start) == CHAR_blank) start++;
    while (end > start && class_of(end[-1]) == CHAR_blank) end--;
    return (Str){start, (int)(end - start)};
}

/* ---- characters beyond ASCII */

int lex_utf8(const char *at, const char *end, uint32_t *code) {
    static const struct {
        unsigned char mask, lead;
        uint32_t smallest;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    unsigned char first = (unsigned char)*at;
    for (int n = 0; n < 4; n++) {
        if ((first & forms[n].mask) != forms[n].lead) continue;
        if (end - at <= n) return 0;
        uint32_t value = first & (unsigned char)~forms[n].mask;
        for (int i = 1; i <= n; i++) {
            if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
            value = value << 6 | ((unsigned char)at[i] & 0x3f);
        }
        bool valid = value >= forms[n].smallest && value <= 0x10ffff && (value & 0xfffff800u) != 0xd800;
        *code = value;
        return valid ? n + 1 : 0;
    }
    return 0;
}

/* Letters of any script, roughly: no punctuation, no space, no invisible characters. */
static bool is_letter(uint32_t code) {
    if (code < 0xc0 || code == 0xd7 || code == 0xf7) return code == 0xaa || code == 0xb5 || code == 0xba;
    if (code >= 0x2000 && code < 0x20d0) return false;
    if (code >= 0x2190 && code < 0x2c00) return false;
    return !(code >= 0x3000 && code < 0x3005) && !(code >= 0xe000 && code < 0xf900) &&
           !(code >= 0xfe00 && code < 0xfe10) && code != 0xfeff && !(code >= 0xfff0 && code <= 0xffff);
}

/* Something that can stand nowhere: it is skipped, and reported once for a run of bytes. */
static void stray(Lexer *lexer, Token *token) {
    const char *start = lexer->at;
    uint32_t code = 0;
    int bytes = lex_utf8(start, lexer->end, &code);
    lexer->at += bytes ? bytes : 1;
    while (!bytes && lexer->at < lexer->end && !lex_utf8(lexer->at, lexer->end, &code)) lexer->at++;
    token->kind = TOKEN_error;
    if (lexer->quiet) return;
    Diags *diags = lexer->syntax->diags;
    if (++lexer->stray > MAX_STRAY) refuse(lexer, DIAG_too_many_strays, start);
    else if (!bytes) diag_report(diags, DIAG_stray_byte, lex_loc(lexer, start), (unsigned char)*start);
    else if (code < 0x20 || code == 0x7f)
        diag_report(diags, DIAG_stray_control, lex_loc(lexer, start), (int)code);
    else {
        const char *text = format_text(lexer->syntax->arena, "%.*s", bytes, start);
        diag_report(diags, DIAG_stray_character, lex_loc(lexer, start), text, (int)code);
    }
}

/* ---- words and punctuation */

static const char *skip_letters(const Lexer *lexer, const char *at) {
    for (;;) {
        while (lex_is_word(*at)) at++;
        uint32_t code;
        if ((unsigned char)*at < 0x80) return at;
        int bytes = lex_utf8(at, lexer->end, &code);
        if (!bytes || !is_letter(code)) return at;
        at += bytes;
    }
}

/* A word that goes on in the next line: `so\` and `me` are `some`. */
static Name spliced_word(Lexer *lexer, const char *start) {
    Text text = {.arena = lexer->syntax->arena};
    for (;;) {
        const char *end = skip_letters(lexer, start), *next = *end == '\\' ? splice(end) : end;
        text_add(&text, (Str){start, (int)(end - start)});
        lexer->at = end;
        if (next == end || !lex_is_word(*next)) return name_of(lexer->syntax->names, text_str(&text));
        start = next;
    }
}

static void word(Lexer *lexer, Token *token) {
    const char *start = lexer->at, *at = start;
    while (lex_is_word(*at)) at++;
    if ((unsigned char)*at >= 0x80) at = skip_letters(lexer, at);
    lexer->at = at;
    if (at == start) {
        stray(lexer, token);
        return;
    }
    if (*at == '"' && at - start == 1 && *start == 'R') {
        lex_raw_string(lexer, token);
        return;
    }
    token->kind = TOKEN_name;
    token->name = *at == '\\' ? spliced_word(lexer, start)
                              : name_of(lexer->syntax->names, (Str){start, (int)(at - start)});
}

/* One of up to three tokens that start alike: `plain`, with `second` after it, with itself after it. */
static int pick(const char *at, int plain, char second, int with_second, int doubled) {
    if (second && at[1] == second) return with_second;
    return doubled && at[1] == at[0] ? doubled : plain;
}

static int shift_or_compare(const char *at, int less, int less_equal, int shift, int shift_equal) {
    if (at[1] == at[0]) return at[2] == '=' ? shift_equal : shift;
    return at[1] == '=' ? less_equal : less;
}

static int minus_kind(const char *at) {
    if (at[1] == '>') return TOKEN_arrow;
    return pick(at, TOKEN_minus, '=', TOKEN_minus_equal, TOKEN_minus_minus);
}

static int equal_kind(const char *at) {
    return at[1] == '>' ? TOKEN_fat_arrow : pick(at, TOKEN_equal, 0, 0, TOKEN_equal_equal);
}

/* TOKEN_end: no punctuation. */
static int punctuation_kind(const char *at) {
    switch (*at) {
    case '(': return TOKEN_paren_open;
    case ')': return TOKEN_paren_close;
    case '[': return TOKEN_bracket_open;
    case ']': return TOKEN_bracket_close;
    case '{': return TOKEN_brace_open;
    case '}': return TOKEN_brace_close;
    case ',': return TOKEN_comma;
    case ';': return TOKEN_semicolon;
    case ':': return pick(at, TOKEN_colon, 0, 0, TOKEN_scope);
    case '.': return at[1] == '.' && at[2] == '.' ? TOKEN_ellipsis : TOKEN_dot;
    case '?': return TOKEN_question;
    case '@': return TOKEN_at;
    case '$': return pick(at, TOKEN_dollar, 0, 0, TOKEN_dollar_dollar);
    case '#': return pick(at, TOKEN_hash, 0, 0, TOKEN_hash_hash);
    case '\\': return TOKEN_backslash;
    case '+': return pick(at, TOKEN_plus, '=', TOKEN_plus_equal, TOKEN_plus_plus);
    case '-': return minus_kind(at);
    case '*': return pick(at, TOKEN_star, '=', TOKEN_star_equal, 0);
    case '/': return pick(at, TOKEN_slash, '=', TOKEN_slash_equal, 0);
    case '%': return pick(at, TOKEN_percent, '=', TOKEN_percent_equal, 0);
    case '&': return pick(at, TOKEN_amp, '=', TOKEN_amp_equal, TOKEN_amp_amp);
    case '|': return pick(at, TOKEN_pipe, '=', TOKEN_pipe_equal, TOKEN_pipe_pipe);
    case '^': return pick(at, TOKEN_caret, '=', TOKEN_caret_equal, TOKEN_caret_caret);
    case '~': return TOKEN_tilde;
    case '!': return pick(at, TOKEN_bang, '=', TOKEN_bang_equal, 0);
    case '=': return equal_kind(at);
    case '<':
        return shift_or_compare(at, TOKEN_less, TOKEN_less_equal, TOKEN_shift_left, TOKEN_shift_left_equal);
    case '>':
        return shift_or_compare(at, TOKEN_greater, TOKEN_greater_equal, TOKEN_shift_right,
                                TOKEN_shift_right_equal);
    }
    return TOKEN_end;
}

static const uint8_t punctuation_length[TOKEN_KIND_COUNT] = {
#define PUNCTUATION(name, text) [TOKEN_##name] = sizeof(text) - 1,
#include "syntax/operators.def"
#undef PUNCTUATION
};

static void other(Lexer *lexer, Token *token) {
    const char *at = lexer->at;
    if (*at == '"') lex_string(lexer, token);
    else if (*at == '\'') lex_character(lexer, token);
    else if (*at == '.' && class_of(at[1]) == CHAR_digit) lex_number(lexer, token);
    else if (*at == 0 && at == lexer->end) token->kind = TOKEN_end;
    else if ((unsigned char)*at >= 0x80) word(lexer, token);
    else {
        token->kind = (uint8_t)punctuation_kind(at);
        if (token->kind == TOKEN_end) stray(lexer, token);
        else lexer->at += punctuation_length[token->kind];
    }
}

void lex_next(Lexer *lexer, Token *token) {
    const char *before = lexer->at;
    bool is_token = skip_blank(lexer);
    const char *start = lexer->at;
    *token = (Token){
        .loc = lex_loc(lexer, start), .line_start = lexer->line_start, .space_before = start != before};
    if (!is_token) return;
    lexer->line_start = false;
    switch (class_of(*start)) {
    case CHAR_word: word(lexer, token); break;
    case CHAR_digit: lex_number(lexer, token); break;
    case CHAR_blank:
    case CHAR_other: other(lexer, token); break;
    }
    token->len = (int)(lexer->at - start);
    if (lexer->bad) token->flags |= TOKEN_BAD;
    if (lexer->untold) token->flags |= TOKEN_UNTOLD;
    lexer->bad = lexer->untold = false;
}

void syntax_lex(Syntax *syntax, SourceFile *file, TokenVec *out) {
    Lexer lexer;
    Token token;
    lex_open(&lexer, syntax, file);
    do {
        lex_next(&lexer, &token);
        vec_push(syntax->arena, out, token);
    } while (token.kind != TOKEN_end);
}

/* ---- words of a text that is not read yet: no zero ends it, without which a lexer would read on */

static int end_of_comment(Str text, int at) {
    bool line = text.at[at + 1] == '/';
    for (at += line ? 2 : 3; at < text.len; at++)
        if (line ? text.at[at] == '\n' : text.at[at] == '/' && text.at[at - 1] == '*') return at;
    return at;
}

bool syntax_next_word(Str text, int *at, Str *word) {
    int start = *at;
    while (start < text.len && class_of(text.at[start]) != CHAR_word) {
        bool slash = text.at[start] == '/' && start + 1 < text.len;
        bool comment = slash && (text.at[start + 1] == '/' || text.at[start + 1] == '*');
        start = comment ? end_of_comment(text, start) : start + 1;
    }
    int end = start;
    while (end < text.len && lex_is_word(text.at[end])) end++;
    if (end == start) return false; /* also of no text at all */
    *at = end;
    *word = (Str){text.at + start, end - start};
    return true;
}
