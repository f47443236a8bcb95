/* Functions for what C has no operators for: vectors, elements of buffers, sums of objects. Each is made when
 * first used. */
#include "emit/clike/clike.h"

static const Type *lane_type(const Type *type) { return type->kind == TYPE_vector ? type->args[0] : type; }

/* ---- values in memory: half is stored as bits */

static const char *to_memory(Printer *p, const Type *type, const char *text) {
    if (type->kind != TYPE_half) return text;
    return clike_format(p, "%s(%s)", clike_helper(p, "slope_half_bits"), text);
}

const char *clike_lane(Printer *p, const Type *vector, const char *text, int lane) {
    const char *place = clike_format(p, "%s.%c", text, "xyzw"[lane]);
    if (lane_type(vector)->kind != TYPE_half) return place;
    return clike_format(p, "%s(%s)", clike_helper(p, "slope_half_value"), place);
}

const char *clike_make_vector(Printer *p, const Type *vector) {
    const char *type = clike_type(p, vector), *name = clike_format(p, "make_%s", type);
    if (!clike_begin_helper(p, name)) return name;
    Text text = {.arena = &p->arena};
    text_printf(&text, "static inline %s %s(", type, name);
    for (int i = 0; i < type_count(vector); i++)
        text_printf(&text, "%s%s", i ? ", " : "",
                    clike_declare_value(p, vector->args[0], clike_format(p, "%c", "xyzw"[i])));
    text_printf(&text, ") {\n    %s v = {", type);
    for (int i = 0; i < type_count(vector); i++)
        text_printf(&text, "%s%s", i ? ", " : "",
                    to_memory(p, vector->args[0], clike_format(p, "%c", "xyzw"[i])));
    text_add(&text, STR("};\n    return v;\n}\n"));
    text_add(&p->helpers, text_str(&text));
    return name;
}

/* One lane after the other: NVIDIA's compilers begin with the last, and stores that do not ascend are not put
 * together on their way to memory. */
const char *clike_put_vector(Printer *p, const Type *vector) {
    const char *type = clike_type(p, vector), *name = clike_format(p, "slope_put_%s", type);
    if (!clike_begin_helper(p, name)) return name;
    Text text = {.arena = &p->arena};
    text_printf(&text, "static inline void %s(%s *to, %s v) {\n", name, type, type);
    for (int i = 0; i < type_count(vector); i++)
        text_printf(&text, "    to->%c = v.%c;\n", "xyzw"[i], "xyzw"[i]);
    text_add(&text, STR("}\n"));
    text_add(&p->helpers, text_str(&text));
    return name;
}

/* Compilers of C++ warn of members that {0} does not mention. */
const char *clike_zeros(Printer *p, const Type *type) {
    static const char *const lanes[] = {"", "{0}", "{0, 0}", "{0, 0, 0}", "{0, 0, 0, 0}"};
    if (type->kind == TYPE_vector && type_count(type) <= 4) return lanes[type_count(type)];
    if (type->kind == TYPE_buffer) return "{0, 0}";
    bool is_row = type->kind == TYPE_array &&
                  type_is_scalar(type->args[0]); /* clang warns of {0} for rows of rows in C++ */
    return is_row || type_is_scalar(type) ? "{0}" : clike_helper(p, "SLOPE_ZERO");
}

const char *clike_zero(Printer *p, const Type *type) {
    if (type_is_scalar(type)) {
        if (type->kind == TYPE_bool) return "false";
        return type->kind == TYPE_double ? "0.0" : type_is_float(type) ? "0.0f" : "0";
    }
    if (type->kind == TYPE_pointer || type->kind == TYPE_tape)
        return clike_format(p, "(%s)0", clike_type(p, type));
    const char *name = clike_format(p, "zero_%s", clike_word(p, type));
    if (clike_begin_helper(p, name))
        text_printf(&p->helpers, "static inline %s %s(void) {\n    %s v = %s;\n    return v;\n}\n",
                    clike_type(p, type), name, clike_type(p, type), clike_zeros(p, type));
    return clike_format(p, "%s()", name);
}

