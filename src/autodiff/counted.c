/* Counted: whole numbers that each round adds the same to are computed from the counter of the loop, so that
 * reverse passes need not keep them, and indices are seen to be linear.
 *
 *     for (i = 0; i < m; i++) { for (j = 0; j < n; j++) ... a[at + j] ...; at += n; }                at = first + i * n
 *     for (i = 0; i < m; i++) for (j = 0; j < n; j++) ... a[next++] ...                              next = first + i * max(n, 0), where the inner loop begins
 *     for (i = 0; i < n; i += k) ... a[i] ...                                                        i = first + round * k: where nothing else counts, the rounds are counted
 *
 * Steps that are constants are left alone: checkpoint.c knows of them. Forward mode has the loops as they are
 * written, which end by the number itself: that is what range checks know of. */
#include "autodiff/ad.h"

/* A carried value that goes by steps of one, and has the bits that the other has; -1: there is none. */
static int find_counter(const Inst *loop, const Type *type, int64_t *step) {
    for (int i = 0; i < loop->nargs; i++) {
        const Type *own = loop->regions[1]->params[i]->type;
        bool counts = type_is_integer(own) && type_bits(own) >= type_bits(type) && loop_step(loop, i, step);
        if (counts && (*step == 1 || *step == -1)) return i;
    }
    return -1;
}

/* From zero on. */
static int add_counter(Inst *loop, const Type *type) {
    Module *m = loop->func->module;
    Name name = name_from(m->names, "round");
    inst_add_arg(loop, ir_const_zero(m, type));
    region_add_param(loop->regions[0], type, name);
    Val *now = region_add_param(loop->regions[1], type, name);
    Builder b = build_before(loop->regions[1]->last);
    inst_add_arg(loop->regions[1]->last, build_binary(&b, OP_add, now, ir_const_int(m, type, 1)));
    inst_add_result(loop, type, name);
    return now->index;
}

/* What the rounds of a loop inside add to it; NULL: it is not always the same. */
static Val *find_rounds(Inst *loop, const Val *param, const Val *next) {
    Inst *inner = next->kind == VAL_inst && next->inst->op == OP_loop ? next->inst : NULL;
    int64_t step;
    if (!inner || inner->parent != loop->regions[1] || inst_operand(inner, next->index) != param ||
        !loop_step(inner, next->index, &step))
        return NULL;
    Val *trip = loop_trip_before(loop, inner);
    Builder b = build_before(loop);
    if (!trip) return NULL;
    return build_binary(&b, OP_mul, build_convert(&b, trip, param->type),
                        ir_const_int(loop->func->module, param->type, step));
}

/* What each round adds to it; NULL: not always the same, or a constant. */
static Val *find_step(Inst *loop, int index) {
    const Val *param = loop->regions[1]->params[index], *next = inst_operand(loop->regions[1]->last, index);
    int term = loop_term(loop, index);
    int64_t first, change;
    if (!type_is_integer(param->type) || type_bits(param->type) < 32 ||
        loop_ramp(loop, index, &first, &change))
        return NULL;
    if (term < 0) return find_rounds(loop, param, next);
    Val *fixed = inst_operand(next->inst, term);
    if (inst_contains(loop, fixed)) return NULL;
    Builder b = build_before(loop);
    return next->inst->op == OP_sub ? build_unary(&b, OP_neg, fixed) : fixed;
}

/* first + rounds * step, at the head of a round */
static void compute(Inst *loop, int index, int counter, int64_t direction, Val *step) {
    Region *body = loop->regions[1];
    Builder b = build_before(body->first);
    Val *now = body->params[counter], *start = inst_operand(loop, counter), *param = body->params[index];
    Val *rounds = build_binary(&b, OP_sub, direction > 0 ? now : start, direction > 0 ? start : now);
    Val *moved = build_binary(&b, OP_mul, build_convert(&b, rounds, param->type), step);
    Val *value = build_binary(&b, OP_add, inst_operand(loop, index), moved);
    if (value->kind == VAL_inst && !value->name) value->name = param->name;
    param->forward = value;
}

/* A number that ends its loop, and so goes on by itself. */
typedef struct Ending {
    Inst *loop;
    int index;
    Val *step;
} Ending;

typedef struct Counted {
    Arena *scratch;
    Func *flat;
    VEC(Ending) endings;
    bool changed;
} Counted;

static void look_at(void *user, Inst *loop) {
    Counted *c = user;
    if (loop->op != OP_loop || loop->nregions != 2 || loop->regions[1]->last->op != OP_yield) return;
    for (int i = 0; i < loop->nargs; i++) {
        int64_t direction;
        const Type *type = loop->regions[1]->params[i]->type;
        int counter = type_is_integer(type) ? find_counter(loop, type, &direction) : -1;
        bool may_count = counter < 0 && type_is_integer(type) && loop_term(loop, i) >= 0;
        Val *step = (counter >= 0 && counter != i) || may_count ? find_step(loop, i) : NULL;
        if (!step) continue;
        if (may_count) {
            counter = add_counter(loop, type);
            direction = 1;
            Ending ending = {loop, i, step};
            vec_push(c->scratch, &c->endings, ending);
        }
        compute(loop, i, counter, direction, step);
        c->changed = true;
    }
}

/* What the loop leaves behind may be used, so that it still carries the number, of which nobody in the body
 * asks. */
static void stay(void *user, Inst *loop) {
    (void)user;
    for (int i = 0; i < loop->nargs && loop->op == OP_loop; i++) loop->regions[1]->params[i]->forward = NULL;
}

static void go_on(const Ending *ending) {
    const Region *body = ending->loop->regions[1];
    Builder b = build_before(body->last);
    body->last->args[ending->index] =
        build_binary(&b, OP_add, body->params[ending->index], ir_resolve(ending->step));
}

static bool count_all(void *user, Region *body) {
    Counted *c = user;
    Func *flat = c->flat;
    region_walk(body, look_at, c);
    if (c->changed) {
        ir_resolve_func(flat);
        region_walk(body, stay, NULL);
    }
    for (int i = 0; i < c->endings.count; i++) go_on(&c->endings.at[i]);
    return c->changed;
}

Region *ad_compute_counted(Ad *ad, Func *flat) {
    Counted c = {.scratch = arena_scratch(ad->arena), .flat = flat};
    Region *counted = ad_change_copy(ad, flat, count_all, &c);
    arena_free(c.scratch);
    return counted;
}
