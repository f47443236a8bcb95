/* Loops over parts of a loop. The reverse of rounds that have nothing to do with each other does 32 of them
 * at a time (autodiff/round.c), so that what they keep is soon gone. Where nothing is kept, what is left is a
 * loop over parts that does nothing but go through the rounds of each: it is one loop, which needs no setting
 * up for every 32 rounds, and has one test of its indices.
 *
 *     part = (n + 31) / 32                                             left = n
 *     while (0 < part) {                                               while (0 < left) {
 *         low = (part - 1) * 32, left = min(low + 32, n) - low             ... a[left - 1] ...
 *         while (0 < left) { ... a[low + left - 1] ...; left-- }           left--
 *         part--                                                       }
 *     }
 *
 * All that rounds make of the two counters must depend on low + left alone. What they compute from them by
 * sums and constant factors is followed, as p * part + q * left + something: that is so if p is 32 * q. Then
 * it is what it was if part is 1, and left the number of the round throughout.
 *
 * What parts carry on must go through the rounds as it is, or be a sum, in any order, of what the rounds of
 * each have added up from zero. */
#include "opt.h"

typedef struct Form {
    uint64_t part, left; /* factors, as far as the type has bits */
} Form;

typedef struct Rejoin {
    Arena *scratch;
    const int *uses; /* by Val.id */
    Inst *outer, *inner;
    int part, left; /* indices of the counters */
    Val *rounds;    /* of all parts */
    int64_t each;   /* in a part */
    Map forms;      /* Val -> Form */
    bool fits;
    bool changed;
} Rejoin;

static const Inst *made_by(const Val *v, Op op) {
    return v->kind == VAL_inst && v->inst->op == op ? v->inst : NULL;
}

/* ---- what is looked for */

/* while (0 < counter) { ...; counter-- }: the index of the counter; -1: it is something else */
static int find_counter(const Inst *loop) {
    LoopTest test;
    int64_t step;
    const Inst *first = loop->regions[0]->first, *end = loop->regions[0]->last;
    if (loop->nregions != 2 || loop->regions[1]->last->op != OP_yield || first->op != OP_lt ||
        first->next != end || end->op != OP_yield || inst_operand(end, 0) != first->results[0])
        return -1;
    bool counts = loop_comparison(loop, first, &test) && !test.up && val_is_zero(test.limit) &&
                  loop_step(loop, test.index, &step) && step == -1;
    return counts && inst_operand(loop, test.index)->type->kind == TYPE_int64 ? test.index : -1;
}

static bool is_number(const Val *v, int64_t number) {
    int64_t known;
    return val_is_int(v, &known) && known == number;
}

/* condition ? a : b, where a is below b: the least of both */
static bool is_least(const Val *v, const Val **a, const Val **b) {
    const Inst *select = made_by(v, OP_select),
               *test = select ? made_by(inst_operand(select, 0), OP_lt) : NULL;
    if (!test) return false;
    *a = inst_operand(test, 0);
    *b = inst_operand(test, 1);
    return val_is_same(*a, inst_operand(select, 1)) && val_is_same(*b, inst_operand(select, 2));
}

/* part - 1, also as part + -1 */
static bool is_before(const Val *v, const Val *part) {
    const Inst *sub = made_by(v, OP_sub), *add = made_by(v, OP_add), *inst = sub ? sub : add;
    return inst && inst_operand(inst, 0) == part && is_number(inst_operand(inst, 1), sub ? 1 : -1);
}

/* low < high ? high - low : 0, with high = min(low + each, rounds) and low = (part - 1) * each */
static bool find_part(Rejoin *r, const Val *count) {
    const Inst *select = made_by(count, OP_select),
               *test = select ? made_by(inst_operand(select, 0), OP_lt) : NULL,
               *distance = select ? made_by(inst_operand(select, 1), OP_sub) : NULL;
    if (!test || !distance || !val_is_zero(inst_operand(select, 2))) return false;
    const Val *low = inst_operand(test, 0), *high = inst_operand(test, 1), *full, *rounds;
    if (inst_operand(distance, 0) != high || inst_operand(distance, 1) != low ||
        !is_least(high, &full, &rounds))
        return false;
    const Inst *sum = made_by(full, OP_add), *product = made_by(low, OP_mul);
    r->rounds = (Val *)rounds;
    return sum && product && inst_operand(sum, 0) == low && val_is_int(inst_operand(sum, 1), &r->each) &&
           r->each > 0 && is_number(inst_operand(product, 1), r->each) &&
           is_before(inst_operand(product, 0), r->outer->regions[1]->params[r->part]) &&
           !inst_contains(r->outer, rounds);
}

