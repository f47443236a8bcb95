/* Elements: of local arrays, those whose adjoints are firm (untaken.c), going backwards through the
 * differential half.
 *
 * What a loop over the whole array reads, or a row of reads by constant indices, is firm for every element
 * before it. From there on backwards that
 * stays so: what is stored to an element is firm, for that element is; the value that it replaces is not,
 * unless it was read before, for something that is firm itself, as elimination and the like do with every
 * element that they change:
 *
 *   %1' = diff load %element'
 *   %2' = diff sub %1', %3'
 *   diff store %element', %2'
 *
 * What a function hands out by address is firm where it ends, if its caller says so of all that it is given.
 *
 * So an array is described by whether all its elements are firm, but for some that were stored and not yet
 * read. In a round of a loop all of them must have been, unless no two rounds write the same element, as
 * where an array is filled: else the array is given up (`denied`), and what was found so far is looked for
 * anew. */
#include "autodiff/ad.h"

enum { MOST_ARRAYS = 32, MOST_OPEN = 32, MOST_DIMENSIONS = 4 };

/* Of an array, at one place. */
typedef struct Firm {
    bool all; /* but for these: */
    int nopen;
    const Val *open[MOST_OPEN];
    const Val *some; /* if not: the element of this address, NULL: none, */
    uint32_t every;  /* ... with any index in the dimensions of these bits, */
    uint64_t read;   /* and those of these bits, counted through */
} Firm;

typedef struct Array {
    const Val *var; /* or a parameter */
    bool given;     /* by the caller, all of it firm */
    bool denied;
    int stores; /* seen so far */
} Array;

struct Elements {
    Arena *arena;
    const Making *making;
    Map numbers; /* Val -> number of its array, plus 1 */
    VEC(Array) arrays;
    Firm *now; /* by number */
};

/* ---- arrays */

static bool is_var(const Val *v) {
    return v->kind == VAL_param ? !v->region->owner : v->kind == VAL_inst && v->inst->op == OP_var;
}

static const Val *var_of(const Val *address) {
    const Val *v = ir_resolve((Val *)(uintptr_t)address);
    while (v->kind == VAL_inst && v->inst->op == OP_elem) v = inst_operand(v->inst, 0);
    return is_var(v) ? v : NULL;
}

static Array *array_at(const Elements *e, const Val *address, Firm **firm) {
    const Val *var = var_of(address);
    intptr_t number = var ? (intptr_t)map_get(&e->numbers, PTR_KEY(var)) : 0;
    if (!number) return NULL;
    *firm = &e->now[number - 1];
    return &e->arrays.at[number - 1];
}

static bool is_array_of_floats(const Type *type) {
    int dimensions = 0;
    for (; type->kind == TYPE_array && type_length(type) > 0; type = type->args[0]) dimensions++;
    dimensions += type->kind == TYPE_vector;
    return dimensions > 0 && dimensions <= MOST_DIMENSIONS && type_is_float(type_element(type));
}

static void list_array(Elements *e, const Val *var, const Type *type, bool given) {
    if (!is_array_of_floats(type) || e->arrays.count == MOST_ARRAYS) return;
    vec_push(e->arena, &e->arrays, ((Array){.var = var, .given = given}));
    map_put(e->arena, &e->numbers, PTR_KEY(var), (void *)(intptr_t)e->arrays.count);
}

static void list_var(void *user, Inst *inst) {
    if (inst->op == OP_var) list_array(user, inst->results[0], inst->type, false);
}

/* What it hands out by address. */
static void list_given(Elements *e) {
    const Making *m = e->making;
    for (int i = 0; i < m->f->leaves.count && m->reverse->terms.given; i++) {
        const Leaf *leaf = &m->f->leaves.at[i];
        if (leaf->by_ref && leaf->diff && leaf->dir != DIR_in)
            list_array(e, ir_resolve(m->differentials[i]), leaf->dtype, true);
    }
}

/* Whoever does something else with an address may read and write through it. */
static void drop_shared(void *user, Inst *inst) {
    Elements *e = user;
    bool is_plain = inst->op == OP_elem || inst->op == OP_load || inst->op == OP_store ||
                    inst->op == OP_copy || inst->op == OP_zero;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *var = inst->args[i]->type->kind == TYPE_pointer ? var_of(inst->args[i]) : NULL;
        if (var && (!is_plain || (inst->op == OP_store && i == 1)))
            map_put(e->arena, &e->numbers, PTR_KEY(var), NULL);
    }
}

