/* Outline: a loop of a flat function becomes a function of its own, for some rounds at a time (round.c), for
 * parts within a budget (segment.c), or to be differentiated in another way (along.c). The function takes
 * what the loop carries and what it uses from outside. */
#include "autodiff/ad.h"

/* ---- what the loop uses */

/* A result of a loop that was replaced before goes by what stands for it. */
static void capture(Outline *x, Val *v) {
    v = ir_resolve(v);
    if (val_is_const(v)) return;
    if (inst_contains(x->loop, v)) return;
    for (int i = 0; i < x->captured.count; i++)
        if (x->captured.at[i] == v) return;
    vec_push(x->ad->arena, &x->captured, v);
}

/* A buffer that can be written, or a pointer of the source: who knows what it leads to when the loop runs
 * again. */
static bool may_change(const Outline *x, Val *v) {
    if (v->type->kind == TYPE_buffer) return !x->steady && !type_is_read_only(v->type);
    if (v->type->kind != TYPE_pointer || ad_is_object(v)) return false;
    const Val *root = ir_root(v);
    const Inst *inst = root->kind == VAL_inst ? root->inst : NULL;
    if (inst && (inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes))
        return !x->steady && !type_is_read_only(inst->args[0]->type);
    bool global = inst && inst->op == OP_global;
    return !global || (inst->global->kind != GLOBAL_const && inst->global->kind != GLOBAL_uniform);
}

/* A variable from before the loop whose address goes somewhere: what is done with it there is not seen
 * here. */
static bool is_referred_to(const Outline *x, const Inst *inst, int operand) {
    Val *v = inst->args[operand];
    return ir_role(inst, operand) == ROLE_escape && ad_is_object(v) && !inst_contains(x->loop, v);
}

void ad_survey(Outline *x, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++) {
            capture(x, inst->args[i]);
            x->has_effects |= may_change(x, inst->args[i]) || is_referred_to(x, inst, i);
        }
        bool writes = op_has(inst->op, OP_PLAIN) && op_has(inst->op, OP_WRITES);
        Val *root = writes ? ad_root(inst->args[0]) : NULL;
        if (root && !inst_contains(x->loop, root)) x->writes_memory = true;
        x->has_effects |= ad_inst_has_effects(x->ad, inst);
        for (int i = 0; i < inst->nargs && inst->op == OP_call; i++) {
            const Param *param = &inst->callee->params[i];
            if ((param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in && ad_root(inst->args[i]))
                x->writes_memory = true;
        }
        for (int i = 0; i < inst->nregions; i++) ad_survey(x, inst->regions[i]);
    }
}

static bool is_global(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_global; }

void ad_take_globals(Outline *x) {
    int kept = 0;
    for (int i = 0; i < x->captured.count; i++)
        if (is_global(x->captured.at[i])) vec_push(x->ad->arena, &x->globals, x->captured.at[i]);
        else x->captured.at[kept++] = x->captured.at[i];
    x->captured.count = kept;
}

bool ad_is_given_number(const Outline *x, const Val *v) {
    return !type_is_float(v->type) || (v->kind == VAL_param && v->region == x->func->body);
}

/* An object goes by address; what comes with a counterpart does so there, too. */
Param ad_captured_param(const Outline *x, Val *v) {
    bool object = v->type->kind == TYPE_pointer && ad_is_object(v);
    const Type *counterpart =
        v->kind == VAL_param && v->region == x->func->body ? x->func->params[v->index].counterpart : NULL;
    return (Param){.name = v->name,
                   .type = object ? v->type->args[0] : v->type,
                   .flags = object ? PARAM_BY_ADDRESS : 0,
                   .counterpart = counterpart};
}

/* ---- the function */

Func *ad_outline(const Outline *x, const char *name, const char *const *words, int nwords,
                 bool (*counts)(const Inst *loop, int index)) {
    Ad *ad = x->ad;
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    for (int i = 0; i < nwords; i++)
        vec_push(ad->arena, &params, ((Param){.name = name_from(ad->m->names, words[i]), .type = word}));
    for (int i = 0; i < x->loop->nargs; i++) {
        const Val *v = x->loop->regions[1]->params[i];
        bool counter = counts && counts(x->loop, i);
        if (!counts || counter) vec_push(ad->arena, &params, ((Param){.name = v->name, .type = v->type}));
        if (!counter) vec_push(ad->arena, &results, v->type);
    }
    for (int i = 0; i < x->captured.count; i++)
        vec_push(ad->arena, &params, ad_captured_param(x, x->captured.at[i]));
    Func *func = func_new_part(x->func, name, x->loop->loc);
    func->flags |= FUNC_GENERATED | FUNC_NORMAL;
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    return func;
}

CloneMap ad_enter(const Outline *x, Func *func) {
    CloneMap map = {.module = x->ad->m, .func = func};
    Region *body = func_begin(func);
    int first = body->nparams - x->captured.count;
    for (int i = 0; i < x->captured.count; i++)
        clone_map_val(&map, x->captured.at[i], body->params[first + i]);
    for (int i = 0; i < x->globals.count; i++) inst_append(body, clone_inst(&map, x->globals.at[i]->inst));
    return map;
}

Inst *ad_call_outline(const Outline *x, Builder *b, Func *func, ValVec args) {
    for (int i = 0; i < x->captured.count; i++) vec_push(x->ad->arena, &args, x->captured.at[i]);
    return build_call(b, func, args.at, args.count);
}

Inst *ad_copy_loop(const Outline *x, Builder *b, CloneMap *map, Val *const *state, Val *lo, Val *hi) {
    Ad *ad = x->ad;
    int n = x->loop->nargs;
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    ValVec args = {0};
    for (int i = 0; i < n; i++) vec_push(ad->arena, &args, state[i]);
    vec_push(ad->arena, &args, lo);
    Inst *copy = build_inst(b, OP_loop, args.at, args.count, 0, 2);
    Region *cond = copy->regions[0], *body = copy->regions[1];
    for (int i = 0; i < n; i++) {
        const Val *old = x->loop->regions[1]->params[i];
        region_add_param(cond, old->type, old->name);
        clone_map_val(map, x->loop->regions[1]->params[i], region_add_param(body, old->type, old->name));
    }
    Val *at = region_add_param(cond, word, NULL), *now = region_add_param(body, word, NULL);
    Builder cb = build_at_end(cond);
    Val *go = build_binary(&cb, OP_lt, at, hi);
    build_yield(&cb, &go, 1);
    clone_region_into(map, x->loop->regions[1], body);
    Builder tail = build_before(body->last);
    inst_add_arg(body->last, build_binary(&tail, OP_add, now, ad_int64(ad, 1)));
    for (int i = 0; i <= n; i++) inst_add_result(copy, args.at[i]->type, NULL);
    return copy;
}

/* ---- where loops are replaced */

bool ad_for_loops(const Region *region, bool (*change)(void *user, Inst *loop), void *user) {
    bool any = false;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OP_loop && change(user, inst)) any = true;
        else
            for (int i = 0; i < inst->nregions; i++) any |= ad_for_loops(inst->regions[i], change, user);
    }
    return any;
}

Region *ad_change_copy(Ad *ad, Func *flat, bool (*change)(void *user, Region *body), void *user) {
    Region *written = flat->body;
    CloneMap map = {.module = ad->m, .func = flat};
    flat->body = clone_region(&map, written, NULL);
    Region *copy = change(user, flat->body) ? flat->body : NULL;
    if (copy) ir_resolve_func(flat);
    flat->body = written;
    return copy;
}
