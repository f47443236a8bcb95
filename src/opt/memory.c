/* Which memory an address can mean.
 *
 * Fields and elements lead back to the object they are in: a local variable, a parameter, a global; or to
 * something unknown, such as a buffer or a pointer that was loaded. An object is private if nothing but
 * addresses derived from it in this function reaches it: variables, and out and inout parameters (nobody else
 * may touch these during the call), as long as their address is not given away. Giving it to a call is fine,
 * since the callee cannot keep it; only `ref` can. */
#include "opt.h"

static void note_inst(void *user, Inst *inst) {
    Memory *memory = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *arg = ir_resolve(inst->args[i]);
        if (ir_is_private_use(inst, i)) continue;
        const Val *base = ir_base(arg);
        if (base->kind != VAL_const) memory->given_away[base->id] = true;
    }
}

void opt_memory_init(Memory *memory, Arena *arena, Func *func) {
    *memory = (Memory){.func = func, .nids = func->nvals};
    memory->given_away = arena_array(arena, bool, func->nvals);
    region_walk(func->body, note_inst, memory);
}

static Object param_object(const Memory *memory, const Val *v) {
    const Func *func = memory->func;
    if (v->region != func->body) return (Object){0};
    const Param *param = &func->params[v->index];
    bool known = (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_ref;
    if (!known) return (Object){0};
    return (Object){.key = v, .is_private = !memory->given_away[v->id], .is_constant = param->dir == DIR_in};
}

static Object global_object(const Global *global) {
    bool constant = global->kind == GLOBAL_const || global->kind == GLOBAL_uniform;
    return (Object){.key = global, .is_constant = constant};
}

Object opt_memory_object(const Memory *memory, const Val *address) {
    const Val *base = ir_base(address);
    if (base->kind == VAL_const || base->id >= memory->nids) return (Object){0};
    if (base->kind == VAL_param) return param_object(memory, base);
    if (base->inst->op == OP_global) return global_object(base->inst->global);
    if (base->inst->op != OP_var) return (Object){0};
    return (Object){.key = base, .is_private = !memory->given_away[base->id]};
}

const Val *opt_memory_buffer(const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    bool is_element = root->kind == VAL_inst && root->inst->op == OP_buffer_elem;
    return is_element ? ir_resolve(root->inst->args[0]) : NULL;
}

const Inst *opt_memory_sum(const Inst *store) {
    const Val *sum = store->op == OP_store ? inst_operand(store, 1) : NULL;
    bool is_free = sum && sum->kind == VAL_inst && inst_has(sum->inst, INST_FREE);
    int terms = !is_free ? 0 : sum->inst->op == OP_add ? 2 : sum->inst->op == OP_sub;
    for (int i = 0; i < terms; i++) {
        const Val *before = inst_operand(sum->inst, i);
        bool is_load = before->kind == VAL_inst && before->inst->op == OP_load;
        if (is_load && inst_operand(before->inst, 0) == inst_operand(store, 0)) return before->inst;
    }
    return NULL;
}
