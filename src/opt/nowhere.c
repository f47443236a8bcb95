/* What is done in a buffer that is none.
 *
 *     add(none, i, x)     ->     add.nowhere(none, i, x), in which what is read there is zero, and nothing is written
 *
 * Derivatives are given no buffer for the gradients of memory that has none, as the gradient memory of an inner
 * derivative. Nothing is in range there, also where nobody asks for ranges (--unchecked), and it is no fault of
 * the program's (--strict). Functions that are called with such a buffer have a form of their own, so that this
 * holds where nothing is inlined, too. Those put it into a reference mostly, and hand that on: what they call
 * becomes a part of them. */
#include "opt.h"

enum { MOST_PARAMS = 64, MOST_INLINED = 200 /* instructions */ };

typedef struct Form {
    const Func *of;
    uint64_t none; /* which of its parameters are none */
    Func *func;
} Form;

typedef struct Nowhere {
    Module *module;
    Arena *scratch;
    VEC(Form) forms;
    bool changed;
} Nowhere;

/* ---- an access */

static bool is_none(const Val *buffer) {
    return buffer->type->kind == TYPE_buffer && val_is_const(buffer) && val_is_zero(buffer);
}

static bool is_nowhere(const Inst *inst, int operand) {
    const Inst *element = operand < inst->nargs ? ir_element(inst->args[operand]) : NULL;
    return element && is_none(inst_operand(element, 0));
}

bool opt_drop_nowhere(Inst *inst) {
    bool is_atomic = inst->op == OP_atomic || inst->op == OP_atomic_cas;
    bool adds_none = inst->op == OP_acc && is_nowhere(inst, 1);
    if (!is_atomic && !op_has(inst->op, OP_PLAIN)) return false;
    if (is_nowhere(inst, 0) || adds_none) {
        for (int i = 0; i < inst->nresults; i++)
            inst->results[i]->forward = ir_const_zero(inst->func->module, inst->results[i]->type);
    } else if (inst->op == OP_copy && is_nowhere(inst, 1)) {
        Builder b = build_before(inst);
        build_zero(&b, inst->args[0]);
    } else {
        return false;
    }
    inst_remove(inst);
    return true;
}

/* ---- a call */

static uint64_t none_among(const Inst *call) {
    uint64_t none = 0;
    for (int i = 0; i < call->nargs && i < MOST_PARAMS; i++)
        if (is_none(inst_operand(call, i))) none |= (uint64_t)1 << i;
    return none;
}

static Func *form_of(Nowhere *n, Func *func, uint64_t none) {
    for (int i = 0; i < n->forms.count; i++)
        if (n->forms.at[i].of == func && n->forms.at[i].none == none) return n->forms.at[i].func;
    Func *form = clone_func(func, format_text(n->scratch, "%s.nowhere", func->name->text));
    form->flags &= ~(uint32_t)FUNC_EXPORT;
    for (int i = 0; i < form->nparams && i < MOST_PARAMS; i++) {
        Val *param = form->body->params[i];
        if (none >> i & 1) param->forward = ir_const_zero(n->module, param->type);
    }
    ir_resolve_func(form);
    for (int i = 0; i < form->nparams; i++) form->body->params[i]->forward = NULL;
    opt_inline(form, (InlinePolicy){.max_size = MOST_INLINED, .any_form = true});
    opt_clean_in_place(form, (SroaOptions){0});
    vec_push(n->scratch, &n->forms, ((Form){func, none, form}));
    return form;
}

static void visit(void *user, Inst *inst) {
    Nowhere *n = user;
    uint64_t none = inst->op == OP_call && inst->callee->body ? none_among(inst) : 0;
    bool is_form = false; /* what calls itself goes on with the form that it is */
    for (int i = 0; i < n->forms.count && none; i++) is_form |= n->forms.at[i].func == inst->callee;
    if (none && !is_form) inst->callee = form_of(n, inst->callee, none);
    n->changed |= (none && !is_form) || opt_drop_nowhere(inst);
}

/* Forms are new functions, and looked at in their turn. */
bool opt_nowhere(Module *module, int first) {
    Nowhere n = {.module = module, .scratch = arena_scratch(module->arena)};
    for (int i = first; i < module->funcs.count; i++) {
        Func *func = module->funcs.at[i];
        if (!func->body) continue;
        region_walk(func->body, visit, &n);
        ir_resolve_func(func);
    }
    arena_free(n.scratch);
    return n.changed;
}
