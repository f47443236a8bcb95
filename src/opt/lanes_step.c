/* How far apart what lanes compute is: indices, and the addresses that are made with them.
 *
 *     image[y, clamp(x + k, 0, width - 1)]
 *
 * Numbers that are held between bounds are mostly as far apart as they were before: an image has more pixels
 * inside than at its borders. So they count for neighbours; where lanes must not meet, they do not. */
#include "opt/lanes.h"

/* The operand that is held, if the bound is the same for all lanes; else NULL. */
static Val *held(const Lanes *lanes, const Inst *inst) {
    if (inst->op != OP_min && inst->op != OP_max) return NULL;
    Val *a = inst_operand(inst, 0), *b = inst_operand(inst, 1);
    return !varies(lanes, b) ? a : !varies(lanes, a) ? b : NULL;
}

Val *lanes_held(const Lanes *lanes, const Val *v) {
    return v->kind == VAL_inst && varies(lanes, v) && type_is_integer(v->type) ? held(lanes, v->inst) : NULL;
}

/* Through an index that is made from others, each of which may be there many times. */
typedef struct Walk {
    const Lanes *lanes;
    bool inside; /* as if nothing were held */
    int left;    /* what may still be looked at */
} Walk;

static Walk walk(const Lanes *lanes) {
    enum { MOST = 500 };
    return (Walk){.lanes = lanes, .left = MOST};
}

static bool is_held(Walk *walk, const Val *v) {
    if (!varies(walk->lanes, v) || v->kind != VAL_inst) return false;
    const Inst *inst = v->inst;
    bool leads_on = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul ||
                    inst->op == OP_convert || inst->op == OP_bitcast || ir_target(v->type);
    if (lanes_held(walk->lanes, v) || walk->left-- <= 0) return true;
    for (int i = 0; i < inst->nargs && leads_on; i++)
        if (is_held(walk, inst_operand(inst, i))) return true;
    return false;
}

bool lanes_is_held(const Lanes *lanes, const Val *v) {
    Walk from = walk(lanes);
    return is_held(&from, v);
}

/* Where nothing says how far rounds are apart, they are anywhere: LLVM may find out when it does one at a
 * time. */
static bool is_constant_factor(const Inst *product) {
    return val_is_const(ir_resolve(product->args[0])) || val_is_const(ir_resolve(product->args[1]));
}

static int step_of(Walk *walk, const Val *v);

static int step_of_sum(Walk *walk, const Inst *inst) {
    const Val *other = inst->op == OP_mul ? lanes_times_one(walk->lanes, inst) : NULL;
    if (other) return step_of(walk, other);
    int a = step_of(walk, ir_resolve(inst->args[0]));
    int b = a == STEP_none ? STEP_none : step_of(walk, ir_resolve(inst->args[1]));
    if (b == STEP_none) return STEP_none;
    if (inst->op == OP_mul && (a || b) && walk->lanes->rounds && !is_constant_factor(inst)) return STEP_none;
    if (inst->op == OP_mul) return a && b ? STEP_none : a || b ? STEP_other : STEP_same;
    return a && b ? STEP_other : a ? a : b;
}

int64_t lanes_step_of_counter(const Rounds *rounds, int param) {
    for (int i = 0; i < rounds->loop->nargs; i++)
        if (rounds->kinds[i] == CARRIED_counter && param-- == 0) return rounds->steps[i];
    return 0;
}

static int64_t step_of_counter(const Lanes *lanes, const Val *v) {
    bool is_param = lanes->rounds && v->kind == VAL_param && v->region == lanes->from->body;
    return is_param ? lanes_step_of_counter(lanes->rounds, v->index) : 0;
}

static int step_of_param(const Lanes *lanes, const Val *v) {
    int64_t step = step_of_counter(lanes, v);
    return step == 1 ? STEP_one : step ? STEP_other : STEP_none;
}

static int step_of(Walk *walk, const Val *v) {
    const Lanes *lanes = walk->lanes;
    if (!varies(lanes, v)) return STEP_same;
    if (v->kind != VAL_inst) return step_of_param(lanes, v);
    if (walk->left-- <= 0) return STEP_none;
    const Inst *inst = v->inst;
    switch ((Op)inst->op) {
    case OP_thread_id: return STEP_one;
    case OP_convert:
    case OP_bitcast:
    case OP_extract:
    case OP_shuffle: return step_of(walk, ir_resolve(inst->args[0]));
    case OP_add:
    case OP_sub:
    case OP_mul: return step_of_sum(walk, inst);
    case OP_min:
    case OP_max: return lanes_held(lanes, v) ? step_of(walk, lanes_held(lanes, v)) : STEP_none;
    default: return STEP_none;
    }
}

int lanes_step_of(const Lanes *lanes, const Val *v) {
    Walk from = walk(lanes);
    return step_of(&from, v);
}

