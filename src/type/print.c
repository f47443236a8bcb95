/* Types as a user would write them, for messages and dumps. */
#include "type.h"

static const char *const plain_names[TYPE_KIND_COUNT] = {
    [TYPE_error] = "<error>",   [TYPE_void] = "void",         [TYPE_bool] = "bool",
    [TYPE_int8] = "int8_t",     [TYPE_uint8] = "uint8_t",     [TYPE_int16] = "int16_t",
    [TYPE_uint16] = "uint16_t", [TYPE_int] = "int",           [TYPE_uint] = "uint",
    [TYPE_int64] = "int64_t",   [TYPE_uint64] = "uint64_t",   [TYPE_half] = "half",
    [TYPE_float] = "float",     [TYPE_double] = "double",     [TYPE_string] = "String",
    [TYPE_none] = "none",       [TYPE_null] = "nullptr",      [TYPE_list] = "initializer list",
    [TYPE_tape] = "tape",       [TYPE_optional] = "Optional", [TYPE_pair] = "DifferentialPair",
    [TYPE_tuple] = "Tuple",     [TYPE_vector] = "vector",     [TYPE_ptr_pair] = "DifferentialPtrPair",
    [TYPE_matrix] = "matrix"};

static const char *const buffer_names[] = {
    [BUFFER_structured] = "StructuredBuffer",   [BUFFER_rw_structured] = "RWStructuredBuffer",
    [BUFFER_append] = "AppendStructuredBuffer", [BUFFER_consume] = "ConsumeStructuredBuffer",
    [BUFFER_bytes] = "ByteAddressBuffer",       [BUFFER_rw_bytes] = "RWByteAddressBuffer",
    [BUFFER_constant] = "ConstantBuffer",
};

const char *type_buffer_name(BufferKind kind) { return buffer_names[kind]; }

static void print_list(Text *out, const Type *const *args, int nargs) {
    for (int i = 0; i < nargs; i++) {
        if (i) text_add(out, STR(", "));
        type_print(out, args[i]);
    }
}

static void print_angled(Text *out, const Type *const *args, int nargs) {
    text_char(out, '<');
    print_list(out, args, nargs);
    text_char(out, '>');
}

static void print_name(Text *out, const Type *type) {
    const char *name = type->name ? type->name->text : plain_names[type->kind];
    text_add(out, str_of(name ? name : "?"));
}

/* Interfaces that are joined are called I<@> & J<@, @>, with a place for each argument. */
static void print_joined(Text *out, const Type *type) {
    int next = 0;
    for (const char *at = type->name->text; *at; at++) {
        if (*at == '@') type_print(out, type->args[next++]);
        else text_char(out, *at);
    }
}

/* The arguments belong to what is before the point in the name of a member type: A<float>.Differential. */
static void print_generic(Text *out, const Type *type) {
    const char *member = type->name ? strrchr(type->name->text, '.') : NULL;
    if (!type->nargs) print_name(out, type);
    else if (type->kind == TYPE_interface && type->name && strchr(type->name->text, '@'))
        print_joined(out, type);
    else if (!member) print_name(out, type), print_angled(out, type->args, type->nargs);
    else {
        text_add(out, (Str){type->name->text, (int)(member - type->name->text)});
        print_angled(out, type->args, type->nargs);
        text_add(out, str_of(member));
    }
}

/* float3, float3x4; in full where the element is not a plain scalar or a count is not a number. */
static void print_shape(Text *out, const Type *type) {
    bool is_short = type_is_scalar(type->args[0]);
    for (int i = 1; i < type->nargs; i++) is_short &= type->args[i]->kind == TYPE_number;
    if (type->flags & TYPE_COLUMN_MAJOR) text_add(out, STR("column_major "));
    if (!is_short) {
        print_generic(out, type);
        return;
    }
    print_name(out, type->args[0]);
    for (int i = 1; i < type->nargs; i++)
        text_printf(out, i > 1 ? "x%lld" : "%lld", (long long)type->args[i]->number);
}

