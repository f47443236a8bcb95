/* Nests of loops as functions of their own, for C.
 *
 *     if (in range, and `from` and `to` are apart) {          static inline void f_loops(float *restrict from, float *restrict to, ...) {
 *         for (...) to[i] += from[i] * kept[i];                   for (...) to[i] += from[i] * kept[i];
 *     }                                                       }
 *
 * C has no way to say within a function that two buffers do not overlap, nor that what a derivative has kept
 * lies elsewhere, but of parameters it can: nothing else leads to what is written through one that is
 * `restrict`. Compilers remember that when they make the function a part of its only caller. So the copy of a
 * nest that runs if a test said so (range.c, apart.c) becomes a function. Its buffers are parameters which
 * are marked PARAM_APART, and all that it does with their memory goes through these; so addresses that come
 * about before the nest are computed in the function, once more. Variables of the caller are given by their
 * address, each once, and numbers by value.
 *
 * A nest stays where it is if it has memory of which nobody knows whether it is that of a buffer, or leaves
 * the function; also if it writes to a tape alone, in other loops than those that read. */
#include "opt.h"

typedef struct Outline {
    Arena *scratch;
    const int *uses; /* of the caller's values, by Val.id */
    Inst *loop;
    ApartBuffers buffers;
    Map seen;              /* Val that comes from outside */
    ValVec results;        /* of the loop, that somebody uses */
    ValVec inputs;         /* of what comes from outside, those that the function is given, */
    ValVec others;         /* ... buffers that are among these already, */
    InstVec computed;      /* ... and what it computes of them */
    int nest;              /* whose test its accesses have passed */
    int which[MOST_APART]; /* of buffers, as they were tested */
    bool has_element;
    bool has_tape, has_loop, adds; /* has_loop: one that is not written out; adds: to a buffer */
    bool writes, keeps;            /* to a buffer; on a tape */
    bool has_order;                /* of what is read and what is kept, in a loop */
    bool refused;
} Outline;

/* ---- whether it can be one */

static bool is_inside(const Inst *loop, const Inst *inst) {
    for (; inst && inst != loop; inst = inst->parent->owner) continue;
    return inst != NULL;
}

/* What is called may use nothing but what it is given, and no buffer. */
static bool is_plain_call(const Inst *call) {
    bool plain = (call->callee->flags & FUNC_PURE) != 0;
    for (int i = 0; i < call->nargs; i++) {
        const Type *target = ir_target(call->args[i]->type);
        plain &= !type_leads_elsewhere(target ? target : call->args[i]->type);
    }
    return plain;
}

static bool stays(const Inst *loop, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_return:
    case OP_buffer_pointer:
    case OP_buffer_counter: return true;
    case OP_break:
    case OP_continue: return !is_inside(loop, inst->target);
    case OP_call: return !is_plain_call(inst);
    default: return op_has(inst->op, OP_EFFECT);
    }
}

