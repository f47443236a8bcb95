/* Which `ref` parameters nothing else leads to, so that LLVM and C can be told: those of derivatives to which
 * they add.
 *
 * They are `ref` since two of them may be one object, as in f(x, x). Mostly they are not: in every call they
 * are parts of variables of the caller, or of parameters that themselves are alone, and the other addresses
 * of the call are elsewhere. No variable that is given away otherwise counts, and no function but those that
 * were made here, which keep no addresses. Compilers would find out themselves where they inline, but give up
 * on variables with many uses, and cannot know that tapes are elsewhere. */
#include "emit/reach.h"

typedef VEC(const Inst *) Calls;

typedef struct Search {
    Reached *reached;
    Map calls; /* Func -> Calls, of functions that were made here */
    Map given; /* Func -> bool *: by Val.id, variables and parameters whose address goes elsewhere */
    bool *now; /* that of the function being looked at */
} Search;

bool emit_is_outlined(const Func *func) {
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_APART) return true;
    return false;
}

static bool is_made(const Func *func) {
    return ((func->flags & FUNC_GENERATED) || emit_is_outlined(func)) && !(func->flags & FUNC_EXPORT);
}

static void note_use(Search *s, const Inst *inst, int operand) {
    bool shares = inst->op == OP_call && is_made(inst->callee) && ir_role(inst, operand) == ROLE_share;
    if (shares || ir_is_private_use(inst, operand)) return;
    const Val *root = ir_root(inst->args[operand]);
    if (!val_is_const(root)) s->now[root->id] = true;
}

static void note_inst(void *user, Inst *inst) {
    Search *s = user;
    for (int i = 0; i < inst->nargs; i++) note_use(s, inst, i);
    if (inst->op != OP_call || !is_made(inst->callee)) return;
    Calls *calls = map_get(&s->calls, PTR_KEY(inst->callee));
    if (!calls) {
        calls = arena_new(s->reached->arena, Calls);
        map_put(s->reached->arena, &s->calls, PTR_KEY(inst->callee), calls);
    }
    vec_push(s->reached->arena, calls, inst);
}

static bool is_alone(Search *s, const Func *func, int index);

/* Does the caller reach the object by nothing but what is derived from this? */
static bool is_own(Search *s, const Func *caller, const Val *base) {
    const bool *given = map_get(&s->given, PTR_KEY(caller));
    if (val_is_const(base) || given[base->id]) return false;
    if (base->kind == VAL_inst) return base->inst->op == OP_var;
    if (base->region != caller->body) return false;
    const Param *param = &caller->params[base->index];
    if (!(param->flags & PARAM_BY_ADDRESS) || param->dir == DIR_in) return false;
    return param->dir != DIR_ref || is_alone(s, caller, base->index);
}

/* Where nothing but fields and elements leads to both, they can be compared. */
static bool is_elsewhere(const Val *other, const Val *address) {
    if (!ir_target(other->type)) return true;
    const Val *base = ir_base(address);
    if (ir_root((Val *)(uintptr_t)other) != base) return true;
    return ir_base(other) == base && ir_are_apart(other, address);
}

static bool is_alone_in(Search *s, const Inst *call, int index) {
    const Val *address = ir_resolve(call->args[index]);
    if (!is_own(s, call->func, ir_base(address))) return false;
    for (int i = 0; i < call->nargs; i++)
        if (i != index && !is_elsewhere(ir_resolve(call->args[i]), address)) return false;
    return true;
}

static bool is_alone(Search *s, const Func *func, int index) {
    const Param *param = &func->params[index];
    const Calls *calls = map_get(&s->calls, PTR_KEY(func));
    if (map_has(&s->reached->alone, PTR_KEY(param))) return true;
    if (!calls || reached_func(s->reached, func)->is_cyclic) return false;
    for (int i = 0; i < calls->count; i++)
        if (!is_alone_in(s, calls->at[i], index)) return false;
    map_put(s->reached->arena, &s->reached->alone, PTR_KEY(param), s->reached);
    return true;
}

void reach_alone(Reached *reached) {
    Search s = {.reached = reached};
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        s.now = arena_array(reached->arena, bool, func->nvals + 1);
        map_put(reached->arena, &s.given, PTR_KEY(func), s.now);
        region_walk(func->body, note_inst, &s);
    }
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        for (int k = 0; k < func->nparams && is_made(func); k++)
            if ((func->params[k].flags & PARAM_BY_ADDRESS) && func->params[k].dir == DIR_ref)
                is_alone(&s, func, k);
    }
}

bool emit_is_alone(const Reached *reached, const Param *param) {
    return param->dir != DIR_ref || map_has(&reached->alone, PTR_KEY(param));
}
