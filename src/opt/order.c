/* Sums whose order is free are taken in the order in which their terms are there.
 *
 *     dx = late * a + b + c                     dx = b + c + late * a
 *     sum = (sum + a * p) + b * q               sum = (a * p + b * q) + sum
 *
 * Nobody wrote an order of what differentiation adds up. LLVM is told, as it may then take rounds of a loop
 * together; but it does not ask when terms are there. C cannot say that, and its compilers keep the order
 * that they see. So the pass is for what is compiled from C, and for loops that end by themselves, such as
 * marches along a ray, of which LLVM takes one round after the other: their sums are not free any more behind
 * it. When a term is there is estimated by the costs of what it is computed from, in its loop. A product is
 * added in one operation, which waits for its factors only; so the sum begins with what is none. What a loop
 * carries is there when the round before has ended, and a sum that rounds only add to is added last, so that
 * they do not wait for each other. */
#include "opt.h"

#include <stdlib.h>

enum { ROUND = 1 << 30 }; /* later than all that does not depend on the round before */

typedef struct Term {
    Val *value;
    int64_t ready;
    bool is_negative, is_product;
    int place; /* as it was written */
} Term;

/* A term, or a sum of some. */
typedef struct Part {
    Val *value;
    bool is_negative;
} Part;

typedef struct Order {
    Arena *scratch;
    int *uses;         /* by Val.id */
    const Inst **user; /* by Val.id: the last */
    int64_t *ready;    /* by Val.id: when it is there */
    int64_t round;     /* when what the loop carries is there */
    bool everywhere;   /* not only in loops that end by themselves, and sums stay free */
    bool is_at_work;   /* here */
    VEC(Term) terms;   /* of a sum */
    VEC(Part) parts;
    bool changed;
} Order;

/* ---- terms */

/* A sum that is nothing but a part of that one. Twice the same is one term. */
static bool is_part(const Order *o, const Val *v, const Inst *sum) {
    return v->kind == VAL_inst && inst_is_free_sum(v->inst) && v->inst->parent == sum->parent &&
           o->uses[v->id] == 1 && inst_operand(v->inst, 0) != inst_operand(v->inst, 1);
}

static int64_t latest_operand(const Order *o, const Inst *inst) {
    int64_t latest = 0;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (!val_is_const(v) && o->ready[v->id] > latest) latest = o->ready[v->id];
    }
    return latest;
}

static void add_term(Order *o, Val *v, const Inst *sum, bool is_negative) {
    Term term = {.value = v, .is_negative = is_negative, .place = o->terms.count};
    term.is_product =
        v->kind == VAL_inst && v->inst->op == OP_mul && v->inst->parent == sum->parent && o->uses[v->id] == 1;
    if (!val_is_const(v)) term.ready = term.is_product ? latest_operand(o, v->inst) : o->ready[v->id];
    vec_push(o->scratch, &o->terms, term);
}

static void add_operands(Order *o, const Inst *sum, bool is_negative) {
    for (int i = 1; i >= 0; i--) { /* the last that is put there comes first */
        bool is_taken_away = i == 1 && sum->op == OP_sub;
        vec_push(o->scratch, &o->parts, ((Part){inst_operand(sum, i), is_negative != is_taken_away}));
    }
}

static void find_terms(Order *o, const Inst *sum) {
    o->terms.count = o->parts.count = 0;
    add_operands(o, sum, false);
    while (o->parts.count > 0) {
        Part part = o->parts.at[--o->parts.count];
        if (is_part(o, part.value, sum)) add_operands(o, part.value->inst, part.is_negative);
        else add_term(o, part.value, sum, part.is_negative);
    }
}

static int compare_terms(const void *left, const void *right) {
    const Term *a = left, *b = right;
    if (a->ready != b->ready) return a->ready < b->ready ? -1 : 1;
    if (a->is_product != b->is_product) return a->is_product ? 1 : -1;
    return a->place < b->place ? -1 : 1;
}

/* ---- the sum of them */

typedef struct Addition {
    Op op;
    Val *args[2];
    bool is_negative; /* what comes of it */
} Addition;

static Addition addition(const Term *sum, const Term *term) {
    Addition a = {.op = sum->is_negative == term->is_negative ? OP_add : OP_sub};
    bool is_turned = sum->is_negative && a.op == OP_sub;
    a.args[is_turned] = sum->value;
    a.args[!is_turned] = term->value;
    a.is_negative = sum->is_negative && a.op == OP_add;
    return a;
}

/* `sum += ...` reads better than what comes last. */
static bool is_carried(const Val *v) {
    return v->kind == VAL_param && v->region->owner && v->region->owner->op == OP_loop;
}