/* (rounds + each - 1) / each, if that is more than 0 */
static bool counts_parts(const Rejoin *r, const Val *parts) {
    const Inst *select = made_by(parts, OP_select),
               *test = select ? made_by(inst_operand(select, 0), OP_lt) : NULL;
    int64_t number, rounds;
    if (test && val_is_zero(inst_operand(test, 0)) && val_is_zero(inst_operand(select, 2)) &&
        val_is_same(inst_operand(test, 1), inst_operand(select, 1)))
        parts = inst_operand(select, 1);
    if (val_is_int(parts, &number) && val_is_int(r->rounds, &rounds))
        return rounds >= 0 && number == rounds / r->each + (rounds % r->each > 0);
    const Inst *quotient = made_by(parts, OP_div),
               *sum = quotient ? made_by(inst_operand(quotient, 0), OP_add) : NULL;
    return sum && is_number(inst_operand(quotient, 1), r->each) &&
           val_is_same(inst_operand(sum, 0), r->rounds) && is_number(inst_operand(sum, 1), r->each - 1);
}

/* The loop that is all that another does, but for what can be computed at any time; NULL: there is more. */
static Inst *find_inner(const Inst *outer) {
    Inst *inner = NULL;
    for (Inst *inst = outer->regions[1]->first; inst != outer->regions[1]->last; inst = inst->next) {
        if (inst->op == OP_loop && !inner) inner = inst;
        else if (!op_has(inst->op, OP_PURE) || inst->nregions) return NULL;
    }
    return inner;
}

/* ---- what depends on the counters */

static Form form_of(Rejoin *r, const Val *v);

static bool is_linear(const Inst *inst) {
    int64_t known;
    const Type *type = inst->nresults == 1 ? inst->results[0]->type : NULL;
    if (!type || type->kind == TYPE_vector || !type_is_integer(type)) return false;
    switch ((Op)inst->op) {
    case OP_add:
    case OP_sub:
    case OP_neg: return true;
    case OP_mul: return val_is_int(inst_operand(inst, 1), &known);
    case OP_convert:
        return type_is_integer(inst->args[0]->type) && type_bits(inst->args[0]->type) >= type_bits(type);
    default: return false;
    }
}

static Form linear_form(Rejoin *r, const Inst *inst) {
    int64_t known = inst->op == OP_neg ? -1 : 1;
    Form a = form_of(r, inst_operand(inst, 0)), b = {0};
    if (inst->op == OP_mul) val_is_int(inst_operand(inst, 1), &known);
    if (inst->op == OP_add || inst->op == OP_sub) b = form_of(r, inst_operand(inst, 1));
    uint64_t factor = (uint64_t)known, sign = inst->op == OP_sub ? UINT64_MAX : 1;
    return (Form){a.part * factor + b.part * sign, a.left * factor + b.left * sign};
}

static Form form_of(Rejoin *r, const Val *v) {
    const Form *known = map_get(&r->forms, PTR_KEY(v));
    if (known) return *known;
    Form form = {0};
    if (v == r->outer->regions[1]->params[r->part]) form.part = 1;
    else if (v == r->inner->regions[1]->params[r->left]) form.left = 1;
    else if (v->kind == VAL_inst && inst_contains(r->outer, v) && is_linear(v->inst))
        form = linear_form(r, v->inst);
    map_put(r->scratch, &r->forms, PTR_KEY(v), arena_copy(r->scratch, &form, sizeof form));
    return form;
}

/* Is it the same in the round, whichever part that is in? */
static bool is_by_round(Rejoin *r, const Val *v) {
    if (val_is_const(v)) return true;
    Form form = form_of(r, v);
    uint64_t more = form.part - form.left * (uint64_t)r->each;
    return !more || (type_is_integer(v->type) && type_bits(v->type) == 32 && !(uint32_t)more);
}

static void look_at(void *user, Inst *inst) {
    Rejoin *r = user;
    bool is_end = inst == r->inner->regions[1]->last;
    for (int i = 0; i < inst->nargs && r->fits && !is_linear(inst); i++)
        r->fits = (is_end && i == r->left) || is_by_round(r, inst_operand(inst, i));
}

/* ---- what is carried on */

