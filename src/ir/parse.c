/* Reads the text that print.c writes, see there for what it looks like.
 *
 * Everything may be named before it is declared, so that the text is read three times: for the names of
 * records and functions; for fields, signatures and attributes; for the bodies. After an error the current
 * token is the end of the text, so that whatever is being read comes to an end without asking. */
#include "ir.h"

typedef enum TokenKind {
    TOKEN_end,
    TOKEN_word,
    TOKEN_value,  /* %x, %"odd name".1, %12 */
    TOKEN_symbol, /* @f, @"odd name" */
    TOKEN_label,  /* #1 */
    TOKEN_number,
    TOKEN_string,
    TOKEN_mark, /* one character, or -> */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Str text;   /* without sigils; strings: with their quotes */
    bool prime; /* %x' */
    Loc loc;
} Token;

typedef struct Body {
    Func *func;
    int offset;
} Body;

typedef struct Parser {
    Module *module;
    SourceFile *file;
    int at; /* offset behind the token */
    Token token;
    Loc before; /* of the token before */
    bool failed;
    Map ops;     /* Name -> op + 1, as pointer */
    Map records; /* Name -> Record */
    Map funcs;   /* Name -> Func */
    Map globals; /* Name -> Global */
    VEC(Body) bodies;
    int nrecords, nfuncs; /* seen in the second reading */
    VEC(Record *) new_records;
    VEC(Func *) new_funcs;
    /* of the function at work */
    Func *func;
    Map vals;   /* Name -> Val */
    Map labels; /* Name -> Inst */
} Parser;

static Arena *arena_of(const Parser *p) { return p->module->arena; }
static Types *types_of(const Parser *p) { return p->module->types; }
static Name intern(Parser *p, Str text) { return name_of(p->module->names, text); }

static void report(Parser *p, Loc at, const char *format, va_list args) {
    if (p->failed) return;
    Text text = {.arena = arena_of(p)};
    text_vprintf(&text, format, args);
    diag_report(p->module->diags, DIAG_ir_text, at, text.at);
    p->failed = true;
    p->token = (Token){.kind = TOKEN_end, .loc = at, .text = STR("")};
}

/* At the token. */
static void fail(Parser *p, const char *format, ...) PRINTF_LIKE(2, 3);
static void fail(Parser *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(p, p->token.loc, format, args);
    va_end(args);
}

/* At the token before, which has been read already. */
static void fail_before(Parser *p, const char *format, ...) PRINTF_LIKE(2, 3);
static void fail_before(Parser *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(p, p->before, format, args);
    va_end(args);
}

/* ---- tokens */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
static bool is_word_char(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

static const char *skip_word(const char *s) {
    while (is_word_char(*s)) s++;
    return s;
}

static const char *skip_string(const char *s) {
    for (s++; *s && *s != '"'; s++)
        if (*s == '\\' && s[1]) s++;
    return *s ? s + 1 : s;
}

static const char *skip_digits(const char *s) {
    while (is_digit(*s)) s++;
    return s;
}

static const char *skip_number(const char *s) {
    if (*s == '-') s++;
    if (is_letter(*s)) return skip_word(s); /* -inf */
    s = skip_digits(s);
    if (*s == '.') s = skip_digits(s + 1);
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-') s++;
        s = skip_digits(s);
    }
    return s;
}

static const char *skip_space(const char *s) {
    for (;; s++) {
        if (*s == ';')
            while (*s && *s != '\n') s++;
        if (*s != ' ' && *s != '\t' && *s != '\n' && *s != '\r') return s;
    }
}

/* After a sigil: a word, a number, or a string with a number behind it. */
static const char *skip_name(const char *s) { return skip_word(*s == '"' ? skip_string(s) : s); }

static const char *scan(Token *token, const char *s) {
    const char *start = s;
    if (*s == 0) token->kind = TOKEN_end;
    else if (*s == '%' || *s == '@' || *s == '#') {
        token->kind = *s == '%' ? TOKEN_value : *s == '@' ? TOKEN_symbol : TOKEN_label;
        s = skip_name(++start);
    } else if (is_letter(*s)) token->kind = TOKEN_word, s = skip_word(s);
    else if (is_digit(*s) || (*s == '-' && s[1] != '>')) token->kind = TOKEN_number, s = skip_number(s);
    else if (*s == '"') token->kind = TOKEN_string, s = skip_string(s);
    else token->kind = TOKEN_mark, s += *s == '-' ? 2 : 1;
    token->text = (Str){start, (int)(s - start)};
    token->prime = token->kind == TOKEN_value && *s == '\'';
    return token->prime ? s + 1 : s;
}

static void advance(Parser *p) {
    if (p->failed) return;
    const char *text = p->file->text.at, *s = skip_space(text + p->at);
    p->before = p->token.loc;
    p->token = (Token){.loc = p->file->base + (Loc)(s - text)};
    p->at = (int)(scan(&p->token, s) - text);
}