int lanes_step_of_address(const Lanes *lanes, const Val *address) {
    if (!varies(lanes, address)) return STEP_same;
    if (address->kind != VAL_inst || address->inst->nargs == 0) return STEP_none;
    const Inst *inst = address->inst;
    int outer =
        ir_target(inst->args[0]->type) ? lanes_step_of_address(lanes, ir_resolve(inst->args[0])) : STEP_same;
    int inner = inst->nargs > 1 ? lanes_step_of(lanes, ir_resolve(inst->args[1])) : STEP_same;
    if (outer == STEP_none || inner == STEP_none) return STEP_none;
    if (outer) return STEP_other;
    return inner == STEP_one && !type_is_scalar(ir_target(inst->results[0]->type)) ? STEP_other : inner;
}

/* ---- exactly */

/* From a lane to the next, whatever wraps around; or as far as that, at least. */
typedef struct Step {
    int64_t by;
    bool at_least;
} Step;

static bool exact_step(Walk *walk, const Val *v, Step *step);

static bool is_small(int64_t step) { return step >= -LANES_SMALL_STEP && step <= LANES_SMALL_STEP; }

/* Of a product with what is the same for all lanes: a constant, or a stride that the kernel asks about. */
static bool exact_step_of_product(const Lanes *lanes, const Val *factor, Step *step) {
    int64_t by = lanes_far(lanes, factor);
    step->at_least |= by > 0;
    if (by == 0 && !val_is_int(factor, &by)) return false;
    if (!is_small(by)) return false;
    step->by *= by;
    return is_small(step->by);
}

static bool exact_step_of_pair(Walk *walk, const Inst *inst, Step *step) {
    const Lanes *lanes = walk->lanes;
    Step a, b;
    const Val *other = inst->op == OP_mul ? lanes_times_one(lanes, inst) : NULL;
    if (other) return exact_step(walk, other, step);
    const Val *x = ir_resolve(inst->args[0]);
    const Val *y = ir_resolve(inst->args[1]);
    if (!exact_step(walk, x, &a) || !exact_step(walk, y, &b)) return false;
    *step = a.by ? a : b;
    if (inst->op == OP_mul) return exact_step_of_product(lanes, a.by ? y : x, step);
    step->by = inst->op == OP_add ? a.by + b.by : a.by - b.by;
    return is_small(step->by) && !(a.by && b.by && (a.at_least || b.at_least));
}

/* Of numbers with 32 bits or more. */
static bool exact_step(Walk *walk, const Val *v, Step *step) {
    const Lanes *lanes = walk->lanes;
    *step = (Step){0};
    if (!type_is_integer(type_element(v->type)) || type_bits(type_element(v->type)) < 32) return false;
    if (!varies(lanes, v)) return true;
    if (v->kind != VAL_inst) {
        step->by = step_of_counter(lanes, v);
        return step->by != 0 && is_small(step->by);
    }
    if (walk->left-- <= 0) return false;
    const Inst *inst = v->inst;
    switch ((Op)inst->op) {
    case OP_thread_id: return step->by = 1, type_is_scalar(v->type);
    case OP_extract:
        return step->by = 1, ir_resolve(inst->args[0])->kind == VAL_inst &&
                                 ir_resolve(inst->args[0])->inst->op == OP_thread_id;
    case OP_convert:
    case OP_bitcast: return exact_step(walk, ir_resolve(inst->args[0]), step);
    case OP_add:
    case OP_sub:
    case OP_mul: return exact_step_of_pair(walk, inst, step);
    case OP_min:
    case OP_max: return walk->inside && lanes_held(lanes, v) && exact_step(walk, lanes_held(lanes, v), step);
    default: return false;
    }
}

int64_t lanes_least_step(const Lanes *lanes, const Val *v) {
    Step step;
    Walk from = walk(lanes);
    return exact_step(&from, v, &step) ? step.by < 0 ? -step.by : step.by : 0;
}

/* Has each lane another element of a buffer? */
static bool is_of_other_element(const Lanes *lanes, const Val *address, bool inside) {
    Step step;
    Walk from = walk(lanes);
    from.inside = inside;
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = ir_resolve(address->inst->args[0]);
    if (address->kind != VAL_inst || address->inst->op != OP_buffer_elem) return false;
    return exact_step(&from, ir_resolve(address->inst->args[1]), &step) && step.by != 0;
}

static bool adds_by_rows(const Lanes *lanes, const Inst *inst, bool inside) {
    return lanes_is_plain_sum(lanes->options, inst) &&
           is_of_other_element(lanes, ir_resolve(inst->args[0]), inside);
}

bool lanes_adds_by_rows(const Lanes *lanes, const Inst *inst) { return adds_by_rows(lanes, inst, false); }
bool lanes_adds_by_rows_inside(const Lanes *lanes, const Inst *inst) {
    return adds_by_rows(lanes, inst, true);
}

