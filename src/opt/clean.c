/* What inlining leaves, and other passes that bring in code, is brought into order: several passes in a row. */
#include "opt.h"

void opt_clean_in_place(Func *func, SroaOptions options) {
    opt_sroa_func(func, options);
    if (options.flat) opt_ssa_flat(func);
    else opt_ssa(func);
    opt_share(func);
    opt_simplify(func);
    opt_cse(func);
}

void opt_clean(Func *func, SroaOptions options) {
    opt_clean_in_place(func, options);
    opt_licm(func);
    opt_simplify(func);
    opt_dce(func);
}