static void print_array(Text *out, const Type *type) {
    type_print(out, type->args[0]);
    text_char(out, '[');
    if (type->nargs == 2) type_print(out, type->args[1]);
    text_char(out, ']');
}

static void print_buffer(Text *out, const Type *type) {
    text_add(out, str_of(type_buffer_name((BufferKind)type->number)));
    if (type->args[0]->kind != TYPE_void) print_angled(out, type->args, 1);
    if (type->flags & TYPE_HANDLE) text_add(out, STR(".Handle"));
}

static void print_function(Text *out, const Type *type) {
    text_add(out, STR("functype("));
    bool throws = type->flags & TYPE_THROWS;
    for (int i = 1; i < type->nargs - throws; i++) {
        if (i > 1) text_add(out, STR(", "));
        if (type_function_drops(type, i)) text_add(out, STR("no_diff "));
        type_print(out, type->args[i]);
    }
    text_char(out, ')');
    if (throws) {
        const Type *error = type->args[type->nargs - 1];
        bool is_pair = error->kind == TYPE_pair; /* of optionals, where a pair is thrown */
        if (is_pair) error = error->args[0];
        text_add(out, is_pair ? STR(" throws DifferentialPair<") : STR(" throws "));
        type_print(out, error->kind == TYPE_optional ? error->args[0] : error);
        if (is_pair) text_char(out, '>');
    }
    text_add(out, STR(" -> "));
    type_print(out, type->args[0]);
}

/* ---- numbers */

static void print_factor(Text *out, const Type *atom) {
    bool needs_parens = atom->kind == TYPE_apply && atom->nargs == 2;
    if (needs_parens) text_char(out, '(');
    type_print(out, atom);
    if (needs_parens) text_char(out, ')');
}

static void print_product(Text *out, const Type *product, int64_t factor) {
    if (factor == -1) text_char(out, '-');
    else if (factor != 1) text_printf(out, "%lld * ", (long long)factor);
    for (int i = 0; i < product->nargs; i++) {
        if (i) text_add(out, STR(" * "));
        print_factor(out, product->args[i]);
    }
}

static void print_sum(Text *out, const Type *sum) {
    for (int i = 0; i < sum->nargs; i++) {
        int64_t factor = sum->args[i]->number;
        bool subtracts = i > 0 && factor < 0;
        if (i) text_add(out, subtracts ? STR(" - ") : STR(" + "));
        print_product(out, sum->args[i], subtracts ? (int64_t)(0 - (uint64_t)factor) : factor);
    }
    uint64_t magnitude = sum->number < 0 ? 0 - (uint64_t)sum->number : (uint64_t)sum->number;
    if (sum->number) text_printf(out, " %c %llu", sum->number < 0 ? '-' : '+', (unsigned long long)magnitude);
}

/* An operator of the front end, by the name it gave: infix with two operands. */
static void print_apply(Text *out, const Type *type) {
    if (type->nargs == 2) {
        print_factor(out, type->args[0]);
        text_char(out, ' ');
        print_name(out, type);
        text_char(out, ' ');
        print_factor(out, type->args[1]);
        return;
    }
    print_name(out, type);
    char first = type->name ? type->name->text[0] : 0;
    bool is_word = first == '_' || (first >= 'a' && first <= 'z');
    if (type->nargs == 1 && !is_word) {
        print_factor(out, type->args[0]);
        return;
    }
    text_char(out, '(');
    if (type->nargs == 1 && type->args[0]->kind == TYPE_param) print_name(out, type->args[0]);
    else print_list(out, type->args, type->nargs);
    text_char(out, ')');
}

static void print_call(Text *out, const char *name, const Type *const *args, int nargs) {
    text_printf(out, "%s(", name);
    print_list(out, args, nargs);
    text_char(out, ')');
}

