/* Do rounds of a loop touch what other rounds write?
 *
 * Lanes are rounds that follow each other, and do each step together. That is the same as one round after the
 * other, if no round reads or writes what another one of them writes. Every place in memory that a round uses
 * is described by the object that it is in and the steps that lead there, fields and elements, whose index is
 * brought into the form
 *
 *     step * (number of the lane) + values that stay the same + something from `low` to `high`
 *
 * Two of the same step and the same values are in the way of each other if the rest can make up for one to
 * width - 1 steps. What is not of this form may be anywhere. Of two buffers nobody knows here whether they
 * are one, or overlap: the loop asks before it begins, and does one round at a time if they do, and if an
 * element that every round uses is out of range in one of them, so that several rounds at once need not ask.
 * Numbers may wrap around: that moves them by 2 to the 32, which is more than the distances that count here.
 *
 * Sums in memory can be made in any order: what is read, added to by an addition that has none (`add free`),
 * and put back. They become atomic operations while lanes are made, which are made over the lanes first
 * (lanes_single.c), and what they were afterwards. Places on a tape are given to one round each, by those who
 * make them (autodiff/nest.c), so that rounds which only store there, or only load, are not in the way of
 * each other. */
#include "opt/lanes.h"

enum { MOST_TERMS = 6, MOST_STEPS = 8, MOST_ACCESSES = 96, MOST_REACHES = 8, DEPTH = 12 };
static const int64_t FAR =
    (int64_t)1 << 26; /* so many steps of as many lanes as there are do not add up to 2 to the 32 */

typedef struct Term {
    const Val *v;
    int64_t factor;
} Term;

typedef struct Form {
    bool known;
    int64_t step, low, high;
    Term terms[MOST_TERMS];
    int nterms;
} Form;

typedef struct Step {
    int field; /* which; -1: an element */
    Form index;
    int64_t size; /* of what is there, in units of the index */
} Step;

typedef struct Access {
    const Inst *inst;
    bool writes, sums;
    Val *buffer; /* that it is in ... */
    Inst *elem;  /* ... by this element ... */
    Val *tape;   /* ... or the tape */
    Val *root;   /* ... or what leads to the object, as it is outside of the loop; NULL: nobody knows */
    Object object;
    bool is_whole; /* root is the address of the object itself */
    Space space;
    const Type *type; /* on a tape: of the stack */
    Step steps[MOST_STEPS];
    int nsteps;
} Access;

typedef struct Apart {
    Lanes *lanes;
    LoopJumps jumps;
    Access *accesses;
    int count;
    int *uses;    /* by id */
    bool is_lost; /* something may be accessed of which nobody knows where it is */
} Apart;

static Apart begin(Lanes *lanes) {
    return (Apart){.lanes = lanes,
                   .jumps = loop_find_jumps(lanes->scratch, lanes->from),
                   .uses = region_count_uses(lanes->scratch, lanes->from->body),
                   .accesses = arena_array(lanes->scratch, Access, MOST_ACCESSES)};
}

/* ---- values: those that come from outside are what they are there */

static bool is_of_item(const Apart *apart, const Val *v) {
    if (val_is_const(v)) return false;
    return (v->kind == VAL_param ? v->region->func : v->inst->func) == apart->lanes->from;
}

static Val *known_as(const Apart *apart, Val *v) {
    v = ir_resolve(v);
    bool is_param = v->kind == VAL_param && v->region == apart->lanes->from->body;
    Val *outside = is_param ? apart->lanes->rounds->outside[v->index] : NULL;
    return outside ? ir_resolve(outside) : v;
}

/* ---- indices */

static void add_term(Form *form, const Val *v, int64_t factor) {
    for (int i = 0; i < form->nterms; i++)
        if (form->terms[i].v == v) {
            form->terms[i].factor += factor;
            return;
        }
    if (form->nterms == MOST_TERMS) form->known = false;
    else form->terms[form->nterms++] = (Term){v, factor};
}