/* z, plus something, in any order; counts how often z is used for it */
static bool is_sum_with(const Val *v, const Val *z, int *uses) {
    const Inst *add = made_by(v, OP_add);
    if (v == z) return ++*uses;
    if (!add || !inst_has(add, INST_FREE)) return false;
    int before = *uses;
    return (is_sum_with(inst_operand(add, 0), z, uses) || is_sum_with(inst_operand(add, 1), z, uses)) &&
           *uses == before + 1;
}

/* Which of the inner loop's results goes on as it is, or is added; -1: none, -2: it is not changed. */
static int find_carried(const Rejoin *r, int index) {
    const Region *parts = r->outer->regions[1], *rounds = r->inner->regions[1];
    const Val *now = parts->params[index], *next = inst_operand(parts->last, index);
    const Inst *add = made_by(next, OP_add);
    if (next == now) return -2;
    bool is_added =
        add && inst_has(add, INST_FREE) && (inst_operand(add, 0) == now || inst_operand(add, 1) == now);
    const Val *result = !is_added ? next : inst_operand(add, inst_operand(add, 0) == now ? 1 : 0);
    if (result->kind != VAL_inst || result->inst != r->inner || result->index == r->left) return -1;
    const Val *start = inst_operand(r->inner, result->index);
    int used = 0;
    if (r->uses[result->id] != 1 || r->uses[now->id] != 1) return -1;
    if (!is_added) return start == now ? result->index : -1;
    bool is_sum =
        is_sum_with(inst_operand(rounds->last, result->index), rounds->params[result->index], &used) &&
        r->uses[rounds->params[result->index]->id] == used;
    return val_is_zero(start) && is_sum ? result->index : -1;
}

/* ---- one loop */

/* What parts compute, for the first of them. */
static void move_out(Rejoin *r) {
    Region *body = r->outer->regions[1];
    const Type *type = body->params[r->part]->type;
    body->params[r->part]->forward = ir_const_int(r->outer->func->module, type, 1);
    for (Inst *inst = body->first, *next; inst != body->last; inst = next) {
        next = inst->next;
        inst_remove(inst);
        inst_insert_before(r->outer, inst);
    }
}

static void join(Rejoin *r, const int *carried) {
    Inst *outer = r->outer, *inner = r->inner;
    move_out(r);
    inner->args[r->left] = r->rounds;
    for (int i = 0; i < outer->nargs; i++) {
        if (i == r->part) continue;
        Val *start = inst_operand(outer, i);
        if (carried[i] >= 0) inner->args[carried[i]] = start;
        outer->results[i]->forward = carried[i] >= 0 ? inner->results[carried[i]] : start;
        outer->regions[1]->params[i]->forward = start;
    }
    inst_remove(outer);
    r->changed = true;
}

/* All that the inner loop carries comes from the parts, or is begun anew and of no use to them. */
static bool are_carried(const Rejoin *r, int *carried) {
    bool *taken = arena_array(r->scratch, bool, r->inner->nargs + 1);
    for (int i = 0; i < r->outer->nargs; i++) {
        carried[i] = i == r->part ? -2 : find_carried(r, i);
        if (carried[i] == -1) return false;
        if (carried[i] >= 0) taken[carried[i]] = true;
    }
    for (int i = 0; i < r->inner->nargs; i++)
        if (i != r->left && !taken[i]) return false;
    return !r->uses[r->outer->results[r->part]->id] && !r->uses[r->inner->results[r->left]->id];
}

static void try_loop(Rejoin *r, Inst *outer) {
    r->outer = outer;
    r->inner = find_inner(outer);
    if (!r->inner) return;
    r->part = find_counter(outer);
    r->left = find_counter(r->inner);
    if (r->part < 0 || r->left < 0 || !find_part(r, inst_operand(r->inner, r->left)) ||
        !counts_parts(r, inst_operand(outer, r->part)))
        return;
    int *carried = arena_array(r->scratch, int, outer->nargs + 1);
    r->forms = (Map){0};
    r->fits = are_carried(r, carried);
    if (r->fits) region_walk(r->inner->regions[1], look_at, r);
    if (r->fits) join(r, carried);
}

static void visit(Rejoin *r, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions; i++) visit(r, inst->regions[i]);
        if (inst->op == OP_loop) try_loop(r, inst);
    }
}

bool opt_rejoin(Func *func) {
    if (!func->body) return false;
    Rejoin r = {.scratch = arena_scratch(func->module->arena)};
    r.uses = region_count_uses(r.scratch, func->body);
    visit(&r, func->body);
    if (r.changed) ir_resolve_func(func);
    arena_free(r.scratch);
    return r.changed;
}