/* Without the `each` that a pack has elsewhere. */
static void print_pack(Text *out, const Type *pack) {
    if (pack->kind == TYPE_param) print_name(out, pack);
    else type_print(out, pack);
}

/* __trimFirst(...) so many times */
static void print_slice(Text *out, const Type *pack, int64_t number) {
    int64_t front = number & 0xFFFFFFFF, back = number >> 32;
    for (int64_t i = 0; i < front; i++) text_add(out, STR("__trimFirst("));
    for (int64_t i = 0; i < back; i++) text_add(out, STR("__trimLast("));
    print_pack(out, pack);
    for (int64_t i = 0; i < front + back; i++) text_char(out, ')');
}

static void print_element(Text *out, const Type *type) {
    bool last = type->number < 0;
    int64_t steps = last ? -1 - type->number : type->number;
    text_add(out, last ? STR("__last(") : STR("__first("));
    print_slice(out, type->args[0], last ? steps << 32 : steps);
    text_char(out, ')');
}

void type_print(Text *out, const Type *type) {
    switch (type->kind) {
    case TYPE_error:
    case TYPE_void:
    case TYPE_bool:
    case TYPE_int8:
    case TYPE_uint8:
    case TYPE_int16:
    case TYPE_uint16:
    case TYPE_int:
    case TYPE_uint:
    case TYPE_int64:
    case TYPE_uint64:
    case TYPE_half:
    case TYPE_float:
    case TYPE_double:
    case TYPE_string:
    case TYPE_none:
    case TYPE_null:
    case TYPE_list:
    case TYPE_record:
    case TYPE_tape: print_name(out, type); break;
    case TYPE_param:
        if (type->flags & TYPE_IS_PACK_PARAM) text_add(out, STR("each "));
        print_name(out, type);
        break;
    case TYPE_vector:
    case TYPE_matrix: print_shape(out, type); break;
    case TYPE_array: print_array(out, type); break;
    case TYPE_pointer:
        if (type->flags & TYPE_READONLY) text_add(out, STR("Ptr<"));
        type_print(out, type->args[0]);
        text_add(out, type->flags & TYPE_READONLY ? STR(", Access.Read>") : STR("*"));
        break;
    case TYPE_buffer: print_buffer(out, type); break;
    case TYPE_tuple: print_name(out, type), print_angled(out, type->args, type->nargs); break;
    case TYPE_optional:
    case TYPE_pair:
    case TYPE_ptr_pair:
    case TYPE_struct:
    case TYPE_enum:
    case TYPE_interface: print_generic(out, type); break;
    case TYPE_function: print_function(out, type); break;
    case TYPE_assoc:
        type_print(out, type->args[0]);
        text_char(out, '.');
        print_name(out, type);
        break;
    case TYPE_pack: print_list(out, type->args, type->nargs); break;
    case TYPE_expand:
        text_add(out, STR("expand "));
        type_print(out, type->args[0]);
        break;
    case TYPE_each:
        if (type->args[0]->kind == TYPE_slice) text_add(out, STR("each "));
        type_print(out, type->args[0]);
        break;
    case TYPE_slice: print_slice(out, type->args[0], type->number); break;
    case TYPE_at: print_element(out, type); break;
    case TYPE_repeat: type_print(out, type->args[0]); break;
    case TYPE_branch: print_call(out, "__packBranch", type->args, type->nargs); break;
    case TYPE_number: text_printf(out, "%lld", (long long)type->number); break;
    case TYPE_sum: print_sum(out, type); break;
    case TYPE_product: print_product(out, type, type->number); break;
    case TYPE_apply: print_apply(out, type); break;
    case TYPE_KIND_COUNT: break;
    }
}

const char *type_text(Arena *arena, const Type *type) {
    Text text = {.arena = arena};
    type_print(&text, type);
    return text.at ? text.at : "";
}