static void add_range(Form *form, int64_t low, int64_t high, int64_t factor) {
    if (low < -FAR || high > FAR) {
        form->known = false;
        return;
    }
    form->low += factor * (factor < 0 ? high : low);
    form->high += factor * (factor < 0 ? low : high);
}

/* May it be computed more than once in a round? */
static bool is_in_inner_loop(const Val *v) {
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    for (; region->owner; region = region->owner->parent)
        if (region->owner->op == OP_loop) return true;
    return false;
}

static void add_leaf(const Apart *apart, Form *form, const Val *v, int64_t factor) {
    const Rounds *rounds = apart->lanes->rounds;
    if (!is_of_item(apart, v)) {
        add_term(form, v, factor);
    } else if (v->kind == VAL_param && v->region == apart->lanes->from->body) {
        if (v->index < rounds->ncounters) form->step += factor * lanes_step_of_counter(rounds, v->index);
        else form->known = false;
    } else if (is_in_inner_loop(v)) {
        Interval interval = ir_interval(&apart->jumps, v);
        if (interval.known) add_range(form, interval.low, interval.high, factor);
        else form->known = false;
    } else if (varies(apart->lanes, v)) {
        form->known = false;
    } else {
        add_term(form, v, factor);
    }
}

static bool is_wide_integer(const Type *type) { return type_is_integer(type) && type_bits(type) >= 32; }

static void add_index(const Apart *apart, Form *form, Val *v, int64_t factor, int depth) {
    int64_t number;
    v = known_as(apart, v);
    if (factor < -FAR || factor > FAR || !is_wide_integer(v->type)) form->known = false;
    if (!form->known) return;
    const Inst *inst = v->kind == VAL_inst && depth > 0 ? v->inst : NULL;
    if (val_is_int(v, &number)) {
        add_range(form, number, number, factor);
    } else if (inst && (inst->op == OP_add || inst->op == OP_sub)) {
        add_index(apart, form, inst->args[0], factor, depth - 1);
        add_index(apart, form, inst->args[1], inst->op == OP_sub ? -factor : factor, depth - 1);
    } else if (inst && inst->op == OP_mul && lanes_times_one(apart->lanes, inst)) {
        add_index(apart, form, lanes_times_one(apart->lanes, inst), factor, depth - 1);
    } else if (inst && inst->op == OP_mul && val_is_int(inst_operand(inst, 1), &number) && number > -FAR &&
               number < FAR) {
        add_index(apart, form, inst->args[0], factor * number, depth - 1);
    } else if (inst && inst->op == OP_convert && is_wide_integer(inst->args[0]->type)) {
        add_index(apart, form, inst->args[0], factor, depth - 1);
    } else {
        add_leaf(apart, form, v, factor);
    }
}

static Form form_of(const Apart *apart, Val *index) {
    Form form = {.known = true};
    add_index(apart, &form, index, 1, DEPTH);
    bool is_near = form.step > -FAR && form.step < FAR && form.low > -FAR && form.high < FAR;
    form.known &= is_near;
    return form;
}

/* ---- places */

/* Out of range they would all mean the last element. */
static bool may_be_clamped(const Inst *elem) {
    const Type *whole = ir_target(elem->args[0]->type);
    int64_t length = whole->kind == TYPE_vector ? type_count(whole) : type_length(whole), index;
    if (inst_has(elem, INST_UNCHECKED) || length < 0) return false;
    return !val_is_int(inst_operand(elem, 1), &index) || index < 0 || index >= length;
}

static Step step_to(const Apart *apart, const Inst *inst) {
    Step step = {.field = inst->op == OP_field ? inst->index : -1, .size = 1};
    if (inst->op == OP_field) return step;
    step.index = form_of(apart, inst->args[1]);
    if (inst->op == OP_elem && may_be_clamped(inst)) step.index.known = false;
    if (inst->op == OP_buffer_bytes)
        step.size = type_layout(ir_target(inst->results[0]->type), LAYOUT_scalar).size;
    return step;
}

