/* Small arrays of a buffer that are copied number by number.
 *
 *     for (i = 0; i < count; i++) { float a[4][4]; memcpy(a, items.data[i].at, sizeof(float [4][4])); ... }
 *
 * gcc takes 64 bytes that are copied at once for one number, which it makes no vectors of, and so none of the
 * loop around. Of numbers that are copied one after the other it makes one copy again where that is
 * better. */
#include "emit/clike/clike.h"

enum { MOST_NUMBERS = 16 };

/* How many numbers, all of one type, which is set; 0: it is something else. */
static int64_t count_numbers(const Type *type, const Type **number) {
    int64_t count = 1;
    for (; type->kind == TYPE_array && type_length(type) > 0 && count <= MOST_NUMBERS; type = type->args[0])
        count *= type_length(type);
    *number = type;
    bool is_number = type->kind == TYPE_float || type->kind == TYPE_double;
    return is_number && count <= MOST_NUMBERS ? count : 0;
}

/* An element that is in range whatever the round: what is around may become vectors. */
static bool is_of_round(const Inst *copy, const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    const Inst *loop = copy->parent->owner;
    return loop && loop->op == OP_loop && root->kind == VAL_inst && root->inst->op == OP_buffer_elem &&
           root->inst->parent == copy->parent && inst_has(root->inst, INST_UNCHECKED);
}

static void define(Printer *p, const char *name, const char *number, int64_t count) {
    const char *unroll = clike_helper(p, "SLOPE_WRITE_OUT");
    text_printf(&p->helpers,
                "/* gcc takes an array that is copied at once for one number, and makes no vectors of a loop "
                "around. */\n"
                "static inline void %s(%s *to, const %s *from) {\n"
                "#if defined(__GNUC__) && !defined(__clang__)\n"
                "    %s(%lld)\n    for (int i = 0; i < %lld; i++) to[i] = from[i];\n"
                "#else\n    memcpy(to, from, %lld * sizeof *to);\n#endif\n}\n",
                name, number, number, unroll, (long long)count, (long long)count, (long long)count);
}

static const char *first_number(Printer *p, const Type *type, Value array) {
    const char *text = clike_format(p, "&%s", clike_in(p, array, LEVEL_primary));
    for (; type->kind == TYPE_array; type = type->args[0]) text = clike_format(p, "%s[0]", text);
    return text;
}

bool clike_copy_apart(Printer *p, const Inst *copy, const Type *type, Value to, Value from) {
    const Type *number;
    int64_t count = count_numbers(type, &number);
    if (!p->dialect->has_rows || p->options->level < 2 || count < 2 || to.raw || from.raw || to.constant)
        return false;
    if (!is_of_round(copy, copy->args[0]) && !is_of_round(copy, copy->args[1])) return false;
    const char *name = clike_format(p, "slope_copy_%s_%lld", clike_word(p, number), (long long)count);
    if (clike_begin_helper(p, name)) define(p, name, clike_type(p, number), count);
    clike_line(p, "%s(%s, %s);", name, first_number(p, type, to), first_number(p, type, from));
    return true;
}