/* ---- elementwise */

static const char *op_name(Printer *p, const Inst *inst) {
    const Type *from = inst->args[inst->op == OP_select ? 1 : 0]->type, *to = inst->results[0]->type;
    const char *name = clike_format(p, "%s_%s", clike_word(p, from), op_info[inst->op].name);
    if (inst->op == OP_select && inst->args[0]->type->kind == TYPE_vector)
        name = clike_format(p, "%s_lanes", name);
    if (inst->nargs == 2 && inst->args[1]->type != from)
        name = clike_format(p, "%s_%s", name, clike_word(p, inst->args[1]->type));
    return inst->op == OP_convert || inst->op == OP_bitcast
               ? clike_format(p, "%s_to_%s", clike_word(p, from), clike_word(p, to))
               : name;
}

static void elementwise(Printer *p, const Inst *inst, const char *name) {
    const Type *to = inst->results[0]->type;
    const char *make = clike_make_vector(p, to);
    Text text = {.arena = &p->arena};
    text_printf(&text, "static inline %s %s(", clike_type(p, to), name);
    for (int i = 0; i < inst->nargs; i++)
        text_printf(&text, "%s%s %c", i ? ", " : "", clike_type(p, inst->args[i]->type), 'a' + i);
    text_printf(&text, ") {\n    return %s(", make);
    for (int lane = 0; lane < type_count(to); lane++) {
        Value args[3];
        for (int i = 0; i < inst->nargs; i++) {
            const char *arg = clike_format(p, "%c", 'a' + i);
            bool is_vector = inst->args[i]->type->kind == TYPE_vector;
            args[i] =
                clike_value(is_vector ? clike_lane(p, inst->args[i]->type, arg, lane) : arg, LEVEL_primary);
        }
        Value value =
            clike_scalar_op(p, (Op)inst->op, lane_type(inst->args[0]->type), lane_type(to), args, NULL);
        text_printf(&text, "%s%s", lane ? ", " : "", value.text);
    }
    text_add(&text, STR(");\n}\n"));
    text_add(&p->helpers, text_str(&text));
}

static void reduction(Printer *p, const Inst *inst, const char *name) {
    const Type *from = inst->args[0]->type;
    text_printf(&p->helpers, "static inline bool %s(%s a) {\n    return ", name, clike_type(p, from));
    for (int i = 0; i < type_count(from); i++)
        text_printf(&p->helpers, "%sa.%c", i ? inst->op == OP_any ? " || " : " && " : "", "xyzw"[i]);
    text_add(&p->helpers, STR(";\n}\n"));
}

/* ---- lanes */

/* As functions take it: any number but a uint64_t is an int64_t, of which C's compilers need not be told. */
Value clike_given_index(Printer *p, const Inst *inst, Value index) {
    if (inst->args[1]->type->kind != TYPE_uint64 || !p->dialect->thread_local_) return index;
    index.text = clike_format(p, "(int64_t)%s", clike_in(p, index, LEVEL_unary));
    index.level = LEVEL_unary;
    return index;
}

static Value extract(Printer *p, const Inst *inst, const Value *args) {
    int64_t lane = 0;
    const Type *vector = inst->args[0]->type;
    int count = type_count(vector);
    if (val_is_int(ir_resolve(inst->args[1]), &lane) || count == 1) {
        if (lane < 0 || lane >= count) lane = count - 1;
        return clike_value(clike_lane(p, vector, clike_in(p, args[0], LEVEL_primary), (int)lane),
                           LEVEL_primary);
    }
    const char *name = clike_format(p, "%s_lane", clike_word(p, vector));
    if (clike_begin_helper(p, name)) {
        Text text = {.arena = &p->arena};
        text_printf(&text, "static inline %s %s(%s v, int64_t i) {\n    return ",
                    clike_type(p, vector->args[0]), name, clike_type(p, vector));
        for (int i = 0; i + 1 < count; i++)
            text_printf(&text, "i == %d ? %s : ", i, clike_lane(p, vector, "v", i));
        text_printf(&text, "%s;\n}\n", clike_lane(p, vector, "v", count - 1));
        text_add(&p->helpers, text_str(&text));
    }
    return clike_call(p, name, (Value[]){args[0], clike_given_index(p, inst, args[1])}, 2);
}