static void go_to(Parser *p, int offset) {
    p->at = offset;
    advance(p);
}

static bool is(const Parser *p, const char *text) {
    bool plain = p->token.kind == TOKEN_word || p->token.kind == TOKEN_mark;
    return plain && str_eq(p->token.text, str_of(text));
}

static bool accept(Parser *p, const char *text) {
    if (!is(p, text)) return false;
    advance(p);
    return true;
}

static void expect(Parser *p, const char *text) {
    if (!accept(p, text)) fail(p, "expected '%s', found '%.*s'", text, STR_ARG(p->token.text));
}

static Str expect_kind(Parser *p, TokenKind kind, const char *what) {
    Str text = p->token.text;
    if (p->token.kind == kind) advance(p);
    else fail(p, "expected %s, found '%.*s'", what, STR_ARG(text));
    return text;
}

/* ---- names and numbers */

static int hex_digit(char c) { return is_digit(c) ? c - '0' : (c | 32) - 'a' + 10; }

/* The text that a string stands for; `used`: characters of it, quotes included. */
static Str unquote(Parser *p, Str s, int *used) {
    Text text = {.arena = arena_of(p)};
    int i = 1;
    for (; i < s.len && s.at[i] != '"'; i++) {
        if (s.at[i] != '\\' || i + 1 >= s.len) text_char(&text, s.at[i]);
        else if (s.at[++i] == 'n') text_char(&text, '\n');
        else if (s.at[i] == 'x' && i + 2 < s.len) {
            text_char(&text, (char)(hex_digit(s.at[i + 1]) * 16 + hex_digit(s.at[i + 2])));
            i += 2;
        } else text_char(&text, s.at[i]);
    }
    *used = i + 1;
    return text_str(&text);
}

static Str plain_text(Parser *p, Str s) {
    int used;
    return s.len && s.at[0] == '"' ? unquote(p, s, &used) : s;
}

/* A word, or a string where the name is odd. */
static Str parse_name(Parser *p) {
    Str text = p->token.text;
    if (p->token.kind == TOKEN_string || p->token.kind == TOKEN_word) advance(p);
    else fail(p, "expected a name, found '%.*s'", STR_ARG(text));
    return plain_text(p, text);
}

/* The name behind %name.1, without the number that made it unique; NULL for %12. */
static Name base_name(Parser *p, Str text) {
    if (text.len == 0 || is_digit(text.at[0])) return NULL;
    if (text.at[0] == '"') {
        int used;
        return intern(p, unquote(p, text, &used));
    }
    int end = text.len;
    while (end > 0 && is_digit(text.at[end - 1])) end--;
    bool numbered = end < text.len && end > 1 && text.at[end - 1] == '.';
    return intern(p, numbered ? (Str){text.at, end - 1} : text);
}

static int64_t parse_integer(Parser *p) {
    Str text = expect_kind(p, TOKEN_number, "a number");
    bool negative = text.len && text.at[0] == '-';
    uint64_t value = 0;
    for (int i = negative; i < text.len && is_digit(text.at[i]); i++)
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    return (int64_t)(negative ? 0 - value : value);
}

static Func *parse_func_reference(Parser *p) {
    Str text = expect_kind(p, TOKEN_symbol, "a function");
    Func *func = map_get(&p->funcs, PTR_KEY(intern(p, plain_text(p, text))));
    if (!func) fail_before(p, "there is no function '%.*s'", STR_ARG(text));
    return func;
}

/* ---- types */

const Type *ir_type_from_name(Types *types, Str name) {
    static const char *const names[] = {"bool", "int8_t",  "uint8_t",  "int16_t", "uint16_t", "int",
                                        "uint", "int64_t", "uint64_t", "half",    "float",    "double"};
    if (str_eq(name, STR("void"))) return type_basic(types, TYPE_void);
    if (str_eq(name, STR("tape"))) return type_basic(types, TYPE_tape);
    for (int i = 0; i < TYPE_double - TYPE_bool + 1; i++)
        if (str_eq(name, str_of(names[i]))) return type_basic(types, (TypeKind)(TYPE_bool + i));
    for (int i = 0; i < TYPE_double - TYPE_bool + 1; i++) {
        int length = (int)strlen(names[i]), count = 0, at = length;
        if (!str_starts(name, names[i]) || name.len > length + 3) continue;
        while (at < name.len && is_digit(name.at[at])) count = count * 10 + (name.at[at++] - '0');
        if (at == name.len && count > 0)
            return type_vector(types, type_basic(types, (TypeKind)(TYPE_bool + i)), count);
    }
    return NULL;
}

static const Type *parse_type(Parser *p);

static const Type *with_handle(Parser *p, const Type *buffer) {
    return type_make(types_of(p), TYPE_buffer, TYPE_HANDLE, NULL, NULL, buffer->number, buffer->args, 1);
}

