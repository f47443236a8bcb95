/* What rounds of a loop hand on to each other, out of conditions:
 *
 *     if (c) { x = ...; total = total + x; n = n * 3; }        x = 0; if (c) x = ...;
 *                                                              total = c ? total + x : total;  n = c ? n * 3 : n;
 *
 * So the condition is a part of the round alone, which lanes do together, and what depends on the rounds
 * before is arithmetic at its end, as lanes_items.c wants it. A sum that has no order stays a sum: of what
 * the branch adds, or nothing. What cannot be done in this way is left as it was. */
#include "opt/lanes.h"

typedef struct Choices {
    Arena *scratch;
    Module *module;
    Map dependent; /* Val: it depends on what a round before has computed */
    bool changed;
} Choices;

/* An `if` at work. */
typedef struct Branch {
    Inst *inst;
    InstVec moved;  /* to behind it ... */
    VEC(int) arms;  /* ... from these */
    Map results[2]; /* Val of that arm -> Val: what it is behind it */
} Branch;

static bool depends(const Choices *c, const Val *v) {
    return !val_is_const(v) && map_has(&c->dependent, PTR_KEY(v));
}

static void note(Choices *c, const Val *v) { map_put(c->scratch, &c->dependent, PTR_KEY(v), c); }

/* ---- whether it can be done: before anything is changed */

static bool can_take_out(Choices *c, Inst *branch);

static bool can_move(Choices *c, Inst *inst) {
    if (inst->op == OP_if) return can_take_out(c, inst);
    return !inst->nregions && op_has(inst->op, OP_PURE) && !ir_target(inst->results[0]->type);
}

/* Of a branch that can be taken out, what is the same without the rounds before stays so. */
static void note_results(Choices *c, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) {
        bool comes_in = inst->op != OP_if;
        for (int r = 0; r < inst->nregions && !comes_in; r++)
            comes_in = depends(c, inst_operand(inst->regions[r]->last, i));
        if (comes_in) note(c, inst->results[i]);
    }
}

static bool can_take_out(Choices *c, Inst *branch) {
    if (depends(c, inst_operand(branch, 0))) return false;
    for (int r = 0; r < branch->nregions; r++) {
        const Region *arm = branch->regions[r];
        if (arm->last->op != OP_yield) return false;
        for (Inst *inst = arm->first; inst != arm->last; inst = inst->next) {
            if (!lanes_uses_any(&c->dependent, inst)) continue;
            if (!can_move(c, inst)) return false;
            note_results(c, inst);
        }
    }
    return true;
}

/* ---- doing it */

static Val *add_result(Inst *branch, const Type *type, Val *of_then, Val *of_else) {
    inst_add_arg(branch->regions[0]->last, of_then);
    inst_add_arg(branch->regions[1]->last, of_else);
    return inst_add_result(branch, type, NULL);
}

/* The value of an arm, as it is behind the branch: in the other arm it is zero, and not used. */
static Val *outside(Choices *c, Branch *branch, Val *v, int arm) {
    v = ir_resolve(v);
    if (val_is_const(v) || depends(c, v) || !inst_contains(branch->inst, v)) return v;
    Val *known = map_get(&branch->results[arm], PTR_KEY(v));
    if (known) return known;
    Val *zero = ir_const_zero(c->module, v->type);
    known = add_result(branch->inst, v->type, arm ? zero : v, arm ? v : zero);
    map_put(c->scratch, &branch->results[arm], PTR_KEY(v), known);
    return known;
}

static bool is_free_sum(const Choices *c, const Val *v) {
    if (v->kind != VAL_inst || (v->inst->op != OP_add && v->inst->op != OP_sub) || !depends(c, v))
        return false;
    return inst_is_free_sum(v->inst) || type_is_integer(type_element(v->type));
}

/* What is added to; v itself, if it is no sum. */
static Val *base_of(const Choices *c, Val *v) {
    if (!is_free_sum(c, v)) return v;
    Val *a = inst_operand(v->inst, 0), *b = inst_operand(v->inst, 1);
    if (depends(c, a) == depends(c, b) || (v->inst->op == OP_sub && depends(c, b))) return v;
    return depends(c, a) ? a : b;
}