static Value insert(Printer *p, const Inst *inst, const Value *args) {
    const Type *vector = inst->args[0]->type;
    int count = type_count(vector);
    const char *name = clike_format(p, "%s_insert", clike_word(p, vector));
    if (clike_begin_helper(p, name)) {
        Text text = {.arena = &p->arena};
        text_printf(&text, "static inline %s %s(%s v, int64_t i, %s) {\n    switch (i) {\n",
                    clike_type(p, vector), name, clike_type(p, vector),
                    clike_declare_value(p, vector->args[0], "x"));
        for (int i = 0; i < count - 1; i++)
            text_printf(&text, "    case %d: v.%c = %s; break;\n", i, "xyzw"[i],
                        to_memory(p, vector->args[0], "x"));
        text_printf(&text, "    default: v.%c = %s; break;\n    }\n    return v;\n}\n", "xyzw"[count - 1],
                    to_memory(p, vector->args[0], "x"));
        text_add(&p->helpers, text_str(&text));
    }
    return clike_call(p, name, (Value[]){args[0], clike_given_index(p, inst, args[1]), args[2]}, 3);
}

static Value shuffle(Printer *p, const Inst *inst, const Value *args) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    if (to->kind != TYPE_vector)
        return clike_value(clike_lane(p, from, clike_in(p, args[0], LEVEL_primary), inst->lanes[0]),
                           LEVEL_primary);
    char lanes[5] = {0};
    for (int i = 0; i < type_count(to); i++) lanes[i] = "xyzw"[inst->lanes[i] & 3];
    const char *name = clike_format(p, "%s_%s", clike_word(p, from), lanes);
    if (clike_begin_helper(p, name)) {
        const char *make = clike_make_vector(p, to);
        Text text = {.arena = &p->arena};
        text_printf(&text, "static inline %s %s(%s v) {\n    return %s(", clike_type(p, to), name,
                    clike_type(p, from), make);
        for (int i = 0; i < type_count(to); i++)
            text_printf(&text, "%s%s", i ? ", " : "", clike_lane(p, from, "v", inst->lanes[i]));
        text_add(&text, STR(");\n}\n"));
        text_add(&p->helpers, text_str(&text));
    }
    return clike_call(p, name, args, 1);
}

static Value splat(Printer *p, const Inst *inst, const Value *args) {
    const Type *to = inst->results[0]->type;
    const char *name = clike_format(p, "splat_%s", clike_word(p, to));
    if (clike_begin_helper(p, name)) {
        const char *make = clike_make_vector(p, to);
        text_printf(&p->helpers, "static inline %s %s(%s) {\n    return %s(", clike_type(p, to), name,
                    clike_declare_value(p, to->args[0], "x"), make);
        for (int i = 0; i < type_count(to); i++) text_add(&p->helpers, i ? STR(", x") : STR("x"));
        text_add(&p->helpers, STR(");\n}\n"));
    }
    return clike_call(p, name, args, 1);
}

Value clike_vector_op(Printer *p, const Inst *inst, const Value *args) {
    switch ((Op)inst->op) {
    case OP_vec: return clike_call(p, clike_make_vector(p, inst->results[0]->type), args, inst->nargs);
    case OP_splat: return splat(p, inst, args);
    case OP_extract: return extract(p, inst, args);
    case OP_insert: return insert(p, inst, args);
    case OP_shuffle: return shuffle(p, inst, args);
    case OP_detach: return args[0];
    default: break;
    }
    const char *name = op_name(p, inst);
    if (clike_begin_helper(p, name)) {
        if (inst->op == OP_any || inst->op == OP_all) reduction(p, inst, name);
        else elementwise(p, inst, name);
    }
    return clike_call(p, name, args, inst->nargs);
}