static const Type *parse_buffer(Parser *p, Str name) {
    bool handle = str_ends(name, ".Handle");
    Str base = handle ? (Str){name.at, name.len - 7} : name;
    for (int kind = BUFFER_structured; kind <= BUFFER_constant; kind++) {
        if (!str_eq(base, str_of(type_buffer_name((BufferKind)kind)))) continue;
        const Type *element = type_basic(types_of(p), TYPE_void);
        if (accept(p, "<")) {
            element = parse_type(p);
            expect(p, ">");
            handle = accept(p, ".");
            if (handle) expect(p, "Handle");
        }
        const Type *buffer = type_buffer(types_of(p), (BufferKind)kind, element);
        return handle ? with_handle(p, buffer) : buffer;
    }
    return NULL;
}

static Space parse_space(Parser *p) {
#define SPACE(space, word)                                                                                   \
    if (*word && accept(p, word)) return space;
#include "ir/words.def"
    return SPACE_any;
}

static const Type *parse_type(Parser *p) {
    bool quoted = p->token.kind == TOKEN_string;
    Str name = parse_name(p);
    const Type *type = quoted ? NULL : ir_type_from_name(types_of(p), name);
    if (!type && !quoted) type = parse_buffer(p, name);
    const Record *record = type ? NULL : map_get(&p->records, PTR_KEY(intern(p, name)));
    if (record) type = record->type;
    if (!type) {
        fail_before(p, "there is no type '%.*s'", STR_ARG(name));
        return type_basic(types_of(p), TYPE_int);
    }
    for (;;) {
        if (accept(p, "*")) type = type_address(types_of(p), type, parse_space(p));
        else if (accept(p, "[")) {
            bool sized = !is(p, "]");
            type = sized ? type_array(types_of(p), type, parse_integer(p))
                         : type_unsized_array(types_of(p), type);
            expect(p, "]");
        } else return type;
    }
}

typedef VEC(const Type *) TypeVec;

/* -> T, or -> (T, ...) */
static TypeVec parse_result_types(Parser *p) {
    TypeVec types = {0};
    if (!accept(p, "->")) return types;
    bool many = accept(p, "(");
    do vec_push(arena_of(p), &types, parse_type(p));
    while (many && accept(p, ","));
    if (many) expect(p, ")");
    return types;
}

/* ---- operands */

static Val *parse_const(Parser *p) {
    Str text = p->token.text;
    const Type *type = NULL;
    if (accept(p, "true")) return ir_const_int(p->module, type_basic(types_of(p), TYPE_bool), 1);
    if (accept(p, "false")) return ir_const_int(p->module, type_basic(types_of(p), TYPE_bool), 0);
    bool real = false;
    for (int i = 0; i < text.len; i++)
        real |= text.at[i] == '.' || (text.at[i] | 32) == 'e' || text.at[i] == 'n';
    int64_t integer = 0;
    if (real) advance(p);
    else integer = parse_integer(p);
    if (accept(p, ":")) type = parse_type(p);
    if (!type) type = type_basic(types_of(p), real ? TYPE_float : TYPE_int);
    if (type_is_float(type)) return ir_const_real(p->module, type, number_parse(text.at, NULL));
    return type_is_scalar(type) ? ir_const_int(p->module, type, integer) : ir_const_zero(p->module, type);
}

static Val *parse_operand(Parser *p) {
    Str text = p->token.text;
    if (p->token.kind == TOKEN_value) {
        Val *v = map_get(&p->vals, PTR_KEY(intern(p, text)));
        if (!v) fail(p, "there is no value '%.*s'", STR_ARG(text));
        advance(p);
        return v;
    }
    bool starts =
        p->token.kind == TOKEN_number || is(p, "true") || is(p, "false") || is(p, "inf") || is(p, "nan");
    if (starts) return parse_const(p);
    fail(p, "expected an operand, found '%.*s'", STR_ARG(text));
    return NULL;
}

static void parse_operands(Parser *p, Inst *inst) {
    do {
        Val *v = parse_operand(p);
        if (v) inst_add_arg(inst, v);
    } while (accept(p, ","));
}

/* From now on the name as written means v. */
static void bind(Parser *p, Str text, Val *v, bool prime) {
    if (prime) v->flags |= VAL_DIFF;
    v->name = base_name(p, text);
    map_put(arena_of(p), &p->vals, PTR_KEY(intern(p, text)), v);
}

/* ---- instructions */

typedef struct Result {
    Str text;
    bool prime;
    const Type *type; /* NULL: not shown */
} Result;
typedef VEC(Result) ResultVec;

static ResultVec parse_results(Parser *p) {
    ResultVec results = {0};
    if (p->token.kind != TOKEN_value) return results;
    do {
        Result result = {.text = p->token.text, .prime = p->token.prime};
        expect_kind(p, TOKEN_value, "a value");
        if (accept(p, ":")) result.type = parse_type(p);
        vec_push(arena_of(p), &results, result);
    } while (accept(p, ","));
    expect(p, "=");
    return results;
}

