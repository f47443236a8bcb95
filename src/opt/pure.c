/* Pure: functions that nobody notices but by what they return.
 *
 * A function without effects writes nothing but its own variables and what it is given to write, and comes to
 * an end: a call of it whose results nobody wants can go (harmless). If it reads nothing else either, two
 * calls with the same values give the same (pure). Both follow from the body and from the functions that are
 * called, which are looked at first; one that leads back to itself may not end.
 *
 * Functions are looked at once their loops are simple enough to see that they end. */
#include "opt.h"

enum {
    MOST_CALLS = 200
}; /* on the way from one function to another; what is further down is not waited for */

typedef struct Purity {
    Arena *scratch;
    Map seen; /* Func -> itself */
    int depth;
    bool changed;
} Purity;

typedef struct Body {
    Purity *purity;
    Memory memory;
    Map jumps; /* loop -> InstVec: breaks and continues */
    bool harmless, reads;
} Body;

static void infer(Purity *p, Func *func);

static void note_jump(void *user, Inst *inst) {
    Body *body = user;
    if (inst->op != OP_break && inst->op != OP_continue) return;
    InstVec *list = map_get(&body->jumps, PTR_KEY(inst->target));
    if (!list) {
        list = arena_new(body->purity->scratch, InstVec);
        map_put(body->purity->scratch, &body->jumps, PTR_KEY(inst->target), list);
    }
    vec_push(body->purity->scratch, list, inst);
}

static bool is_own(const Body *body, const Val *address) {
    return opt_memory_object(&body->memory, address).is_private;
}

static void look_at_call(Body *body, const Inst *call) {
    if (body->purity->depth < MOST_CALLS) infer(body->purity, call->callee);
    body->harmless &= (call->callee->flags & (FUNC_PURE | FUNC_HARMLESS)) != 0;
    body->reads |= !(call->callee->flags & FUNC_PURE);
    for (int i = 0; i < call->nargs; i++) {
        const Param *param = &call->callee->params[i];
        if (!(param->flags & PARAM_BY_ADDRESS)) continue;
        Object object = opt_memory_object(&body->memory, call->args[i]);
        body->harmless &= param->dir == DIR_in || object.is_private;
        body->reads |= !object.is_private && !object.is_constant;
    }
}

static void look_at_memory(Body *body, const Inst *inst) {
    if (op_has(inst->op, OP_WRITES))
        body->harmless &= op_has(inst->op, OP_PLAIN) && is_own(body, inst->args[0]);
    int last = op_has(inst->op, OP_TWO_OBJECTS) ? 1 : 0;
    for (int i = 0; i <= last && op_has(inst->op, OP_READS); i++) {
        Object object = opt_memory_object(&body->memory, inst->args[i]);
        body->reads |= !object.is_private && !object.is_constant;
    }
}

static void look_at(void *user, Inst *inst) {
    Body *body = user;
    if (inst->op == OP_call) look_at_call(body, inst);
    else if (op_has(inst->op, OP_EFFECT | OP_TAPE)) body->harmless = false;
    else if (op_has(inst->op, OP_READS | OP_WRITES)) look_at_memory(body, inst);
    else if (inst->op == OP_loop) {
        const InstVec *jumps = map_get(&body->jumps, PTR_KEY(inst));
        body->harmless &= loop_is_finite(inst, jumps ? jumps->at : NULL, jumps ? jumps->count : 0);
    }
}

static void infer(Purity *p, Func *func) {
    if (map_has(&p->seen, PTR_KEY(func)))
        return; /* what is being looked at calls itself, and is not known to be pure */
    map_put(p->scratch, &p->seen, PTR_KEY(func), func);
    if (!func->body) return;
    p->depth++;
    Body body = {.purity = p, .harmless = true};
    opt_memory_init(&body.memory, p->scratch, func);
    region_walk(func->body, note_jump, &body);
    region_walk(func->body, look_at, &body);
    uint32_t flag = !body.harmless ? 0 : body.reads ? FUNC_HARMLESS : FUNC_PURE;
    p->changed |= (func->flags | flag) != func->flags;
    func->flags |= flag;
    p->depth--;
}

bool opt_infer_pure(Module *module, int first) {
    Purity p = {.scratch = arena_scratch(module->arena)};
    for (int i = first; i < module->funcs.count; i++) infer(&p, module->funcs.at[i]);
    arena_free(p.scratch);
    return p.changed;
}