Elements *ad_elements(Ad *ad, const Making *making) {
    Elements *e = arena_new(ad->arena, Elements);
    *e = (Elements){.arena = ad->arena, .making = making};
    list_given(e);
    region_walk(making->diff, list_var, e);
    if (e->arrays.count) region_walk(making->diff, drop_shared, e);
    e->now = arena_array(ad->arena, Firm, e->arrays.count + 1);
    return e;
}

void ad_elements_restart(Elements *e) {
    for (int i = 0; i < e->arrays.count; i++) e->now[i] = (Firm){.all = e->arrays.at[i].given};
}

/* ---- elements by their numbers */

static int64_t length_of(const Type *type) {
    return type->kind == TYPE_vector ? type_count(type) : type_length(type);
}

/* The bit of an element by constant indices, and those of all; 0: it has none. */
static uint64_t bit_of(const Val *address, uint64_t *all) {
    int64_t number = 0, count = 1, index;
    if (!type_is_scalar(ir_target(address->type))) return 0;
    for (const Val *at = address; at->kind == VAL_inst && at->inst->op == OP_elem;
         at = inst_operand(at->inst, 0)) {
        if (!val_is_int(inst_operand(at->inst, 1), &index)) return 0;
        number += index * count;
        count *= length_of(ir_target(inst_operand(at->inst, 0)->type));
        if (index < 0 || count > 64) return 0;
    }
    *all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    return number < count ? UINT64_C(1) << number : 0;
}

/* ---- what touches them */

static void leave_open(Firm *firm, const Val *address) {
    for (int i = 0; i < firm->nopen; i++)
        if (firm->open[i] == address) return;
    if (firm->nopen == MOST_OPEN) *firm = (Firm){0};
    else firm->open[firm->nopen++] = address;
}

/* Which of those that are open it is, may be that nobody knows. */
static bool is_firm_at(const Firm *firm, const Val *address) {
    for (int i = 0; i < firm->nopen; i++)
        if (!ir_are_apart(firm->open[i], address)) return false;
    return firm->all;
}

bool ad_elements_store(Elements *e, const Inst *store) {
    Firm *firm;
    Array *array = array_at(e, store->args[0], &firm);
    if (!array) return false;
    bool is_firm = is_firm_at(firm, store->args[0]);
    array->stores++;
    firm->some = NULL, firm->read = 0;
    if (firm->all) leave_open(firm, inst_operand(store, 0));
    return is_firm;
}

void ad_elements_load(Elements *e, const Inst *load) {
    Firm *firm;
    const Val *address = inst_operand(load, 0);
    if (!array_at(e, address, &firm)) return;
    int kept = 0;
    for (int i = 0; i < firm->nopen; i++)
        if (firm->open[i] != address) firm->open[kept++] = firm->open[i];
    firm->nopen = kept;
    uint64_t all, bit = firm->all ? 0 : bit_of(address, &all);
    firm->read |= bit;
    if (bit && firm->read == all) *firm = (Firm){.all = true};
    else if (!bit && !firm->all && !firm->some) firm->some = address, firm->every = 0;
}

/* A whole array begins, or is overwritten, or some part of it. */
void ad_elements_overwrite(Elements *e, const Inst *inst) {
    Firm *firm, *from;
    Array *array = array_at(e, inst->op == OP_var ? inst->results[0] : inst->args[0], &firm);
    if (!array) return;
    bool is_copied = inst->op == OP_copy && firm->all && !firm->nopen && is_var(inst_operand(inst, 0));
    array->stores++;
    *firm = (Firm){0};
    if (is_copied && is_var(inst_operand(inst, 1)) && array_at(e, inst->args[1], &from))
        *from = (Firm){.all = true};
}

/* ---- regions */

static Firm *copy_of(const Elements *e, const Firm *from) {
    Firm *copy = arena_array(e->arena, Firm, e->arrays.count);
    memcpy(copy, from, sizeof *copy * (size_t)e->arrays.count);
    return copy;
}

ElementsAfter ad_elements_enter(const Elements *e) {
    ElementsAfter after = {0};
    if (e->arrays.count == 0) return after;
    after.firm = copy_of(e, e->now);
    after.stores = arena_array(e->arena, int, e->arrays.count);
    for (int i = 0; i < e->arrays.count; i++) after.stores[i] = e->arrays.at[i].stores;
    return after;
}

static bool is_untouched(const Elements *e, const ElementsAfter *after, int i) {
    return e->arrays.at[i].stores == after->stores[i];
}

static void meet(Firm *firm, const Firm *other) {
    if (!other->all) *firm = (Firm){0};
    for (int i = 0; i < other->nopen && firm->all; i++) leave_open(firm, other->open[i]);
    if (!firm->all) *firm = (Firm){0};
}