static void parse_region(Parser *p, Region *region);

static void set_types(Parser *p, Inst *inst, const Type *const *types, int count) {
    if (count != inst->nresults) fail(p, "%d results, but %d types", inst->nresults, count);
    for (int i = 0; i < inst->nresults && i < count; i++) inst->results[i]->type = types[i];
}

static void add_regions(Parser *p, Inst *inst, int count) {
    inst->regions = arena_array(arena_of(p), Region *, count);
    inst->nregions = count;
    for (int i = 0; i < count; i++) inst->regions[i] = region_new(p->func, inst);
}

static void end_region(Region *region) {
    if (region->last && op_has(region->last->op, OP_ENDS)) return;
    Builder b = build_at_end(region);
    build_yield(&b, NULL, 0);
}

static void parse_if(Parser *p, Inst *inst) {
    parse_operands(p, inst);
    TypeVec types = parse_result_types(p);
    set_types(p, inst, types.at, types.count);
    add_regions(p, inst, 2);
    parse_region(p, inst->regions[0]);
    if (accept(p, "else")) parse_region(p, inst->regions[1]);
    else end_region(inst->regions[1]);
}

static SwitchCase parse_case(Parser *p) {
    VEC(int64_t) values = {0};
    while (p->token.kind == TOKEN_number) {
        vec_push(arena_of(p), &values, parse_integer(p));
        if (!accept(p, ",")) break;
    }
    return (SwitchCase){values.at, values.count, NULL};
}

static void parse_switch(Parser *p, Inst *inst) {
    VEC(SwitchCase) cases = {0};
    VEC(Region *) regions = {0};
    parse_operands(p, inst);
    TypeVec types = parse_result_types(p);
    set_types(p, inst, types.at, types.count);
    for (bool more = true; more && !p->failed;) {
        more = accept(p, "case");
        if (more) {
            SwitchCase values = parse_case(p);
            vec_push(arena_of(p), &cases, values);
        } else expect(p, "default");
        vec_push(arena_of(p), &regions, region_new(p->func, inst));
        parse_region(p, vec_last(&regions));
    }
    inst->cases = cases.at;
    inst->ncases = cases.count;
    inst->regions = regions.at;
    inst->nregions = regions.count;
}

static void parse_label(Parser *p, Inst *inst) {
    if (p->token.kind != TOKEN_label) return;
    map_put(arena_of(p), &p->labels, PTR_KEY(intern(p, p->token.text)), inst);
    advance(p);
}

static LoopHints parse_hints(Parser *p) {
    LoopHints hints = {0};
    if (accept(p, "max_iters")) hints.max_iters = parse_integer(p);
    if (accept(p, "unroll")) hints.unroll = parse_integer(p);
    if (accept(p, "checkpoint")) hints.checkpoint = parse_integer(p);
    hints.together = accept(p, "together");
    hints.few = accept(p, "few");
    hints.wide = accept(p, "wide");
    hints.ways = accept(p, "ways");
    hints.takes = accept(p, "takes");
    return hints;
}

/* (%i: int = 0, ...) of the condition: names, types and initial values. */
static ResultVec parse_carried(Parser *p, Inst *inst) {
    ResultVec carried = {0};
    if (!accept(p, "(")) return carried;
    do {
        Result param = {.text = p->token.text, .prime = p->token.prime};
        expect_kind(p, TOKEN_value, "a carried value");
        expect(p, ":");
        param.type = parse_type(p);
        expect(p, "=");
        Val *initial = parse_operand(p);
        if (initial) inst_add_arg(inst, initial);
        vec_push(arena_of(p), &carried, param);
    } while (accept(p, ","));
    expect(p, ")");
    return carried;
}

/* (%i, ...) of the other regions, where their names differ. */
static ResultVec parse_own_params(Parser *p, ResultVec carried) {
    ResultVec own = {0};
    if (!accept(p, "(")) return carried;
    do {
        Result param = {.text = p->token.text, .prime = p->token.prime};
        if (own.count < carried.count) param.type = carried.at[own.count].type;
        expect_kind(p, TOKEN_value, "a carried value");
        vec_push(arena_of(p), &own, param);
    } while (accept(p, ","));
    expect(p, ")");
    if (own.count != carried.count) fail(p, "%d values are carried", carried.count);
    return own;
}

static void parse_loop_region(Parser *p, Inst *inst, int index, ResultVec params) {
    Region *region = inst->regions[index];
    for (int i = 0; i < params.count && !p->failed; i++)
        bind(p, params.at[i].text, region_add_param(region, params.at[i].type, NULL), params.at[i].prime);
    parse_region(p, region);
}

