/* On a GPU, sums that a thread keeps in an array only to add them to a buffer at the end go there at once.
 * The gradient of a struct of weights is such an array: a thread would set it to zero, add to each number
 * once, and read it again, all in memory that is far.
 *
 *     float d[32] = 0;                                     for (k ...) atomic add g[7 + k], x;
 *     for (k ...) d[k] += x;
 *     for (i = 0; i < 32; i++) atomic add g[7 + i], d[i];
 *
 * The array has nothing else done to it; the last loops go over all its elements, one by one. Each element
 * must be added to once at most, as far as trip counts tell: an array that collects much is better kept. Sums
 * come earlier then, so that nothing in between may see the buffer: other buffers are taken to be other
 * memory, as in late.c. */
#include "opt.h"

enum { MOST_INDICES = 4, MOST_TERMS = 32 };

typedef struct Access {
    const Val *var;
    Val *indices[MOST_INDICES]; /* the outermost first */
    int count;
} Access;

typedef struct Array {
    Inst *var;
    InstVec loads, stores;
    bool refused;
} Array;

typedef struct Direct {
    Func *func;
    Arena *scratch;
    uint32_t nids;  /* of values that were there before */
    int *uses;      /* by Val.id */
    int *numbers;   /* by Val.id: when the instruction comes */
    Map at;         /* Inst -> its number + 1 */
    Array **arrays; /* by Val.id of the variable */
    VEC(Array *) all;
    int now;
    bool changed;
} Direct;

/* A sum at work: the loops that go over the array, and where an element of it is added to. */
typedef struct Sum {
    Direct *d;
    Inst *add;          /* the atomic operation */
    Access from;        /* the element that it adds */
    Inst *first;        /* the outermost loop around it */
    const Inst *update; /* a store that adds to the array */
    Access to;          /* the element that the store is to */
    Map again;          /* Val -> what is computed for it before the store */
    int terms;
} Sum;

static bool is_used(const Direct *d, const Val *v) { return v->id < d->nids && d->uses[v->id] > 0; }

static int number_of(const Direct *d, const Inst *inst) {
    return (int)(uintptr_t)map_get(&d->at, PTR_KEY(inst));
}

/* ---- what is done with arrays */

static const Type *leaf_of(const Type *type, int64_t *elements) {
    *elements = 1;
    for (; type->kind == TYPE_array; type = type->args[0]) {
        if (*elements > INT32_MAX / 2) return NULL;
        *elements *= type_length(type);
    }
    return type;
}

static void note_var(Direct *d, Inst *inst) {
    int64_t elements;
    const Type *leaf = inst->type->kind == TYPE_array ? leaf_of(inst->type, &elements) : NULL;
    if (!leaf || inst_has(inst, INST_RAW)) return;
    if (leaf->kind != TYPE_float && leaf->kind != TYPE_double) return;
    Array *array = arena_new(d->scratch, Array);
    array->var = inst;
    d->arrays[inst->results[0]->id] = array;
    vec_push(d->scratch, &d->all, array);
}

static void note_use(Direct *d, Inst *inst, int index) {
    Val *arg = inst_operand(inst, index);
    Role role = ir_role(inst, index);
    if (val_is_const(arg) || role == ROLE_value) return;
    const Val *root = ir_root(arg);
    Array *array = val_is_const(root) ? NULL : d->arrays[root->id];
    if (!array) return;
    if (inst->op == OP_load) vec_push(d->scratch, &array->loads, inst);
    else if (inst->op == OP_store && index == 0) vec_push(d->scratch, &array->stores, inst);
    else if (inst->op != OP_elem) array->refused = true;
}

static void note_inst(void *user, Inst *inst) {
    Direct *d = user;
    map_put(d->scratch, &d->at, PTR_KEY(inst), (void *)(uintptr_t)++d->now);
    for (int i = 0; i < inst->nresults; i++) d->numbers[inst->results[i]->id] = d->now;
    if (inst->op == OP_var) note_var(d, inst);
    for (int i = 0; i < inst->nargs; i++) note_use(d, inst, i);
}