/* At the end of the arm. */
static Val *what_is_added(const Choices *c, Val *v, Val *base, Inst *end) {
    if (v == base) return ir_const_zero(c->module, v->type);
    Val *more = inst_operand(v->inst, inst_operand(v->inst, 0) == base ? 1 : 0);
    Builder b = build_before(end);
    return v->inst->op == OP_sub ? build_unary(&b, OP_neg, more) : more;
}

static Val *choose(Choices *c, Branch *branch, Builder *b, Val *of_then, Val *of_else) {
    Inst *inst = branch->inst;
    Val *base = base_of(c, of_then);
    if (base == base_of(c, of_else) && of_then != of_else && depends(c, base)) {
        Val *then_adds = what_is_added(c, of_then, base, inst->regions[0]->last),
            *else_adds = what_is_added(c, of_else, base, inst->regions[1]->last);
        Val *more = add_result(inst, base->type, then_adds, else_adds);
        return type_is_integer(type_element(base->type)) ? build_binary(b, OP_add, base, more)
                                                         : build_sum(b, base, more);
    }
    return build_select(b, inst_operand(inst, 0), outside(c, branch, of_then, 0),
                        outside(c, branch, of_else, 1));
}

static void take_out(Choices *c, Inst *inst);

static void move_out(Choices *c, Branch *branch, int arm) {
    Region *region = branch->inst->regions[arm];
    for (Inst *inst = region->first, *next; inst != region->last; inst = next) {
        if (inst->op == OP_if && lanes_uses_any(&c->dependent, inst)) take_out(c, inst);
        next = inst->next;
        bool moves = !inst->nregions && lanes_uses_any(&c->dependent, inst);
        if (!moves) continue;
        for (int i = 0; i < inst->nresults; i++) note(c, inst->results[i]);
        inst_remove(inst);
        vec_push(c->scratch, &branch->moved, inst);
        vec_push(c->scratch, &branch->arms, arm);
    }
}

static void take_out(Choices *c, Inst *inst) {
    Branch branch = {.inst = inst};
    int count = inst->nresults;
    Val **results = arena_copy(c->scratch, inst->results, sizeof *inst->results * (size_t)count);
    for (int arm = 0; arm < 2; arm++) move_out(c, &branch, arm);
    Builder b = build_after(inst);
    b.loc = inst->loc;
    for (int i = 0; i < branch.moved.count; i++) {
        if (b.before) inst_insert_before(b.before, branch.moved.at[i]);
        else inst_append(b.region, branch.moved.at[i]);
    }
    for (int i = 0; i < count; i++) {
        Inst *then = inst->regions[0]->last, *otherwise = inst->regions[1]->last;
        Val *of_then = inst_operand(then, i), *of_else = inst_operand(otherwise, i);
        if (!depends(c, of_then) && !depends(c, of_else)) continue;
        Val *chosen = choose(c, &branch, &b, of_then, of_else),
            *zero = ir_const_zero(c->module, chosen->type);
        note(c, chosen);
        inst->regions[0]->last->args[i] = inst->regions[1]->last->args[i] = zero;
        results[i]->forward = chosen;
    }
    for (int i = 0; i < branch.moved.count; i++)
        for (int k = 0; k < branch.moved.at[i]->nargs; k++)
            branch.moved.at[i]->args[k] = outside(c, &branch, branch.moved.at[i]->args[k], branch.arms.at[i]);
    c->changed = true;
}

void lanes_take_out_choices(Lanes *lanes, const bool *is_counter) {
    Rounds *rounds = lanes->rounds;
    Region *body = rounds->loop->regions[1];
    Choices c = {.scratch = lanes->scratch, .module = lanes->module};
    for (int i = 0; i < body->nparams; i++)
        if (!is_counter[i]) note(&c, body->params[i]);
    for (Inst *inst = body->first; inst != body->last; inst = inst->next) {
        if (!lanes_uses_any(&c.dependent, inst)) continue;
        if (inst->op == OP_if && can_take_out(&c, inst)) take_out(&c, inst);
        else
            for (int i = 0; i < inst->nresults; i++) note(&c, inst->results[i]);
    }
    if (!c.changed) return;
    ir_resolve_func(rounds->func);
    opt_dce(rounds->func);
}