static void parse_loop(Parser *p, Inst *inst) {
    parse_label(p, inst);
    inst->hints = parse_hints(p);
    ResultVec carried = parse_carried(p, inst);
    if (carried.count != inst->nresults)
        fail(p, "%d results, but %d values are carried", inst->nresults, carried.count);
    if (p->failed) return;
    for (int i = 0; i < carried.count; i++) inst->results[i]->type = carried.at[i].type;
    add_regions(p, inst, 3);
    parse_loop_region(p, inst, 0, carried);
    expect(p, "do");
    parse_loop_region(p, inst, 1, parse_own_params(p, carried));
    if (accept(p, "step")) parse_loop_region(p, inst, 2, parse_own_params(p, carried));
    else inst->nregions = 2;
}

static void parse_block(Parser *p, Inst *inst) {
    parse_label(p, inst);
    TypeVec types = parse_result_types(p);
    set_types(p, inst, types.at, types.count);
    add_regions(p, inst, 1);
    parse_region(p, inst->regions[0]);
}

static void parse_call(Parser *p, Inst *inst) {
    inst->callee = parse_func_reference(p);
    expect(p, "(");
    if (!is(p, ")")) parse_operands(p, inst);
    expect(p, ")");
    if (inst->callee) set_types(p, inst, inst->callee->results, inst->callee->nresults);
}

static void parse_jump(Parser *p, Inst *inst) {
    Str label = expect_kind(p, TOKEN_label, "a label");
    inst->target = map_get(&p->labels, PTR_KEY(intern(p, label)));
    if (!inst->target) fail_before(p, "there is no label '%.*s'", STR_ARG(label));
    if (inst->target && inst->target->nresults) parse_operands(p, inst);
}

static void parse_text(Parser *p, Inst *inst) {
    inst->text = plain_text(p, expect_kind(p, TOKEN_string, "a string"));
    if (accept(p, ",")) parse_operands(p, inst);
}

static void parse_field(Parser *p, Inst *inst) {
    Val *address = parse_operand(p);
    if (!address) return;
    inst_add_arg(inst, address);
    expect(p, ",");
    if (p->token.kind == TOKEN_number) {
        inst->index = (int)parse_integer(p);
        return;
    }
    const Type *target = address->type->kind == TYPE_pointer ? address->type->args[0] : NULL;
    const Record *record = target && target->kind == TYPE_record ? type_record(target) : NULL;
    Name name = intern(p, expect_kind(p, TOKEN_word, "a field"));
    int nfields = record ? record->nfields : 0;
    while (inst->index < nfields && record->fields[inst->index].name != name) inst->index++;
    if (inst->index == nfields) fail_before(p, "there is no field '%s'", name->text);
}

static void parse_shuffle(Parser *p, Inst *inst) {
    Val *vector = parse_operand(p);
    if (!vector) return;
    inst_add_arg(inst, vector);
    expect(p, ",");
    int count = 0;
    if (accept(p, "[")) {
        do {
            int64_t lane = parse_integer(p);
            if (count < 4) inst->lanes[count++] = (uint8_t)lane;
        } while (accept(p, ","));
        expect(p, "]");
    } else {
        Str letters = expect_kind(p, TOKEN_word, "lanes");
        for (int i = 0; i < letters.len && count < 4; i++) {
            const char *found = memchr("xyzw", letters.at[i], 4);
            if (!found) fail_before(p, "there is no lane '%c'", letters.at[i]);
            else inst->lanes[count++] = (uint8_t)(found - "xyzw");
        }
    }
    inst->results[0]->type = type_vector(types_of(p), type_element(vector->type), count);
}

static void parse_atomic(Parser *p, Inst *inst) {
    static const char *const names[] = {
#define ATOMIC_KIND(kind, word) [kind] = word,
#include "ir/words.def"
    };
    Str word = expect_kind(p, TOKEN_word, "an operation");
    int count = (int)(sizeof names / sizeof *names);
    while (inst->index < count && !str_eq(word, str_of(names[inst->index]))) inst->index++;
    if (inst->index == count) fail_before(p, "there is no atomic operation '%.*s'", STR_ARG(word));
    else parse_operands(p, inst);
}

static void parse_global_reference(Parser *p, Inst *inst) {
    Str text = expect_kind(p, TOKEN_symbol, "a global");
    inst->global = map_get(&p->globals, PTR_KEY(intern(p, plain_text(p, text))));
    if (!inst->global) fail_before(p, "there is no global '%.*s'", STR_ARG(text));
}

/* yield, return: operands exist exactly if something is to be given. */
static void parse_end(Parser *p, Inst *inst) {
    const Region *region = inst->parent;
    const Inst *owner = region->owner;
    int wanted = owner ? owner->nresults : 0;
    if (owner && owner->op == OP_loop && region == owner->regions[0]) wanted = 1;
    if (inst->op == OP_return) wanted = p->func->nresults;
    if (wanted) parse_operands(p, inst);
}

static void parse_three(Parser *p, int numbers[3]) {
    expect(p, "(");
    for (int i = 0; i < 3; i++) {
        if (i) expect(p, ",");
        numbers[i] = (int)parse_integer(p);
    }
    expect(p, ")");
}