/* Parameters that are `ref` may lead anywhere. */
static bool is_of_function(const Val *root) {
    if (root->kind == VAL_inst) return root->inst->op == OP_var || root->inst->op == OP_global;
    if (root->kind != VAL_param || root->region->owner) return false;
    const Param *param = &root->region->func->params[root->index];
    return (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_ref;
}

/* All have passed the same test, if any, in which each buffer was another. */
static void look_at_element(Outline *o, const Inst *element, bool writes) {
    int number = opt_number_of_buffer(&o->buffers, inst_operand(element, 0));
    ApartMark mark = element->apart;
    for (int i = 0; i < o->buffers.count && o->has_element; i++)
        o->refused |= o->which[i] && (i == number) != (o->which[i] == mark.which);
    o->refused |= number < 0 || (o->has_element && mark.nest != o->nest);
    if (o->refused) return;
    o->which[number] = mark.which;
    o->nest = mark.nest;
    o->has_element = true;
    o->writes |= writes;
}

/* ---- what rounds keep
 *
 * A loop in which inner loops read buffers and others keep what was computed has its order already: clang makes slower code of it where it knows that a tape is no buffer. */

typedef struct Rounds {
    const Inst *loop;
    bool reads;               /* buffers */
    bool keeps, keeps_itself; /* ... not in a loop inside */
    bool keeps_and_reads;     /* there is such a loop */
} Rounds;

static bool is_keeping(const Inst *inst) { return inst->op == OP_tape_store || inst->op == OP_tape_push; }

static bool is_right_inside(const Inst *loop, const Inst *inst) {
    do inst = inst->parent->owner;
    while (inst != loop && inst->op != OP_loop);
    return inst == loop;
}

static void look_at_round(void *user, Inst *inst) {
    Rounds *rounds = user;
    rounds->reads |= inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes;
    rounds->keeps |= is_keeping(inst);
    rounds->keeps_itself |= is_keeping(inst) && is_right_inside(rounds->loop, inst);
}

static Rounds rounds_of(const Inst *loop) {
    Rounds rounds = {.loop = loop};
    inst_walk(loop, look_at_round, &rounds);
    rounds.keeps_and_reads = rounds.keeps_itself && rounds.reads;
    return rounds;
}

static void look_at_inner(void *user, Inst *inst) {
    Rounds *rounds = user;
    if (inst->op == OP_loop) rounds->keeps_and_reads |= rounds_of(inst).keeps_and_reads;
}

static void look_at_rounds(Outline *o, const Inst *loop) {
    Rounds rounds = rounds_of(loop);
    inst_walk(loop, look_at_inner, &rounds);
    o->has_order |= rounds.keeps && rounds.reads && !rounds.keeps_and_reads;
}

static void look_at(void *user, Inst *inst) {
    Outline *o = user;
    o->refused |= stays(o->loop, inst);
    o->has_tape |= op_has(inst->op, OP_TAPE);
    o->has_loop |= inst->op == OP_loop && !opt_is_written_out_in_c(inst);
    o->adds |= inst->op == OP_atomic;
    o->keeps |= is_keeping(inst);
    if (inst->op == OP_loop) look_at_rounds(o, inst);
    for (int i = 0; i < inst->nargs && !o->refused; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_part) continue;
        const Inst *element = opt_buffer_element(inst->args[i]);
        bool is_known = element || is_of_function(ir_root(inst->args[i]));
        o->refused |= role == ROLE_move || role == ROLE_escape || !is_known;
        if (element && !o->refused) look_at_element(o, element, role != ROLE_read);
    }
}

/* ---- what comes from outside */

static bool is_address(const Val *v) {
    if (v->kind != VAL_inst) return false;
    Op op = v->inst->op;
    return op_has(op, OP_PART) || op == OP_buffer_elem || op == OP_buffer_bytes || op == OP_global;
}

/* Of a buffer that comes about in several places, the first. */
static Val *first_of(const Outline *o, Val *v) {
    int number = v->type->kind == TYPE_buffer ? opt_number_of_buffer(&o->buffers, v) : -1;
    return number < 0 ? v : o->buffers.at[number].buffer;
}

static void bring(Outline *o, Val *v) {
    if (val_is_const(v) || inst_contains(o->loop, v) || map_has(&o->seen, PTR_KEY(v))) return;
    map_put(o->scratch, &o->seen, PTR_KEY(v), v);
    if (first_of(o, v) != v) {
        bring(o, first_of(o, v));
        vec_push(o->scratch, &o->others, v);
    } else if (is_address(v)) {
        for (int i = 0; i < v->inst->nargs; i++) bring(o, inst_operand(v->inst, i));
        vec_push(o->scratch, &o->computed, v->inst);
    } else {
        o->refused |= ir_target(v->type) && !is_of_function(v);
        vec_push(o->scratch, &o->inputs, v);
    }
}

static void bring_operands(void *user, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) bring(user, inst_operand(inst, i));
}

static void bring_all(Outline *o) {
    bring_operands(o, o->loop);
    inst_walk(o->loop, bring_operands, o);
}

/* ---- whether it is worth it */

static bool needs_test(const ApartBuffers *buffers) {
    bool any = false;
    for (int i = 0; i < buffers->count; i++) any |= buffers->at[i].is_written;
    return any && buffers->count > 1;
}

/* It is for compilers to find out in a loop of many rounds that each has elements of its own; gcc reads those
 * that a round adds to too soon, if it is told. */
static bool is_over_elements(const Outline *o) {
    return loop_most_trips(o->loop) == INT64_MAX && !o->has_loop && !o->has_tape;
}

static bool suits(Outline *o) {
    opt_find_buffers(&o->buffers, o->loop);
    if (o->buffers.count == 0 || o->buffers.overflows) return false;
    look_at_rounds(o, o->loop);
    inst_walk(o->loop, look_at, o);
    if (!o->refused) bring_all(o);
    if (o->refused || (o->adds && is_over_elements(o))) return false;
    bool has_several = o->buffers.count + o->has_tape > 1;
    return (o->writes || (o->keeps && !o->has_order)) && has_several &&
           (o->nest > 0 || !needs_test(&o->buffers));
}

