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