static void parse_apart(Parser *p, Inst *inst) {
    int numbers[3] = {0};
    if (!accept(p, "apart")) return;
    parse_three(p, numbers);
    bool fits = numbers[0] >= 0 && numbers[0] <= APART_NESTS && numbers[1] >= 0 && numbers[1] <= UINT8_MAX &&
                numbers[2] >= 0 && numbers[2] <= UINT8_MAX;
    if (!fits) fail(p, "no such mark of buffers that are apart");
    inst->apart = (ApartMark){(uint16_t)numbers[0], (uint8_t)numbers[1], (uint8_t)numbers[2]};
}

static void parse_flags(Parser *p, Inst *inst) {
    unsigned op = inst->op;
#define INST_FLAG(flag, word, is_of)                                                                         \
    if (*word && (is_of) && accept(p, word)) inst->flags |= flag;
#include "ir/words.def"
}

static void parse_rest(Parser *p, Inst *inst) {
    parse_flags(p, inst);
    switch ((Op)inst->op) {
    case OP_if: parse_if(p, inst); break;
    case OP_switch: parse_switch(p, inst); break;
    case OP_loop: parse_loop(p, inst); break;
    case OP_block: parse_block(p, inst); break;
    case OP_call: parse_call(p, inst); break;
    case OP_break:
    case OP_continue: parse_jump(p, inst); break;
    case OP_yield:
    case OP_return: parse_end(p, inst); break;
    case OP_printf:
    case OP_abort: parse_text(p, inst); break;
    case OP_field: parse_field(p, inst); break;
    case OP_shuffle: parse_shuffle(p, inst); break;
    case OP_var: inst->type = parse_type(p); break;
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_reach:
        inst->type = parse_type(p);
        parse_operands(p, inst);
        break;
    case OP_global: parse_global_reference(p, inst); break;
    case OP_atomic: parse_atomic(p, inst); break;
    case OP_buffer_elem:
    case OP_buffer_bytes:
        parse_apart(p, inst);
        parse_operands(p, inst);
        break;
    case OP_barrier:
    case OP_thread_id: inst->index = (int)parse_integer(p); break;
    default:
        if (op_info[inst->op].nargs) parse_operands(p, inst);
        break;
    }
}

static void finish_results(Parser *p, Inst *inst, ResultVec results) {
    for (int i = 0; i < inst->nresults && !p->failed; i++) {
        Val *v = inst->results[i];
        if (results.at[i].type) v->type = results.at[i].type;
        if (!v->type) v->type = ir_result_type(p->module, inst);
        if (!v->type) fail_before(p, "the result needs a type: %%%.*s: T = ...", STR_ARG(results.at[i].text));
        else if (ir_target(v->type) && ir_space(v->type) == SPACE_any) ir_follow_space(inst);
        bind(p, results.at[i].text, v, results.at[i].prime);
    }
}

static void parse_inst(Parser *p, Region *region) {
    ResultVec results = parse_results(p);
    int tag = accept(p, "diff") ? TAG_diff : accept(p, "mixed") ? TAG_mixed : TAG_primal;
    Loc loc = p->token.loc;
    Str word = expect_kind(p, TOKEN_word, "an operation");
    int op = (int)(intptr_t)map_get(&p->ops, PTR_KEY(intern(p, word))) - 1;
    if (op < 0) fail_before(p, "there is no operation '%.*s'", STR_ARG(word));
    if (p->failed) return;
    if (op_info[op].nresults >= 0 && op_info[op].nresults != results.count)
        fail(p, "'%s' has %d results", op_info[op].name, op_info[op].nresults);
    Inst *inst = inst_new(p->func, (Op)op, 0, results.count, 0);
    inst->tag = (uint8_t)tag;
    inst->loc = loc;
    inst_append(region, inst);
    parse_rest(p, inst);
    finish_results(p, inst, results);
}

static void parse_region(Parser *p, Region *region) {
    expect(p, "{");
    while (!p->failed && !is(p, "}")) {
        if (p->token.kind == TOKEN_end) fail(p, "the region does not end");
        else parse_inst(p, region);
    }
    end_region(region);
    expect(p, "}");
}

/* ---- functions */

static bool parse_param_flag(Parser *p, Param *param) {
#define PARAM_FLAG(flag, word)                                                                               \
    if (accept(p, word)) return param->flags = (uint16_t)(param->flags | flag), true;
#include "ir/words.def"
    return false;
}

static Dir parse_direction(Parser *p) {
#define DIRECTION(dir, word)                                                                                 \
    if (accept(p, word)) return dir;
#include "ir/words.def"
    return DIR_in;
}

static Param parse_param(Parser *p) {
    Param param = {0};
    param.name = base_name(p, expect_kind(p, TOKEN_value, "a parameter"));
    expect(p, ":");
    param.dir = (uint8_t)parse_direction(p);
    param.type = parse_type(p);
    while (parse_param_flag(p, &param)) continue;
    bool by_address = param_goes_by_address(param.dir, param.type);
    if (accept(p, "by_address")) by_address = true;
    else if (accept(p, "by_value")) by_address = false;
    if (by_address) param.flags |= PARAM_BY_ADDRESS;
    return param;
}