void ad_elements_branch(Elements *e, ElementsAfter *after) {
    if (e->arrays.count == 0) return;
    if (!after->met) after->met = copy_of(e, e->now);
    for (int i = 0; i < e->arrays.count; i++) {
        meet(&after->met[i], &e->now[i]);
        e->now[i] = after->firm[i];
    }
}

void ad_elements_join(Elements *e, const ElementsAfter *after) {
    for (int i = 0; i < e->arrays.count; i++)
        e->now[i] = is_untouched(e, after, i) ? after->firm[i] : after->met[i];
}

static bool is_whole(const Elements *e, const ElementsAfter *after, int i) {
    return after->firm[i].all && !after->firm[i].nopen && !e->arrays.at[i].denied;
}

void ad_elements_enter_round(Elements *e, const ElementsAfter *after) {
    for (int i = 0; i < e->arrays.count; i++) e->now[i] = (Firm){.all = is_whole(e, after, i)};
}

/* Is it the counter, from 0 on? */
static bool counts(const Inst *loop, const Val *index) {
    int64_t first, step;
    return index->kind == VAL_param && index->region->owner == loop && loop_step(loop, index->index, &step) &&
           step == 1 && val_is_int(inst_operand(loop, index->index), &first) && first == 0;
}

/* What some round reads: all rounds together read it for every index that counts them, if that is all there
 * are. */
static Firm widen(Firm firm, const Inst *loop, int64_t trip) {
    const Val *at = firm.some;
    bool is_all = true, has_counted = false;
    for (int i = 0; at->kind == VAL_inst && at->inst->op == OP_elem; i++, at = inst_operand(at->inst, 0)) {
        const Val *index = val_unconverted(inst_operand(at->inst, 1));
        bool is_counted =
            counts(loop, index) && !has_counted; /* of a diagonal, the other dimension is open */
        if (is_counted && length_of(ir_target(inst_operand(at->inst, 0)->type)) == trip)
            firm.every |= 1u << i, has_counted = true;
        is_all &= firm.every >> i & 1;
    }
    return is_all ? (Firm){.all = true} : firm;
}

/* The dimensions in which a number that each round counts on is the index of what is written. */
typedef struct Written {
    const Val *var;
    const Inst *loop;
    uint32_t counted;
} Written;

static void look_at_write(void *user, Inst *inst) {
    Written *w = user;
    uint32_t counted = 0;
    bool is_write = inst->op == OP_store || inst->op == OP_copy || inst->op == OP_zero;
    const Val *var = is_write ? var_of(inst->args[0]) : NULL, *at = is_write ? inst_operand(inst, 0) : NULL;
    if (!var || var != w->var) return;
    for (int i = 0; at->inst->op == OP_elem && inst->op == OP_store; i++, at = inst_operand(at->inst, 0)) {
        const Val *index = val_unconverted(inst_operand(at->inst, 1));
        int64_t step;
        bool is_carried = index->kind == VAL_param && index->region->owner == w->loop;
        if (is_carried && inst_has(at->inst, INST_UNCHECKED) && loop_step(w->loop, index->index, &step) &&
            step)
            counted |= 1u << i;
    }
    w->counted &= counted;
}

/* Does no round write what another one does? Then what holds behind the loop holds behind the round for all
 * that it writes. */
static bool are_rounds_apart(const Inst *loop, const Inst *primal, const Val *var) {
    Written written = {var, primal, ~0u};
    region_walk(loop->regions[1], look_at_write, &written);
    return primal && written.counted;
}

bool ad_elements_leave_loop(Elements *e, const Inst *loop, int64_t trip, const ElementsAfter *after) {
    bool changed = false;
    const Inst *primal = map_get(&e->making->twins, PTR_KEY(loop));
    for (int i = 0; i < e->arrays.count; i++) {
        Firm *now = &e->now[i], read = {0};
        if (is_untouched(e, after, i)) {
            if (trip > 0 && now->all && !now->nopen) read = *now;
            if (trip > 0 && now->some && primal) read = widen(*now, primal, trip);
            *now = read.all || !(after->firm[i].all || after->firm[i].some) ? read : after->firm[i];
            if (after->firm[i].all) *now = after->firm[i];
            if (!now->all) now->read = after->firm[i].read;
        } else if (is_whole(e, after, i)) {
            bool stays = now->all && !now->nopen;
            if (!stays && !are_rounds_apart(loop, primal, e->arrays.at[i].var))
                e->arrays.at[i].denied = changed = true;
            *now = (Firm){.all = stays};
        } else {
            *now = (Firm){0};
        }
    }
    return changed;
}