/* ---- bits as another type */

const char *clike_bitcast(Printer *p, const Type *from, const Type *to) {
    const char *name = clike_format(p, "slope_bits_%s_to_%s", clike_word(p, from), clike_word(p, to));
    if (!clike_begin_helper(p, name)) return name;
    Text text = {.arena = &p->arena};
    text_printf(&text, "static inline %s %s(%s) {\n    %s;\n", clike_type(p, to), name,
                clike_declare_value(p, from, "a"), clike_declare(p, to, "b"));
    if (from->kind == TYPE_half)
        text_printf(&text, "    const slope_half bits = %s(a);\n", clike_helper(p, "slope_half_bits"));
    text_printf(&text, "    memcpy(&b, &%s, sizeof b);\n", from->kind == TYPE_half ? "bits" : "a");
    if (to->kind == TYPE_half)
        text_printf(&text, "    return %s(b);\n}\n", clike_helper(p, "slope_half_value"));
    else text_add(&text, STR("    return b;\n}\n"));
    text_add(&p->helpers, text_str(&text));
    return name;
}

/* ---- memory that may not be aligned */

const char *clike_bytes(Printer *p, const char *what, const Type *type) {
    const char *name = clike_format(p, "slope_%s_%s", what, clike_word(p, type));
    if (!clike_begin_helper(p, name)) return name;
    if (strcmp(what, "load") == 0)
        text_printf(&p->helpers,
                    "static inline %s %s(const void *from) {\n    %s;\n    memcpy(&v, from, sizeof v);\n    "
                    "return v;\n}\n",
                    clike_declare(p, type, ""), name, clike_declare(p, type, "v"));
    else
        text_printf(&p->helpers, "static inline void %s(void *to, %s) {\n    memcpy(to, &v, sizeof v);\n}\n",
                    name, clike_declare(p, type, "v"));
    return name;
}

/* ---- buffers: out of range, reads give zero and writes are dropped */

/* A language that has templates can tell what range the index has. In C no type of an index but uint64_t is
 * one that compilers warn of. */
static const char *any_index(const Printer *p) {
    return p->dialect->within ? "template <typename Index>\n" : "";
}

static const char *index_type(const Printer *p) { return p->dialect->within ? "Index" : "int64_t"; }

static const char *range_test(Printer *p) {
    return p->dialect->within ? clike_format(p, "%s(i, b.count)", clike_helper(p, p->dialect->within))
                              : "(uint64_t)i < b.count";
}

/* To be read only: zeros if it is out of range. */
static void buffer_read(Printer *p, const char *name, const char *buffer, const Type *element) {
    const Type *pointer = type_pointer(p->module->types, element);
    bool is_array = element->kind == TYPE_array, is_nested = is_array && element->args[0]->kind == TYPE_array;
    const char *head =
        clike_declare(p, pointer, clike_format(p, "%s(%s b, %s i)", name, buffer, index_type(p)));
    const char *place = clike_format(p, "%sb.data[i]", is_array ? "" : "&");
    const char *qualifier = is_nested ? "" : "const "; /* which C does not let come in later */
    if (p->dialect->thread_local_) {
        text_printf(&p->helpers,
                    "static inline %s%s {\n    static %s; /* stays zero */\n    return "
                    "SLOPE_LIKELY((uint64_t)i < b.count) ? %s "
                    ": %snone;\n}\n",
                    qualifier, head, clike_declare(p, element, "none"), place, is_array ? "" : "&");
        return;
    }
    int64_t size = type_layout(element, LAYOUT_scalar).stride;
    if (size > p->largest) p->largest = size;
    const char *zeros = clike_helper(p, "slope_zeros"), *test = range_test(p);
    text_printf(&p->helpers, "%sstatic inline %s%s {\n    return %s ? %s : (%s)(void *)%s;\n}\n",
                any_index(p), qualifier, head, test, place, clike_declare(p, pointer, ""), zeros);
}