static void parse_custom(Parser *p, Custom *custom) {
    expect(p, "(");
    while (!p->failed && !accept(p, ")")) {
        if (accept(p, "fwd")) custom->fwd = parse_func_reference(p);
        else if (accept(p, "bwd")) custom->bwd = parse_func_reference(p);
        else if (accept(p, "substitute")) custom->substitute = parse_func_reference(p);
        else if (accept(p, "primal")) custom->primal = parse_func_reference(p);
        else expect(p, ",");
    }
}

static void parse_derivation(Parser *p, Func *func, int mode) {
    expect(p, "(");
    func->derivation = (Derivation){parse_func_reference(p), mode};
    expect(p, ")");
}

static bool parse_attribute(Parser *p, Func *func) {
#define FUNC_FLAG(flag, word)                                                                                \
    if (accept(p, word)) return func->flags |= flag, true;
#include "ir/words.def"
    if (accept(p, "threads")) return parse_three(p, func->group_size), true;
    if (accept(p, "fwd_diff")) return parse_derivation(p, func, 1), true;
    if (accept(p, "bwd_diff")) return parse_derivation(p, func, 2), true;
    bool incomplete = accept(p, "incomplete");
    if (!accept(p, "custom")) return false;
    func->custom.complete = !incomplete;
    parse_custom(p, &func->custom);
    return true;
}

static void skip_braces(Parser *p) {
    int depth = 0;
    do {
        depth += is(p, "{") - is(p, "}");
        advance(p);
    } while (depth > 0 && p->token.kind != TOKEN_end);
}

static void parse_func_header(Parser *p, Func *func) {
    VEC(Param) params = {0};
    func->loc = p->token.loc;
    advance(p); /* its name */
    expect(p, "(");
    while (!p->failed && !is(p, ")")) {
        Param param = parse_param(p);
        vec_push(arena_of(p), &params, param);
        if (!accept(p, ",")) break;
    }
    expect(p, ")");
    func_set_params(func, params.at, params.count);
    TypeVec results = parse_result_types(p);
    func_set_results(func, results.at, results.count);
    while (parse_attribute(p, func)) continue;
    bool has_body = is(p, "{");
    if (!has_body) return;
    Body body = {func, (int)(p->token.loc - p->file->base)};
    vec_push(arena_of(p), &p->bodies, body);
    skip_braces(p);
}

/* The names of the parameters as written, which tell values of one name apart. */
static void bind_params(Parser *p, Func *func) {
    go_to(p, (int)(func->loc - p->file->base));
    int index = 0, depth = 0;
    for (; !is(p, "{") && p->token.kind != TOKEN_end; advance(p)) {
        depth += is(p, "(") - is(p, ")");
        if (p->token.kind == TOKEN_value && depth == 1 && index < func->nparams)
            bind(p, p->token.text, func->body->params[index++], p->token.prime);
    }
}

static void parse_body(Parser *p, Body body) {
    p->func = body.func;
    p->vals = p->labels = (Map){0};
    func_begin(body.func);
    bind_params(p, body.func);
    go_to(p, body.offset);
    parse_region(p, body.func->body);
}

/* ---- records and globals */

static const int *parse_field_map(Parser *p) {
    VEC(int) map = {0};
    expect(p, "[");
    while (!p->failed && !is(p, "]")) {
        vec_push(arena_of(p), &map, (int)parse_integer(p));
        if (!accept(p, ",")) break;
    }
    expect(p, "]");
    return map.at ? map.at : arena_array(arena_of(p), int, 1);
}

static void parse_record_diff(Parser *p, Record *record) {
    record->has_diff = true;
    if (!accept(p, "none")) record->diff.differential = parse_type(p);
    if (accept(p, "map")) record->diff.field_map = parse_field_map(p);
    if (accept(p, "zero")) record->diff.zero = parse_func_reference(p);
    if (accept(p, "add")) record->diff.add = parse_func_reference(p);
    record->diff.opaque = accept(p, "opaque");
    record->diff.optional = accept(p, "optional");
}

static void parse_record(Parser *p, Record *record) {
    VEC(Field) fields = {0};
    advance(p); /* its name */
    expect(p, "{");
    while (!p->failed && !is(p, "}")) {
        Field field = {.name = intern(p, parse_name(p))};
        if (field.name->len == 0) field.name = NULL;
        expect(p, ":");
        field.type = parse_type(p);
        vec_push(arena_of(p), &fields, field);
    }
    expect(p, "}");
    record->fields = fields.at;
    record->nfields = fields.count;
    if (accept(p, "diff")) parse_record_diff(p, record);
}