static bool find_access(Val *address, Access *access) {
    *access = (Access){0};
    for (; address->kind == VAL_inst && address->inst->op == OP_elem;
         address = inst_operand(address->inst, 0)) {
        if (access->count == MOST_INDICES) return false;
        for (int i = access->count++; i > 0; i--) access->indices[i] = access->indices[i - 1];
        access->indices[0] = inst_operand(address->inst, 1);
    }
    access->var = address;
    return address->kind == VAL_inst && address->inst->op == OP_var;
}

static bool is_unchecked(const Val *address) {
    for (; address->kind == VAL_inst && address->inst->op == OP_elem;
         address = inst_operand(address->inst, 0))
        if (!inst_has(address->inst, INST_UNCHECKED)) return false;
    return true;
}

static bool are_same(const Access *a, const Access *b) {
    if (a->var != b->var || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->indices[i] != b->indices[i]) return false;
    return true;
}

/* ---- stores that add */

/* The load of `store P, load P + x`, with nothing in between that stores to the array. */
static Inst *load_of(const Direct *d, const Array *array, const Inst *store) {
    const Val *value = inst_operand(store, 1);
    Access to, from;
    if (value->kind != VAL_inst || value->inst->op != OP_add || d->uses[value->id] != 1) return NULL;
    for (int i = 0; i < 2; i++) {
        const Val *loaded = inst_operand(value->inst, i);
        Inst *load = loaded->kind == VAL_inst && loaded->inst->op == OP_load ? loaded->inst : NULL;
        if (!load || d->uses[loaded->id] != 1 || load->parent != store->parent) continue;
        if (!find_access(inst_operand(load, 0), &from) || !find_access(inst_operand(store, 0), &to)) continue;
        if (!are_same(&from, &to) || from.var != array->var->results[0]) continue;
        for (const Inst *inst = load->next; inst != store; inst = inst->next)
            if (!inst || inst->nregions || (inst->op == OP_store && ir_root(inst->args[0]) == from.var))
                return NULL;
        return load;
    }
    return NULL;
}

/* How often it runs at most, in the region of the variable; INT64_MAX: not known. */
static int64_t times_run(const Inst *inst, const Region *region) {
    int64_t times = 1;
    for (const Region *at = inst->parent; at != region; at = at->owner->parent) {
        if (!at->owner) return INT64_MAX;
        if (at->owner->op != OP_loop) continue;
        int64_t trips = loop_most_trips(at->owner);
        if (trips > INT32_MAX || times > INT32_MAX) return INT64_MAX;
        times *= trips;
    }
    return times;
}

/* All stores add; one load is left. */
static Inst *find_last_load(const Direct *d, const Array *array) {
    Map used = {0};
    int64_t elements, times = 0;
    leaf_of(array->var->type, &elements);
    for (int i = 0; i < array->stores.count; i++) {
        Inst *store = array->stores.at[i], *load = load_of(d, array, store);
        int64_t more = load ? times_run(store, array->var->parent) : INT64_MAX;
        if (more == INT64_MAX || !is_unchecked(inst_operand(store, 0)) || (times += more) > elements)
            return NULL;
        map_put(d->scratch, &used, PTR_KEY(load), load);
    }
    Inst *last = NULL;
    for (int i = 0; i < array->loads.count; i++) {
        Inst *load = array->loads.at[i];
        if (map_has(&used, PTR_KEY(load))) continue;
        if (last) return NULL;
        last = load;
    }
    return last;
}

/* ---- the loops at the end */

static Inst *find_atomic(const Direct *d, const Inst *load) {
    if (d->uses[load->results[0]->id] != 1) return NULL;
    for (Inst *inst = load->next; inst; inst = inst->next) {
        if (inst->op != OP_atomic || inst->nargs < 2 || inst_operand(inst, 1) != load->results[0]) continue;
        bool adds = inst->index == ATOMIC_add && !is_used(d, inst->results[0]);
        return adds && opt_memory_buffer(inst_operand(inst, 0)) ? inst : NULL;
    }
    return NULL;
}

