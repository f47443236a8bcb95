/* What printf is given: as the runtime wants to know it, whoever formats it. */
#include "emit/reach.h"

RtPrintKind emit_print_kind(const Type *element) {
    if (type_is_float(element)) return RT_PRINT_double;
    if (element->kind == TYPE_bool) return RT_PRINT_bool;
    bool wide = element->kind >= TYPE_int64;
    /* As C promotes: what fits an int is one. */
    if (type_is_signed(element) || type_bits(element) < 32) return wide ? RT_PRINT_int64 : RT_PRINT_int;
    return wide ? RT_PRINT_uint64 : RT_PRINT_uint;
}

/* Strings are the only pointers to arrays of unknown size. */
static bool is_text(const Type *type) {
    return type->kind == TYPE_pointer && type->args[0]->kind == TYPE_array && type_length(type->args[0]) < 0;
}

/* Pointers and the like print as numbers. */
static RtPrintArg print_arg(const Type *type) {
    bool plain = type_is_scalar(type) || type->kind == TYPE_vector;
    if (is_text(type)) return (RtPrintArg){RT_PRINT_text, 1};
    if (!plain) return (RtPrintArg){RT_PRINT_uint64, 1};
    return (RtPrintArg){(uint8_t)emit_print_kind(type_element(type)), (uint8_t)type_count(type)};
}

int emit_print_args(const Inst *inst, RtPrintArg *args) {
    int lanes = 0;
    for (int i = 0; i < inst->nargs; i++) {
        args[i] = print_arg(inst->args[i]->type);
        lanes += args[i].lanes;
    }
    return lanes;
}
