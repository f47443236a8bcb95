/* Elements of buffers that are read in several places, or in a loop: where they are is found out once, with
 * the test whether they are in range.
 *
 *     const Example *examples_at = Buffer_Example_read(examples, i);
 *     for (int32_t k = 0; k < 16; k++) sum += weights[k] * examples_at->x[k];
 *
 * Without that, compilers see a choice in every round of the loop, and gcc makes no vectors of it. */
#include "emit/clike/clike.h"

/* The address, and those of its parts. */
static bool is_only_read(const Printer *p, const Val *address) {
    const FuncState *at = p->at;
    for (int i = at->first_use[address->id]; i < at->first_use[address->id + 1]; i++) {
        const Inst *user = at->all_uses[i];
        for (int k = 0; k < user->nargs; k++) {
            if (ir_resolve(user->args[k]) != address) continue;
            Role role = ir_role(user, k);
            if (role == ROLE_part ? !is_only_read(p, user->results[0]) : role != ROLE_read) return false;
        }
    }
    return true;
}

bool clike_bind_element(Printer *p, const Inst *access) {
    const Val *v = access->results[0];
    const Type *element = v->type->args[0];
    if (access->op != OP_buffer_elem || !p->dialect->steers_loops || !type_record(element)) return false;
    if (!is_only_read(p, v)) return false;
    for (int i = 0; i < access->nargs; i++) clike_settle(p, access, i);
    const Global *owner = ir_owner(ir_resolve(access->args[0]));
    const char *name =
        clike_local(p, owner ? clike_format(p, "%s_at", clike_global_name(p, owner)) : "element");
    clike_line(p, "const %s *%s = %s;", clike_type(p, element), name, clike_guarded(p, access, true).text);
    Value bound = clike_value(name, LEVEL_primary);
    bound.constant = true;
    p->at->values[v->id] = bound;
    return true;
}