static void find_object(const Apart *apart, Access *access, Val *root) {
    const Rounds *rounds = apart->lanes->rounds;
    access->root = root;
    if (root->kind == VAL_param && root->region == rounds->func->body) {
        access->object = rounds->params[root->index].object;
        access->is_whole = rounds->params[root->index].is_whole;
    } else if (root->kind == VAL_inst && (root->inst->op == OP_global || root->inst->op == OP_var)) {
        bool is_global = root->inst->op == OP_global;
        const Global *global = is_global ? root->inst->global : NULL;
        access->object.key = is_global ? (const void *)global : root;
        access->object.is_constant =
            is_global && (global->kind == GLOBAL_const || global->kind == GLOBAL_uniform);
        access->is_whole = true;
    } else {
        access->root = NULL;
    }
}

/* Follows the address to where it begins. False: it is a variable of the round's own. */
static bool find_place(const Apart *apart, Access *access, Val *address) {
    Val *at = known_as(apart, address);
    access->space = ir_space(at->type);
    while (at->kind == VAL_inst && access->nsteps < MOST_STEPS) {
        Inst *inst = at->inst;
        bool in_buffer = inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes;
        if (inst->op != OP_field && inst->op != OP_elem && !in_buffer) break;
        access->steps[access->nsteps++] = step_to(apart, inst);
        at = known_as(apart, inst->args[0]);
        if (!in_buffer) continue;
        access->buffer = at;
        access->elem = inst->op == OP_buffer_elem ? inst : NULL;
        return true;
    }
    bool is_own = at->kind == VAL_inst && at->inst->op == OP_var && is_of_item(apart, at);
    if (!is_own) find_object(apart, access, at);
    return !is_own;
}

/* ---- what a round does */

static Access *new_access(Apart *apart, const Inst *inst) {
    if (apart->count == MOST_ACCESSES) {
        apart->is_lost = true;
        apart->count--;
    }
    Access *access = &apart->accesses[apart->count++];
    *access = (Access){.inst = inst};
    return access;
}

/* Nobody wants to know what was there before. */
static bool is_sum(const Apart *apart, const Inst *inst) {
    return inst->op == OP_atomic && inst->index == ATOMIC_add && apart->uses[inst->results[0]->id] == 0;
}

static void note_address(Apart *apart, const Inst *inst, int index, bool writes) {
    Access *access = new_access(apart, inst);
    access->writes = writes;
    access->sums = is_sum(apart, inst);
    if (!find_place(apart, access, inst->args[index])) apart->count--;
}

static void note_on_tape(Apart *apart, const Inst *inst) {
    if (lanes_tape(inst) || inst->op == OP_tape_open) return; /* of the round's own */
    if (inst->op != OP_tape_load && inst->op != OP_tape_store) {
        lanes_decline(apart->lanes, inst, "where a round keeps something depends on the round before");
        return;
    }
    Access *access = new_access(apart, inst);
    access->writes = inst->op == OP_tape_store;
    access->space = SPACE_tape;
    access->tape = known_as(apart, inst->args[0]);
    access->type = ir_on_stack(inst);
    access->steps[access->nsteps++] = (Step){.field = -1, .index = form_of(apart, inst->args[1]), .size = 1};
}

static void note_call(Apart *apart, const Inst *call) {
    bool is_pure = (call->callee->flags & FUNC_PURE) != 0;
    for (int i = 0; i < call->nargs; i++) {
        Access access = {0};
        bool is_address = ir_target(call->args[i]->type) != NULL;
        if (is_address && find_place(apart, &access, call->args[i])) is_pure = false;
    }
    if (!is_pure) lanes_decline(apart->lanes, call, "it calls a function that may do what others see");
}

static void note_inst(void *user, Inst *inst) {
    Apart *apart = user;
    if (inst->op == OP_call) note_call(apart, inst);
    else if (is_for_tape(inst)) note_on_tape(apart, inst);
    else
        for (int i = 0; i < inst->nargs; i++) {
            Role role = ir_role(inst, i);
            bool writes = role == ROLE_write || role == ROLE_share;
            if (writes || role == ROLE_read) note_address(apart, inst, i, writes);
        }
}

/* ---- two of them */

