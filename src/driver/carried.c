/* How many numbers the long loops of a function hand on, for who chooses between its derivatives: seen in a
 * copy of it that is cleaned. */
#include "driver/unit.h"
#include "opt/opt.h"

enum { MOST_INLINED = 400, MOST_WHOLE = 20000 }; /* instructions */

int64_t unit_most_carried(void *user, Func *func) {
    Region *body = func->body;
    uint32_t flags = func->flags;
    CloneMap map = {.module = func->module, .func = func};
    (void)user;
    func->body = clone_region(&map, body, NULL);
    opt_inline(func, (InlinePolicy){.max_size = MOST_INLINED, .max_whole = MOST_WHOLE, .any_form = true});
    opt_sroa_func(func, (SroaOptions){0});
    opt_ssa(func);
    opt_simplify(func);
    opt_dce(func);
    int64_t most = ir_most_carried(func);
    func->body = body;
    func->flags = flags;
    return most;
}