static GlobalKind parse_global_kind(Parser *p) {
#define GLOBAL_KIND(kind, word)                                                                              \
    if (accept(p, word)) return kind;
#include "ir/words.def"
    fail(p, "there is no such kind of global");
    return GLOBAL_const;
}

static const Record *record_inside(const Type *type) {
    while (type->kind == TYPE_array) type = type_element(type);
    return type->kind == TYPE_record ? type_record(type) : NULL;
}

/* `state` has those that were looked at: the record itself, or NULL while it is. */
static bool holds_itself(Parser *p, Map *state, const Record *record) {
    if (map_has(state, PTR_KEY(record))) return !map_get(state, PTR_KEY(record));
    map_put(arena_of(p), state, PTR_KEY(record), NULL);
    for (int i = 0; i < record->nfields; i++) {
        const Record *inside = record_inside(record->fields[i].type);
        if (inside && holds_itself(p, state, inside)) return true;
    }
    map_put(arena_of(p), state, PTR_KEY(record), (void *)(uintptr_t)record);
    return false;
}

static void check_records(Parser *p) {
    Map state = {0};
    for (int i = 0; i < p->new_records.count && !p->failed; i++)
        if (holds_itself(p, &state, p->new_records.at[i])) fail(p, "a record holds itself");
}

/* Records may be defined behind what is made of them. */
static void check_data(Parser *p) {
    for (int i = 0; i < p->module->globals.count && !p->failed; i++) {
        const Global *global = p->module->globals.at[i];
        if (!global->ndata || global_data_fit(global)) continue;
        fail(p, "the data of '%s' are not what its type holds", global->name->text);
    }
}

static void parse_data(Parser *p, Global *global) {
    ValVec data = {0};
    expect(p, "[");
    while (!p->failed && !is(p, "]")) {
        vec_push(arena_of(p), &data, parse_const(p));
        if (!accept(p, ",")) break;
    }
    expect(p, "]");
    global->data = data.at ? data.at : arena_array(arena_of(p), Val *, 1);
    global->ndata = data.count;
}

static void parse_global(Parser *p) {
    GlobalKind kind = parse_global_kind(p);
    Loc loc = p->token.loc;
    Name name = intern(p, plain_text(p, expect_kind(p, TOKEN_symbol, "a name")));
    expect(p, ":");
    const Type *type = parse_type(p);
    if (p->failed) return;
    Global *global = global_new(p->module, kind, name->text, type);
    global->loc = loc;
    map_put(arena_of(p), &p->globals, PTR_KEY(name), global);
    if (accept(p, "=")) parse_data(p, global);
    if (accept(p, "init")) global->init = parse_func_reference(p);
    if (accept(p, "std140")) global->layout = LAYOUT_std140;
}

/* ---- the readings */

static void declare_record(Parser *p) {
    Name name = intern(p, parse_name(p));
    if (map_has(&p->records, PTR_KEY(name))) fail_before(p, "there are two records '%s'", name->text);
    Record *record = record_new(types_of(p), name->len ? name : NULL);
    map_put(arena_of(p), &p->records, PTR_KEY(name), record);
    vec_push(arena_of(p), &p->module->records, record);
    vec_push(arena_of(p), &p->new_records, record);
}

static void declare_func(Parser *p) {
    Name name = intern(p, plain_text(p, expect_kind(p, TOKEN_symbol, "a name")));
    if (map_has(&p->funcs, PTR_KEY(name))) fail_before(p, "there are two functions '%s'", name->text);
    Func *func = func_new(p->module, name->text);
    map_put(arena_of(p), &p->funcs, PTR_KEY(name), func);
    vec_push(arena_of(p), &p->new_funcs, func);
}

static void declare(Parser *p) {
    go_to(p, 0);
    while (p->token.kind != TOKEN_end) {
        if (is(p, "{")) skip_braces(p);
        else if (accept(p, "struct")) declare_record(p);
        else if (accept(p, "func")) declare_func(p);
        else advance(p);
    }
}

static void define(Parser *p) {
    go_to(p, 0);
    while (p->token.kind != TOKEN_end) {
        if (accept(p, "struct")) parse_record(p, p->new_records.at[p->nrecords++]);
        else if (accept(p, "func")) parse_func_header(p, p->new_funcs.at[p->nfuncs++]);
        else if (accept(p, "global")) parse_global(p);
        else fail(p, "expected struct, global or func, found '%.*s'", STR_ARG(p->token.text));
    }
}

bool ir_parse(Module *module, SourceFile *file) {
    Parser p = {.module = module, .file = file};
    for (int op = 0; op < OP_COUNT; op++)
        map_put(module->arena, &p.ops, PTR_KEY(name_from(module->names, op_info[op].name)),
                (void *)(intptr_t)(op + 1));
    declare(&p);
    if (!p.failed) define(&p);
    check_records(&p);
    check_data(&p);
    for (int i = 0; i < p.bodies.count && !p.failed; i++) parse_body(&p, p.bodies.at[i]);
    return !p.failed;
}