/* The loop counts from 0, one by one, through all of `length`. */
static bool goes_through(const Inst *loop, const Val *counter, int64_t length) {
    int64_t start, step;
    const Inst *yield = loop->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? inst_operand(yield, 0) : NULL;
    bool is_one_test = condition && condition->kind == VAL_inst && condition->inst->op == OP_lt;
    if (!is_one_test || counter->region != loop->regions[1] || loop->nregions != 2) return false;
    LoopTest test;
    int64_t limit;
    if (!loop_comparison(loop, condition->inst, &test) || test.index != counter->index || !test.up)
        return false;
    if (!val_is_int(ir_resolve(test.limit), &limit) || limit != length ||
        !loop_step(loop, counter->index, &step))
        return false;
    return step == 1 && val_is_int(ir_resolve(loop->args[counter->index]), &start) && start == 0;
}

/* The indices are the counters of the loops around, which are in nothing else. */
static bool find_loops(Sum *sum) {
    const Region *at = sum->add->parent;
    const Type *type = sum->from.var->inst->type;
    int64_t lengths[MOST_INDICES];
    for (int i = 0; i < sum->from.count; i++, type = type->args[0]) {
        if (type->kind != TYPE_array) return false;
        lengths[i] = type_length(type);
    }
    bool found[MOST_INDICES] = {0};
    int count = 0;
    for (; at != sum->from.var->inst->parent; at = at->owner->parent) {
        Inst *loop = at->owner;
        if (!loop || loop->op != OP_loop || at != loop->regions[1] || count++ == MOST_INDICES) return false;
        int index = 0;
        while (index < sum->from.count &&
               (sum->from.indices[index]->kind != VAL_param || sum->from.indices[index]->region != at))
            index++;
        if (index == sum->from.count || found[index]) return false;
        if (!goes_through(loop, sum->from.indices[index], lengths[index])) return false;
        found[index] = true;
        sum->first = loop;
    }
    return count == sum->from.count && count > 0 && type->kind != TYPE_array;
}

/* ---- what happens in between */

static bool is_own(const Val *address) {
    Space space = ir_space(address->type);
    return space == SPACE_local || space == SPACE_tape;
}

/* Sums in the same buffer may come in any order; what is read must be something else. */
static bool is_apart(const Sum *sum, const Inst *inst, const Val *address) {
    const Val *buffer = opt_memory_buffer(address), *root = ir_root((Val *)(uintptr_t)address);
    if (root->kind == VAL_inst && root->inst->op == OP_global)
        return root->inst->global->kind == GLOBAL_uniform || root->inst->global->kind == GLOBAL_const;
    if (!buffer) return false;
    if (type_is_read_only(buffer->type)) return true;
    if (inst->op == OP_atomic && inst->index == ATOMIC_add && !is_used(sum->d, inst->results[0])) return true;
    const Global *owner = ir_owner(buffer), *own = ir_owner(opt_memory_buffer(inst_operand(sum->add, 0)));
    return owner && own && owner != own;
}

static bool leaves(const Inst *inst, const Region *region) {
    if (inst->op == OP_return || inst->op == OP_unreachable) return true;
    if (inst->op != OP_break && inst->op != OP_continue) return false;
    const Region *at = inst->target->parent;
    while (at != region && at->owner) at = at->owner->parent;
    return at != region;
}

static bool can_pass(const Sum *sum, const Inst *inst) {
    const Region *region = sum->from.var->inst->parent;
    if (leaves(inst, region)) return false;
    if (inst->op == OP_tape_open || inst->op == OP_tape_close) return true;
    if (op_has(inst->op, OP_EFFECT | OP_CALLS)) return false;
    for (int i = 0; i < inst->nargs && op_has(inst->op, OP_READS | OP_WRITES); i++) {
        Role role = ir_role(inst, i);
        if (role != ROLE_value && !is_own(inst->args[i]) && !is_apart(sum, inst, inst_operand(inst, i)))
            return false;
    }
    for (int k = 0; k < inst->nregions; k++)
        for (const Inst *inner = inst->regions[k]->first; inner; inner = inner->next)
            if (!can_pass(sum, inner)) return false;
    return true;
}

/* From the variable to the end of the loops. */
static bool is_quiet(const Sum *sum) {
    for (const Inst *inst = sum->from.var->inst->next; inst; inst = inst->next) {
        if (!can_pass(sum, inst)) return false;
        if (inst == sum->first) return true;
    }
    return false;
}

static bool are_before(const Sum *sum, const Array *array) {
    for (int i = 0; i < array->stores.count; i++)
        if (number_of(sum->d, array->stores.at[i]) >= number_of(sum->d, sum->first)) return false;
    return true;
}