/* Its last addition is the instruction itself. Some term counts as it is, so the whole does. */
static void write_sum(Order *o, Inst *inst) {
    Builder b = build_before(inst);
    Term sum = o->terms.at[0];
    b.loc = inst->loc;
    b.no_fold = true;
    for (int i = 1; i < o->terms.count - 1; i++) {
        Addition a = addition(&sum, &o->terms.at[i]);
        sum = (Term){.value = build_binary(&b, a.op, a.args[0], a.args[1]), .is_negative = a.is_negative};
        if (o->everywhere) sum.value->inst->flags |= INST_FREE;
    }
    Addition last = addition(&sum, &o->terms.at[o->terms.count - 1]);
    bool exchanges = last.op == OP_add && is_carried(last.args[1]);
    inst->op = (uint16_t)last.op;
    inst->args[exchanges] = last.args[0];
    inst->args[!exchanges] = last.args[1];
    o->changed = true;
}

static int64_t sum_ready(const Order *o) {
    int64_t ready = 0;
    for (int i = 0; i < o->terms.count; i++)
        ready = (o->terms.at[i].ready > ready ? o->terms.at[i].ready : ready) + op_info[OP_add].cost;
    return ready;
}

static void fix_order(Order *o, Inst *sum) {
    sum->flags &= (uint8_t)~INST_FREE;
    o->changed = true;
}

/* When it is there then. */
static int64_t order_sum(Order *o, Inst *inst) {
    const Val *v = inst->results[0];
    const Inst *user = o->user[v->id];
    if (user && inst_is_free_sum(user) && is_part(o, v, user)) return 0; /* the user's turn will come */
    find_terms(o, inst);
    qsort(o->terms.at, (size_t)o->terms.count, sizeof *o->terms.at, compare_terms);
    if (o->terms.count > 2) write_sum(o, inst);
    if (!o->everywhere) fix_order(o, inst);
    return sum_ready(o);
}

/* ---- the function */

static void note_operands(void *user, Inst *inst) {
    Order *o = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (!val_is_const(v)) o->user[v->id] = inst;
    }
}

static int64_t carried_ready(const Order *o, const Val *param) {
    const Inst *user = o->user[param->id];
    if (!type_is_float(type_element(param->type))) return 0; /* counters */
    return o->uses[param->id] == 1 && inst_is_free_sum(user) ? o->round + ROUND / 2 : o->round;
}

static int64_t order_region(Order *o, const Region *region);

/* Or does it count its rounds? */
static bool ends_by_itself(const Inst *loop) {
    const Inst *end = loop->regions[0]->last;
    const Val *condition = end->op == OP_yield && end->nargs > 0 ? inst_operand(end, 0) : NULL;
    LoopTest test;
    bool counts = condition && condition->kind == VAL_inst && loop_comparison(loop, condition->inst, &test) &&
                  loop_has_fixed(loop, test.limit);
    return !counts;
}

/* When all that the instruction owns has been done. */
static int64_t order_regions(Order *o, const Inst *inst) {
    bool is_loop = inst->op == OP_loop, was_at_work = o->is_at_work;
    int64_t latest = 0;
    if (is_loop) {
        o->round += ROUND;
        o->is_at_work = o->everywhere || ends_by_itself(inst);
    }
    for (int i = 0; i < inst->nregions; i++) {
        const Region *region = inst->regions[i];
        for (int k = 0; k < region->nparams && is_loop; k++)
            o->ready[region->params[k]->id] = carried_ready(o, region->params[k]);
        int64_t ready = order_region(o, region);
        if (!is_loop && ready > latest) latest = ready;
    }
    if (is_loop) o->round -= ROUND;
    o->is_at_work = was_at_work;
    return latest;
}

/* Lanes have enough to do meanwhile. */
static bool is_to_order(const Order *o, const Inst *sum) {
    return o->everywhere || (o->is_at_work && type_is_scalar(sum->results[0]->type));
}

static int64_t order_region(Order *o, const Region *region) {
    int64_t latest = 0;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        int64_t ready = latest_operand(o, inst), inside = order_regions(o, inst);
        ready = (ready > inside ? ready : inside) + op_info[inst->op].cost;
        if (inst_is_free_sum(inst) && is_to_order(o, inst)) ready = order_sum(o, inst);
        for (int i = 0; i < inst->nresults; i++) o->ready[inst->results[i]->id] = ready;
        if (ready > latest) latest = ready;
    }
    return latest;
}

bool opt_order(Func *func) {
    const Module *module = func->module;
    if (!func->body || (module->many_threads && !module->keeps_order)) return false;
    Arena *scratch = arena_scratch(module->arena);
    Order o = {.scratch = scratch,
               .everywhere = module->keeps_order,
               .is_at_work = module->keeps_order,
               .uses = region_count_uses(scratch, func->body),
               .user = arena_array(scratch, const Inst *, func->nvals + 1),
               .ready = arena_array(scratch, int64_t, func->nvals + 1)};
    region_walk(func->body, note_operands, &o);
    order_region(&o, func->body);
    arena_free(scratch);
    return o.changed;
}