/* ---- the terms of an index */

typedef struct Terms {
    const Lanes *lanes;
    LaneTerm *term;
    void *user;
} Terms;

const Val *lanes_unconverted(const Val *v) {
    while (v->kind == VAL_inst && v->inst->op == OP_convert) v = inst_operand(v->inst, 0);
    return v;
}

bool lanes_is_counter(const Lanes *lanes, const Val *v) {
    if (lanes->rounds) return step_of_counter(lanes, v) == 1;
    return v->kind == VAL_inst && (v->inst->op == OP_thread_id || v->inst->op == OP_extract) &&
           lanes_step_of(lanes, v) == STEP_one;
}

/* In a uniform, or what else the kernel was given to read. */
static bool is_given_to_read(const Val *address) {
    while (address->kind == VAL_inst) {
        const Inst *inst = address->inst;
        if (inst->op == OP_global) return inst->global->kind == GLOBAL_uniform;
        bool is_part = inst->op == OP_field || (inst->op == OP_elem && val_is_const(inst_operand(inst, 1)));
        if (!is_part) return false;
        address = inst_operand(inst, 0);
    }
    if (address->kind != VAL_param || address->region->owner) return false;
    const Param *param = &address->region->func->params[address->index];
    return (param->flags & PARAM_BY_ADDRESS) && param->dir == DIR_in;
}

/* Can a kernel compute it before it begins? */
static bool is_known_before(const Val *v, int depth) {
    if (val_is_const(v)) return true;
    if (v->kind == VAL_param) return !v->region->owner;
    if (v->inst->op == OP_load) return is_given_to_read(inst_operand(v->inst, 0));
    bool is_plain = op_has(v->inst->op, OP_ELEMENTWISE) || v->inst->op == OP_select;
    for (int i = 0; i < v->inst->nargs && is_plain; i++)
        is_plain = depth > 0 && is_known_before(inst_operand(v->inst, i), depth - 1);
    return is_plain;
}

/* A number that comes from outside of the loop, or is known before the kernel begins; NULL: it is something
 * else. */
Val *lanes_given(const Lanes *lanes, const Val *v) {
    enum { DEPTH = 3 };
    v = lanes_unconverted(v);
    const Region *body = lanes->from->body;
    if (!type_is_integer(v->type) || type_bits(v->type) < 32) return NULL;
    if (!lanes->rounds && v->kind == VAL_inst)
        return is_known_before(v, DEPTH) ? v->inst->results[v->index] : NULL;
    bool is_param = v->kind == VAL_param && v->region == body;
    return is_param && (!lanes->rounds || lanes->rounds->outside[v->index]) ? body->params[v->index] : NULL;
}

static void give_terms(const Terms *terms, Val *v, Val *factor, bool is_multiple, int depth);

/* Of a number that is a constant, or comes from outside, with one that does not; of others, with what differs
 * between rounds. */
static void give_product(const Terms *terms, const Inst *inst, Val *factor, bool is_multiple, int depth) {
    const Lanes *lanes = terms->lanes;
    const Val *first = inst_operand(inst, 0), *second = inst_operand(inst, 1);
    bool is_factor = val_is_const(second) || lanes_given(lanes, second);
    bool is_second = varies(lanes, second) || (!varies(lanes, first) && !is_factor);
    Val *by = lanes_given(lanes, is_second ? first : second);
    bool is_plain = by && !factor;
    give_terms(terms, inst->args[is_second], is_plain ? by : factor, is_multiple || !is_plain, depth);
}

static void give_terms(const Terms *terms, Val *v, Val *factor, bool is_multiple, int depth) {
    v = ir_resolve(v);
    if (val_is_const(v) && !factor) return;
    const Inst *inst = v->kind == VAL_inst && depth > 0 ? v->inst : NULL;
    if (inst && (inst->op == OP_add || inst->op == OP_sub)) {
        give_terms(terms, inst->args[0], factor, is_multiple, depth - 1);
        give_terms(terms, inst->args[1], factor, is_multiple || inst->op == OP_sub, depth - 1);
    } else if (inst && inst->op == OP_convert && type_bits(inst->args[0]->type) >= 32) {
        give_terms(terms, inst->args[0], factor, is_multiple, depth - 1);
    } else if (inst && inst->op == OP_mul) {
        give_product(terms, inst, factor, is_multiple, depth - 1);
    } else {
        terms->term(terms->user, v, factor, is_multiple);
    }
}

void lanes_terms(const Lanes *lanes, Val *index, LaneTerm *term, void *user) {
    enum { DEPTH = 12 };
    Terms terms = {lanes, term, user};
    give_terms(&terms, index, NULL, false, DEPTH);
}