/* ---- adding at once */

static bool is_seen(const Sum *sum, const Val *v) {
    const Region *own = v->kind == VAL_param ? v->region : v->inst->parent;
    if (v->kind == VAL_inst && sum->d->numbers[v->id] > number_of(sum->d, sum->update)) return false;
    for (const Region *at = sum->update->parent; at; at = at->owner ? at->owner->parent : NULL)
        if (at == own) return true;
    return false;
}

static bool may_repeat(const Inst *inst) {
    return inst_is_steady(inst) || inst->op == OP_buffer_elem || op_has(inst->op, OP_PART);
}

static bool can_repeat(Sum *sum, const Val *v) {
    if (val_is_const(v)) return true;
    for (int i = 0; i < sum->from.count; i++)
        if (v == sum->from.indices[i]) return true;
    if (is_seen(sum, v)) return true;
    if (v->kind != VAL_inst || ++sum->terms > MOST_TERMS || v->inst->nregions || !may_repeat(v->inst))
        return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (!can_repeat(sum, inst_operand(v->inst, i))) return false;
    return true;
}

static Val *repeat(Sum *sum, Builder *b, Val *v) {
    if (val_is_const(v)) return v;
    for (int i = 0; i < sum->from.count; i++)
        if (v == sum->from.indices[i]) return build_convert(b, sum->to.indices[i], v->type);
    if (is_seen(sum, v)) return v;
    Val *known = map_get(&sum->again, PTR_KEY(v));
    if (known) return known;
    Val **args = arena_array(sum->d->scratch, Val *, v->inst->nargs + 1);
    for (int i = 0; i < v->inst->nargs; i++) args[i] = repeat(sum, b, inst_operand(v->inst, i));
    Val *result = clone_with(b, v->inst, args)->results[0];
    map_put(sum->d->scratch, &sum->again, PTR_KEY(v), result);
    return result;
}

static void begin_update(Sum *sum, const Inst *store) {
    sum->update = store;
    sum->again = (Map){0};
    sum->terms = 0;
    find_access(inst_operand(store, 0), &sum->to);
}

static void add_at_once(Sum *sum, Inst *store) {
    const Inst *add = inst_operand(store, 1)->inst;
    const Val *first = inst_operand(add, 0);
    bool is_load = first->kind == VAL_inst && first->inst->op == OP_load &&
                   ir_root(first->inst->args[0]) == sum->from.var && sum->d->uses[first->id] == 1;
    Builder b = build_before(store);
    begin_update(sum, store);
    Val *args[] = {repeat(sum, &b, inst_operand(sum->add, 0)), inst_operand(add, is_load ? 1 : 0)};
    clone_with(&b, sum->add, args);
    inst_remove(store);
}

static void visit(Direct *d, Array *array) {
    Sum sum = {.d = d};
    if (array->refused || array->stores.count == 0) return;
    const Inst *load = find_last_load(d, array);
    sum.add = load ? find_atomic(d, load) : NULL;
    if (!sum.add || !find_access(inst_operand(load, 0), &sum.from) || sum.from.var != array->var->results[0])
        return;
    if (!find_loops(&sum) || !are_before(&sum, array) || !is_quiet(&sum)) return;
    for (int i = 0; i < array->stores.count; i++) {
        begin_update(&sum, array->stores.at[i]);
        if (!can_repeat(&sum, inst_operand(sum.add, 0))) return;
    }
    for (int i = 0; i < array->stores.count; i++) add_at_once(&sum, array->stores.at[i]);
    inst_remove(sum.add);
    d->changed = true;
}

bool opt_direct_sums(Func *func) {
    if (!func->body || !func->module->many_threads || func->group_size[0] == 0) return false;
    Direct d = {.func = func, .nids = func->nvals, .scratch = arena_scratch(func->module->arena)};
    d.uses = region_count_uses(d.scratch, func->body);
    d.numbers = arena_array(d.scratch, int, func->nvals + 1);
    d.arrays = arena_array(d.scratch, Array *, func->nvals + 1);
    region_walk(func->body, note_inst, &d);
    for (int i = 0; i < d.all.count; i++) visit(&d, d.all.at[i]);
    arena_free(d.scratch);
    return d.changed;
}