typedef enum Relation { APART, SAME, MAYBE } Relation;

static bool have_same_terms(const Form *a, const Form *b) {
    Form difference = *a;
    for (int i = 0; i < b->nterms && difference.known; i++)
        add_term(&difference, b->terms[i].v, -b->terms[i].factor);
    for (int i = 0; i < difference.nterms; i++)
        if (difference.terms[i].factor != 0) return false;
    return difference.known;
}

static bool is_between(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

static Relation compare_elements(const Step *a, const Step *b, int width) {
    const Form *x = &a->index, *y = &b->index;
    if (!x->known || !y->known || x->step != y->step || !have_same_terms(x, y)) return MAYBE;
    int64_t low = x->low - y->high - (b->size - 1), high = x->high - y->low + (a->size - 1);
    if (x->step == 0) return low == 0 && high == 0 ? SAME : is_between(0, low, high) ? MAYBE : APART;
    for (int i = 1; i < width; i++)
        if (is_between(i * x->step, low, high) || is_between(-i * x->step, low, high)) return MAYBE;
    return APART;
}

static bool are_parts_apart(const Apart *apart, const Access *a, const Access *b) {
    for (int i = 1; i <= a->nsteps && i <= b->nsteps; i++) { /* the outermost was found last */
        const Step *x = &a->steps[a->nsteps - i], *y = &b->steps[b->nsteps - i];
        if ((x->field < 0) != (y->field < 0)) return false;
        Relation relation = x->field >= 0 ? (x->field == y->field ? SAME : APART)
                                          : compare_elements(x, y, apart->lanes->width);
        if (relation != SAME) return relation == APART;
    }
    return false;
}

/* Of what is not known nothing is set. */
static bool are_objects_apart(const Access *a, const Access *b) {
    if (a->object.is_constant || b->object.is_constant) return true;
    if (a->object.key == b->object.key) return false;
    return a->object.is_private || b->object.is_private || (a->object.key && b->object.key);
}

/* The loop asks whether they have something in common. */
static bool test_apart(Apart *apart, Val *a, Val *b) {
    Rounds *rounds = apart->lanes->rounds;
    if (is_of_item(apart, a) || is_of_item(apart, b)) return false;
    for (int i = 0; i < rounds->apart.count; i += 2) {
        Val *const *pair = rounds->apart.at + i;
        if ((pair[0] == a && pair[1] == b) || (pair[0] == b && pair[1] == a)) return true;
    }
    vec_push(apart->lanes->scratch, &rounds->apart, a);
    vec_push(apart->lanes->scratch, &rounds->apart, b);
    return true;
}

static bool have_tapes_both(const Apart *apart, const Access *a) {
    bool loads = false, stores = false;
    for (int i = 0; i < apart->count; i++) {
        const Access *other = &apart->accesses[i];
        if (!other->tape || other->type != a->type) continue;
        loads |= !other->writes;
        stores |= other->writes;
    }
    return loads && stores;
}

/* One adds to a derivative, and the other reads what the function itself has: in functions that autodiff has
 * made, but for loops that read derivatives, too. */
static bool is_beside_derivative(const Apart *apart, const Access *a, const Access *b) {
    bool adds = inst_has(a->inst, INST_FREE) || inst_has(b->inst, INST_FREE);
    const Rounds *rounds = apart->lanes->rounds;
    return rounds->is_derivative && !rounds->loop->hints.takes && adds && !(a->writes && b->writes);
}

static bool are_apart(Apart *apart, const Access *a, const Access *b) {
    if ((a->sums && b->sums) || is_beside_derivative(apart, a, b)) return true;
    if (a->space != b->space && a->space != SPACE_any && b->space != SPACE_any) return true;
    if (a->tape && b->tape)
        return a->type != b->type || !have_tapes_both(apart, a) || are_parts_apart(apart, a, b);
    if (a->buffer && b->buffer)
        return lanes_is_same_memory(a->buffer, b->buffer) ? are_parts_apart(apart, a, b)
                                                          : test_apart(apart, a->buffer, b->buffer);
    if (a->buffer || b->buffer || a->tape ||
        b->tape) /* that cannot be a variable, or an object that the function was given */
        return a->object.key || b->object.key;
    if (!a->root || !b->root) return are_objects_apart(a, b);
    bool is_one =
        a->root == b->root || (a->is_whole && b->is_whole && a->object.key && a->object.key == b->object.key);
    return is_one ? are_parts_apart(apart, a, b) : are_objects_apart(a, b);
}

bool lanes_are_elsewhere(Lanes *lanes, const Inst *sum, const Inst *load) {
    if (!lanes->rounds) return ir_is_own(sum->args[0]); /* which nobody reads */
    Apart apart = begin(lanes);
    Access a = {.inst = sum}, b = {.inst = load};
    if (!find_place(&apart, &a, sum->args[0])) return false;
    if (!find_place(&apart, &b, load->args[0]) || is_beside_derivative(&apart, &a, &b)) return true;
    if (a.space != b.space && a.space != SPACE_any && b.space != SPACE_any) return true;
    bool in_buffers = a.buffer && b.buffer && !lanes_is_same_memory(a.buffer, b.buffer);
    return in_buffers && test_apart(&apart, a.buffer, b.buffer);
}

/* ---- elements that every round uses */

/* Can the loop compute it before its first round? */
static bool is_known_before(const Apart *apart, const Val *v, int depth) {
    v = ir_resolve((Val *)v);
    if (val_is_const(v)) return true;
    if (v->kind == VAL_param) {
        bool is_param = v->region == apart->lanes->from->body;
        return is_param &&
               (v->index < apart->lanes->rounds->ncounters || apart->lanes->rounds->outside[v->index]);
    }
    bool is_sum =
        v->inst->op == OP_add || v->inst->op == OP_sub || v->inst->op == OP_mul || v->inst->op == OP_convert;
    for (int i = 0; i < v->inst->nargs && is_sum; i++)
        is_sum = depth > 0 && is_known_before(apart, v->inst->args[i], depth - 1);
    return is_sum;
}

/* Modulo 2 to the 32, an index of 32 bits is what its form says, whatever wraps around on the way. */
static bool is_in_every_round(const Apart *apart, const Access *access) {
    if (!access->elem || inst_has(access->elem, INST_UNCHECKED) || is_of_item(apart, access->buffer))
        return false;
    const Form *form = &access->steps[access->nsteps - 1].index;
    const Val *index = inst_operand(access->elem, 1);
    return access->inst->parent == apart->lanes->from->body && form->known && form->step != 0 &&
           type_bits(index->type) == 32 && is_known_before(apart, index, DEPTH);
}

/* Does it have a place beside others of the same buffer? `leasts`: their forms. */
static bool join_reach(Reach *reach, Form *least, const Access *access) {
    const Form *form = &access->steps[access->nsteps - 1].index;
    Val *index = inst_operand(access->elem, 1);
    if (reach->buffer != access->buffer || reach->index->type != index->type || reach->step != form->step ||
        !have_same_terms(least, form))
        return false;
    int64_t behind = form->low - least->low;
    if (behind > reach->more) reach->more = behind;
    if (behind >= 0) return true;
    reach->more -= behind;
    reach->index = index;
    *least = *form;
    return true;
}

static void find_reaches(const Apart *apart) {
    Rounds *rounds = apart->lanes->rounds;
    Form leasts[MOST_REACHES];
    for (int i = 0; i < apart->count; i++) {
        const Access *access = &apart->accesses[i];
        if (!is_in_every_round(apart, access)) continue;
        bool is_found = false;
        for (int k = 0; k < rounds->reaches.count && !is_found; k++)
            is_found = join_reach(&rounds->reaches.at[k], &leasts[k], access);
        if (!is_found && rounds->reaches.count == MOST_REACHES) continue;
        access->elem->flags |= INST_UNCHECKED;
        if (is_found) continue;
        const Form *form = &access->steps[access->nsteps - 1].index;
        leasts[rounds->reaches.count] = *form;
        vec_push(
            apart->lanes->scratch, &rounds->reaches,
            ((Reach){.buffer = access->buffer, .index = inst_operand(access->elem, 1), .step = form->step}));
    }
}

static bool is_meeting(const void *user, const Inst *inst) {
    const Apart *apart = user;
    Access access = {.inst = inst};
    return inst->op == OP_atomic && is_sum(apart, inst) && is_in_inner_loop(inst->results[0]) &&
           find_place(apart, &access, inst->args[0]) && !are_parts_apart(apart, &access, &access);
}

bool lanes_sums_meet(Lanes *lanes) {
    Apart apart = begin(lanes);
    return region_find(lanes->from->body, is_meeting, &apart);
}

void lanes_look_for_conflicts(Lanes *lanes) {
    Apart apart = begin(lanes);
    region_walk(lanes->from->body, note_inst, &apart);
    if (apart.is_lost) lanes_decline(lanes, NULL, "it uses memory in too many places");
    for (int i = 0; i < apart.count && !lanes->why; i++)
        for (int k = 0; k < apart.count && apart.accesses[i].writes; k++)
            if (!are_apart(&apart, &apart.accesses[i], &apart.accesses[k]))
                lanes_decline(lanes, apart.accesses[i].inst, "a round may write what another one uses");
    if (!lanes->why && !lanes->options->unchecked) find_reaches(&apart);
}

/* ---- sums in memory */

/* What the store adds to, if nothing else could tell in which order; else NULL. */
static Inst *added_to(const int *uses, const Inst *store) {
    const Val *sum = store->op == OP_store ? inst_operand(store, 1) : NULL;
    bool is_free = sum && sum->kind == VAL_inst && inst_is_free_sum(sum->inst) && type_is_scalar(sum->type) &&
                   uses[sum->id] == 1;
    for (int i = 0; i < 2 && is_free; i++) {
        const Val *before = inst_operand(sum->inst, i);
        if (before->kind != VAL_inst || before->inst->op != OP_load || uses[before->id] != 1 ||
            inst_operand(before->inst, 0) != inst_operand(store, 0) || (i == 1 && sum->inst->op == OP_sub))
            continue;
        for (Inst *inst = store->prev; inst; inst = inst->prev) {
            if (inst == before->inst) return inst;
            if (!op_has(inst->op, OP_PURE) && inst->op != OP_load) break;
        }
    }
    return NULL;
}

static bool is_own(const Val *root) { return root->kind == VAL_inst && root->inst->op == OP_var; }

static void find_sum(void *user, Inst *inst) {
    Inst *load = added_to(user, inst);
    if (!load || is_own(ir_root(inst->args[0]))) return;
    Builder b = build_before(inst);
    b.loc = inst->loc;
    const Inst *sum = inst_operand(inst, 1)->inst;
    Val *more = inst_operand(sum, inst_operand(sum, 0) == load->results[0] ? 1 : 0);
    if (sum->op == OP_sub) more = build_unary(&b, OP_neg, more);
    Val *args[] = {inst_operand(inst, 0), more};
    Inst *atomic = build_inst(&b, OP_atomic, args, 2, 1, 0);
    atomic->index = ATOMIC_add;
    atomic->flags |= INST_FREE;
    atomic->results[0]->type = more->type;
    inst_remove(inst);
}

void lanes_find_sums(Lanes *lanes) {
    int *uses = region_count_uses(lanes->scratch, lanes->from->body);
    region_walk(lanes->from->body, find_sum, uses);
    opt_dce(lanes->from);
}

static void write_sum(void *user, Inst *inst) {
    (void)user;
    if (inst->op != OP_atomic || !inst_has(inst, INST_FREE)) return;
    Builder b = build_before(inst);
    b.loc = inst->loc;
    Val *address = inst_operand(inst, 0),
        *sum = build_sum(&b, build_load(&b, address), inst_operand(inst, 1));
    build_store(&b, address, sum);
    inst_remove(inst);
}

void lanes_write_sums(Region *region) { region_walk(region, write_sum, NULL); }
