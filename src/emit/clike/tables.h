/* Tables of helpers from a file of rows, which is named before: #define HELPER_ROWS
 * "emit/clike/helpers.def". */
#include "emit/clike/clike.h"

static const HelperRow helpers[] = {
#define HELPER(name, needs, text) {name, needs, text},
#define FAMILY(prefix, on_signed, on_other)
#include HELPER_ROWS
};

static const HelperFamily families[] = {
#define HELPER(name, needs, text)
#define FAMILY(prefix, on_signed, on_other) {prefix, on_signed, on_other},
#include HELPER_ROWS
};