/* Where the thread has memory for what is dropped. */
static void buffer_at_thread(Printer *p, const char *name, const char *buffer, const Type *element) {
    const Type *pointer = type_pointer(p->module->types, element);
    const char *head =
        clike_format(p, "%s(%s, %s b, %s i)", name, p->dialect->thread_param, buffer, index_type(p));
    int64_t size = type_layout(element, LAYOUT_scalar).stride;
    if (size > p->largest) p->largest = size;
    const char *none = clike_helper(p, "slope_none"), *test = range_test(p);
    text_printf(&p->helpers,
                "%sstatic inline %s {\n    if (%s) return %sb.data[i];\n"
                "    return (%s)%s(thread, sizeof b.data[0]);\n}\n",
                any_index(p), clike_declare(p, pointer, head), test, element->kind == TYPE_array ? "" : "&",
                clike_declare(p, pointer, ""), none);
}

static void buffer_at(Printer *p, const char *name, const char *buffer, const Type *element) {
    if (!p->dialect->thread_local_) {
        buffer_at_thread(p, name, buffer, element);
        return;
    }
    clike_helper(p, "SLOPE_THREAD_LOCAL");
    const Type *pointer = type_pointer(p->module->types, element);
    bool is_array = element->kind == TYPE_array;
    text_printf(
        &p->helpers,
        "static inline %s {\n    static SLOPE_THREAD_LOCAL %s;\n    if ((uint64_t)i < b.count) return "
        "%sb.data[i];\n"
        "    memset(&none, 0, sizeof none);\n    return %snone;\n}\n",
        clike_declare(p, pointer, clike_format(p, "%s(%s b, int64_t i)", name, buffer)),
        clike_declare(p, element, "none"), is_array ? "" : "&", is_array ? "" : "&");
}

static void buffer_get(Printer *p, const char *name, const char *buffer, const Type *element) {
    const char *likely = clike_helper(p, "SLOPE_LIKELY"), *zero = clike_zero(p, element),
               *test = range_test(p);
    text_printf(&p->helpers, "%sstatic inline %s %s(%s b, %s i) {\n    return %s(%s) ? b.data[i] : %s;\n}\n",
                any_index(p), clike_declare(p, element, ""), name, buffer, index_type(p), likely, test, zero);
}

static void buffer_set(Printer *p, const char *name, const char *buffer, const Type *element) {
    const char *likely = clike_helper(p, "SLOPE_LIKELY"), *test = range_test(p);
    bool by_lanes = p->dialect->puts_lanes && element->kind == TYPE_vector;
    const char *put =
        by_lanes ? clike_format(p, "%s(&b.data[i], v)", clike_put_vector(p, element)) : "b.data[i] = v";
    text_printf(&p->helpers, "%sstatic inline void %s(%s b, %s i, %s) {\n    if (%s(%s)) %s;\n}\n",
                any_index(p), name, buffer, index_type(p), clike_declare(p, element, "v"), likely, test, put);
}

const char *clike_buffer(Printer *p, const char *what, const Type *buffer) {
    const Type *element = buffer->args[0];
    const char *type = clike_type(p, buffer), *name = clike_format(p, "%s_%s", type, what);
    if (!clike_begin_helper(p, name)) return name;
    clike_helper(p, "SLOPE_LIKELY");
    if (strcmp(what, "at") == 0) buffer_at(p, name, type, element);
    else if (strcmp(what, "read") == 0) buffer_read(p, name, type, element);
    else if (strcmp(what, "get") == 0) buffer_get(p, name, type, element);
    else buffer_set(p, name, type, element);
    return name;
}