/* ---- the function */

static Name input_name(const Val *v) {
    const Global *owner = v->type->kind == TYPE_buffer ? ir_owner(v) : NULL;
    return v->name ? v->name : owner ? owner->name : NULL;
}

static Param param_for(const Outline *o, const Val *v) {
    const Type *target = ir_target(v->type);
    Param param = {.name = input_name(v), .type = target ? target : v->type, .dir = DIR_in};
    if (target) {
        bool is_read = v->kind == VAL_param && v->region->func->params[v->index].dir == DIR_in;
        param.flags = PARAM_BY_ADDRESS;
        param.dir = is_read ? DIR_in : DIR_ref;
    }
    if (v->type->kind == TYPE_buffer && opt_number_of_buffer(&o->buffers, v) >= 0) param.flags = PARAM_APART;
    return param;
}

static Func *declare(const Outline *o) {
    Param *params = arena_array(o->scratch, Param, o->inputs.count + 1);
    const Type **results = arena_array(o->scratch, const Type *, o->results.count + 1);
    for (int i = 0; i < o->inputs.count; i++) params[i] = param_for(o, o->inputs.at[i]);
    for (int i = 0; i < o->results.count; i++) results[i] = o->results.at[i]->type;
    Func *func = func_new_part(o->loop->func, "loops", o->loop->loc);
    func_set_params(func, params, o->inputs.count);
    func_set_results(func, results, o->results.count);
    return func;
}

/* What it is to use for a value from outside. */
static void map_all(const Outline *o, CloneMap *map) {
    for (int i = 0; i < o->inputs.count; i++) clone_map_val(map, o->inputs.at[i], map->func->body->params[i]);
    for (int i = 0; i < o->others.count; i++)
        clone_map_val(map, o->others.at[i], clone_val(map, first_of(o, o->others.at[i])));
    for (int i = 0; i < o->computed.count; i++)
        inst_append(map->func->body, clone_inst(map, o->computed.at[i]));
}

static void return_results(const Outline *o, CloneMap *map) {
    Val **results = arena_array(o->scratch, Val *, o->results.count + 1);
    Builder b = build_at_end(map->func->body);
    for (int i = 0; i < o->results.count; i++) results[i] = clone_val(map, o->results.at[i]);
    build_return(&b, results, o->results.count);
}

static void call_instead(Outline *o, Func *func) {
    Builder b = build_before(o->loop);
    Inst *call = build_call(&b, func, o->inputs.at, o->inputs.count);
    for (int i = 0; i < o->results.count; i++) {
        o->results.at[i]->forward = call->results[i];
        call->results[i]->name = o->results.at[i]->name;
    }
    inst_remove(o->loop);
}

static void outline(Outline *o) {
    for (int i = 0; i < o->loop->nresults; i++)
        if (o->uses[o->loop->results[i]->id]) vec_push(o->scratch, &o->results, o->loop->results[i]);
    Func *func = declare(o);
    func_begin(func);
    CloneMap map = {.module = func->module, .func = func};
    map_all(o, &map);
    inst_append(func->body, clone_inst(&map, o->loop));
    return_results(o, &map);
    call_instead(o, func);
}

/* ---- the entry */

static bool visit_region(Region *region, const int *uses, bool is_tested);

static bool visit_loop(Inst *loop, const int *uses) {
    Outline o = {.scratch = arena_scratch(loop->func->module->arena), .uses = uses, .loop = loop};
    bool is_one = suits(&o);
    if (is_one) outline(&o);
    arena_free(o.scratch);
    return is_one;
}

/* What runs where a test has failed stays there. */
static bool visit(Inst *inst, const int *uses, bool is_tested) {
    bool changed = false, is_choice = inst->op == OP_if && inst_has(inst, INST_LIKELY);
    if (is_tested && inst->op == OP_loop && visit_loop(inst, uses)) return true;
    for (int i = 0; i < (is_choice ? 1 : inst->nregions); i++)
        changed |= visit_region(inst->regions[i], uses, is_tested || is_choice);
    return changed;
}

static bool visit_region(Region *region, const int *uses, bool is_tested) {
    bool changed = false;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        changed |= visit(inst, uses, is_tested);
    }
    return changed;
}

bool opt_outline(Func *func) {
    if (!func->body || !func->module->keeps_order) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    bool changed = visit_region(func->body, region_count_uses(scratch, func->body), false);
    arena_free(scratch);
    return changed;
}
