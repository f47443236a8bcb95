/* A loop that adds two products to a number in each round adds them to two numbers.
 *
 *     sum = sum + (dw * x + w * dx)             a = a + dw * x; b = b + w * dx;       behind it: sum = a + b
 *
 * That is what the differential of `sum += w * x` does. Processors multiply and add in one operation: a round
 * takes one less than where the products are added up first, and the next does not wait for two of them. Only
 * sums whose order is free are taken apart. LLVM would put them together again where it writes out the loop:
 * there their order is free no more. With wide registers a short loop is written out within the rounds of
 * another that are done at once: then its numbers fill the registers, and one sum in the order of the terms
 * is better. */
#include "lanes.h"

typedef struct Pairs {
    int *uses; /* by Val.id */
    bool wide; /* registers for vectors are */
    bool changed;
} Pairs;

/* Such an operation of the loop's body, which one other uses. */
static Inst *made_in(const Pairs *p, const Region *body, const Val *v, Op op) {
    bool is_made = v->kind == VAL_inst && v->inst->op == op && v->inst->parent == body;
    return is_made && p->uses[v->id] == 1 ? v->inst : NULL;
}

/* What is added to the number; NULL: no sum of two products. */
static Inst *find_pair(const Pairs *p, const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    const Val *sum = body->params[index];
    if (!type_is_float(type_element(sum->type)) || p->uses[sum->id] != 1 ||
        p->uses[loop->regions[0]->params[index]->id])
        return NULL;
    const Inst *next = made_in(p, body, inst_operand(body->last, index), OP_add);
    if (!next || !inst_has(next, INST_FREE)) return NULL;
    bool is_first = inst_operand(next, 0) == sum;
    if (!is_first && inst_operand(next, 1) != sum) return NULL;
    Inst *pair = made_in(p, body, inst_operand(next, is_first), OP_add);
    bool has_products = pair && inst_has(pair, INST_FREE) &&
                        made_in(p, body, inst_operand(pair, 0), OP_mul) &&
                        made_in(p, body, inst_operand(pair, 1), OP_mul);
    return has_products ? pair : NULL;
}

static Val *add_in_round(Inst *loop, Val *sum, Val *term) {
    Builder b = build_before(loop->regions[1]->last);
    return loop_is_short(loop) ? build_binary(&b, OP_add, sum, term) : build_sum(&b, sum, term);
}

static void part(Inst *loop, int index, const Inst *pair) {
    Region *body = loop->regions[1];
    Val *old = loop->results[index], *first = inst_operand(pair, 0), *second = inst_operand(pair, 1);
    region_add_param(loop->regions[0], old->type, NULL);
    Val *sum = region_add_param(body, old->type, NULL);
    inst_add_arg(loop, ir_const_zero(loop->func->module, old->type));
    body->last->args[index] = add_in_round(loop, body->params[index], first);
    inst_add_arg(body->last, add_in_round(loop, sum, second));
    Val *other = inst_add_result(loop, old->type, NULL);
    Builder behind = build_before(loop->next);
    old->forward = build_sum(&behind, inst_renew_result(loop, index), other);
}

static void keep_order(const Inst *loop, int index, Inst *pair) {
    inst_operand(loop->regions[1]->last, index)->inst->flags &= (uint8_t)~INST_FREE;
    pair->flags &= (uint8_t)~INST_FREE;
}

static void look_at(void *user, Inst *loop) {
    Pairs *p = user;
    if (loop->op != OP_loop || loop->nregions != 2 || loop->regions[1]->last->op != OP_yield) return;
    for (int i = 0, count = loop->nargs; i < count; i++) {
        Inst *pair = find_pair(p, loop, i);
        if (!pair || loop_has_jumps(loop)) continue;
        if (p->wide && loop_is_short(loop)) keep_order(loop, i, pair);
        else part(loop, i, pair);
        p->changed = true;
    }
}

bool opt_pairs(Func *func, int register_bits) {
    const Module *module = func->module;
    if (!func->body || module->many_threads || module->keeps_order) return false;
    Arena *scratch = arena_scratch(module->arena);
    enum { NARROW = 128 };
    Pairs p = {.uses = region_count_uses(scratch, func->body), .wide = register_bits > NARROW};
    region_walk(func->body, look_at, &p);
    if (p.changed) ir_resolve_func(func);
    arena_free(scratch);
    return p.changed;
}
