/* Sums in buffers that a kernel can keep for itself.
 *
 * Where threads add to numbers in a buffer, and nobody sees in between what they are, it does not matter when
 * that happens. So the runtime gives a kernel copies of such buffers, and adds those up when it is done, in a
 * fixed order (runtime/sums.c): sums need no atomic operations, and do not depend on which thread came first.
 *
 *     kernel(..., own float[] mine):  *grad = load uniform;  atomic add grad[i], x   becomes   atomic add mine[i], x
 *
 * The copies are parameters at the end of a form of the kernel; a sum into one of them is a plain one for
 * whoever emits it. What is called becomes a part of that form if something is added to a buffer there, so
 * that it is seen to which.
 *
 * A buffer is known by where it is found: in a uniform or a parameter of the kernel, by constant offsets.
 * Such places are taken to be different memory, as threads would race for it otherwise. A buffer can be kept
 * if nothing else than sums is done with what is in it, and its elements consist of one type of number. */
#include "opt.h"

#include <limits.h>
#include <math.h>

enum { MOST_SUMS = 64 };
/* Rounds of a loop of which nobody knows how long it is: where threads meet in the same places, atomic
 * operations take twenty times as long as copies; where there are but few, copies take twice as long. */
enum { COMMON_LOOP = 32 };

/* A place that a buffer is found at, and what is done with that. */
typedef struct Owner {
    SumSource source;
    const Type *buffer;
    bool summed, touched;
    Val *own; /* the parameter that stands for it */
} Owner;

typedef struct Search {
    Arena *arena;
    Func *kernel;
    Func *func; /* that is looked at: it, or one that it calls */
    Map used; /* Val: its value is; of a callee: a parameter, by something else than being handed on to who does not use it */
    Map seen; /* Func -> itself, when all of it was */
    VEC(Owner) owners;
    Map touched;  /* Global, or Val of a parameter: whatever buffers are found there */
    bool unknown; /* something is done with memory that may be any */
} Search;

/* ---- where a buffer comes from */

typedef struct Trail {
    SumSource source;
    const void *root; /* the uniform, or the parameter, of whichever function; NULL: neither */
    bool is_exact;    /* the source is filled in */
} Trail;

static void begin_at_param(const Search *search, const Val *v, Trail *trail) {
    if (v->region != search->func->body) return;
    const Param *param = &search->func->params[v->index];
    trail->root = v;
    trail->is_exact = search->func == search->kernel && !(param->flags & PARAM_RESULT);
    trail->source.param = v->index;
    if (param->flags & PARAM_BY_ADDRESS || v->type->kind != TYPE_pointer) return;
    trail->source.nsteps = 1; /* the pointer is followed */
}

static void follow(const Search *search, const Val *address, Trail *trail);

static void begin_at(const Search *search, const Val *v, Trail *trail) {
    if (v->kind == VAL_param) begin_at_param(search, v, trail);
    if (v->kind != VAL_inst) return;
    if (v->inst->op == OP_global && v->inst->global->kind == GLOBAL_uniform) {
        *trail = (Trail){.root = v->inst->global, .is_exact = true};
        trail->source.global = v->inst->global;
    } else if (v->inst->op == OP_load && v->type->kind == TYPE_pointer) {
        follow(search, ir_resolve(v->inst->args[0]), trail);
    }
}

static bool add_part(const Inst *part, int64_t *offset) {
    const Type *whole = ir_target(part->args[0]->type);
    int64_t index;
    if (part->op == OP_field) {
        *offset += type_field_offset(whole, part->index, LAYOUT_scalar);
        return true;
    }
    bool is_known = part->op == OP_elem && whole->kind == TYPE_array &&
                    val_is_int(ir_resolve(part->args[1]), &index) && index >= 0 && index < type_length(whole);
    if (is_known) *offset += index * type_element_stride(whole, LAYOUT_scalar);
    return is_known;
}

/* To what is at an address. */
static void follow(const Search *search, const Val *address, Trail *trail) {
    const Val *base = address;
    int64_t offset = 0;
    while (base->kind == VAL_inst && op_has(base->inst->op, OP_PART)) base = ir_resolve(base->inst->args[0]);
    begin_at(search, base, trail);
    while (address != base) {
        trail->is_exact &= add_part(address->inst, &offset);
        address = ir_resolve(address->inst->args[0]);
    }
    trail->is_exact &= trail->source.nsteps < SUM_STEPS;
    if (trail->is_exact) trail->source.offsets[trail->source.nsteps++] = offset;
}

static Trail trail_of(const Search *search, const Val *buffer) {
    Trail trail = {0};
    if (buffer->kind == VAL_param) {
        begin_at_param(search, buffer, &trail);
        trail.source.nsteps = 1;
    } else if (buffer->kind == VAL_inst && buffer->inst->op == OP_load) {
        follow(search, ir_resolve(buffer->inst->args[0]), &trail);
    }
    return trail;
}

static bool is_same_source(const SumSource *a, const SumSource *b) {
    if (a->global != b->global || a->nsteps != b->nsteps || (!a->global && a->param != b->param))
        return false;
    for (int i = 0; i < a->nsteps; i++)
        if (a->offsets[i] != b->offsets[i]) return false;
    return true;
}

static Owner *owner_at(Search *search, const Trail *trail, const Type *buffer) {
    for (int i = 0; i < search->owners.count; i++)
        if (is_same_source(&search->owners.at[i].source, &trail->source)) return &search->owners.at[i];
    Owner owner = {.source = trail->source, .buffer = buffer};
    vec_push(search->arena, &search->owners, owner);
    return &search->owners.at[search->owners.count - 1];
}

/* ---- what is done with memory */

static void note_used(Search *search, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        map_put(search->arena, &search->used, PTR_KEY(ir_resolve(inst->args[i])), search);
}

static void note_all_used(void *user, Inst *inst) { note_used(user, inst); }

/* Something is added, and nothing comes of the value before. */
static bool is_sum(const Search *search, const Inst *inst) {
    if (inst->op != OP_atomic || inst->index != ATOMIC_add) return false;
    TypeKind kind = inst->results[0]->type->kind;
    return (kind == TYPE_float || kind == TYPE_double) && !map_has(&search->used, PTR_KEY(inst->results[0]));
}

static void touch_root(Search *search, const Trail *trail) {
    if (trail->root) map_put(search->arena, &search->touched, PTR_KEY(trail->root), search);
    else search->unknown = true;
}

static void note_buffer(Search *search, const Val *buffer, const Inst *sum) {
    if (type_is_read_only(buffer->type)) return;
    Trail trail = trail_of(search, buffer);
    bool is_of_caller = search->func != search->kernel && trail.root && !trail.source.global;
    if (is_of_caller) return; /* who calls it was asked */
    if (!trail.is_exact) {
        touch_root(search, &trail);
        return;
    }
    Owner *owner = owner_at(search, &trail, buffer->type);
    if (sum) owner->summed = true, owner->source.scalar = sum->results[0]->type;
    else owner->touched = true;
}

static bool is_in_buffer(const Val *root) {
    return root->kind == VAL_inst &&
           (root->inst->op == OP_buffer_elem || root->inst->op == OP_buffer_bytes ||
            root->inst->op == OP_buffer_pointer || root->inst->op == OP_buffer_counter);
}

/* What a pointer leads to that was found somewhere: memory of its own, as a buffer would be. */
static bool is_found(const Search *search, const Val *root) {
    Trail trail = {0};
    begin_at(search, root, &trail);
    return trail.root != NULL;
}

static void note_address(Search *search, const Inst *inst, const Val *root) {
    Space space = ir_space(root->type);
    if (space != SPACE_any && space != SPACE_buffer) return;
    if (!is_in_buffer(root)) {
        search->unknown |= !is_found(search, root);
        return;
    }
    bool sums = is_sum(search, inst) && root->inst->op == OP_buffer_elem && search->func == search->kernel;
    note_buffer(search, ir_resolve(root->inst->args[0]), sums ? inst : NULL);
}

/* A function that is still being looked at, as it calls itself, may use anything. */
static bool is_used_by(const Search *search, const Func *callee, int index) {
    if (!callee->body || !map_get(&search->seen, PTR_KEY(callee))) return true;
    return map_has(&search->used, PTR_KEY(callee->body->params[index]));
}

/* A callee finds buffers in what it is given. */
static void note_argument(Search *search, const Inst *call, int index) {
    const Val *arg = ir_resolve(call->args[index]);
    if (!is_used_by(search, call->callee, index)) return;
    map_put(search->arena, &search->used, PTR_KEY(arg), search);
    if (arg->type->kind == TYPE_buffer) note_buffer(search, arg, NULL);
    const Type *target = ir_target(arg->type);
    if (!target || !type_leads_elsewhere(target)) return;
    Trail trail = {0};
    follow(search, arg, &trail);
    if (trail.root) touch_root(search, &trail);
}

static void note_inst(void *user, Inst *inst);

static void look_into(Search *search, Func *func) {
    if (!func->body || map_has(&search->seen, PTR_KEY(func))) return;
    Func *outer = search->func;
    map_put(search->arena, &search->seen, PTR_KEY(func), NULL);
    search->func = func;
    region_walk(func->body, note_inst, search);
    search->func = outer;
    map_put(search->arena, &search->seen, PTR_KEY(func), func);
}

static void note_inst(void *user, Inst *inst) {
    Search *search = user;
    if (inst->op == OP_call) look_into(search, inst->callee);
    else note_used(search, inst);
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role != ROLE_value && role != ROLE_part && role != ROLE_move)
            note_address(search, inst, ir_root(inst->args[i]));
        if (inst->op == OP_call) note_argument(search, inst, i);
    }
}

/* ---- which of them can be kept */

/* Nothing but numbers of that type, one right behind the other. */
static bool consists_of(const Type *type, const Type *scalar) {
    if (type->kind == TYPE_vector) return type_element(type) == scalar;
    if (type->kind == TYPE_array) return type_length(type) >= 0 && consists_of(type_element(type), scalar);
    if (type->kind != TYPE_record) return type == scalar;
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (!consists_of(type_record(type)->fields[i].type, scalar)) return false;
    return true;
}

static bool can_be_kept(const Search *search, const Owner *owner) {
    const Type *element = owner->buffer->args[0];
    const void *root = owner->source.global ? (const void *)owner->source.global
                                            : search->kernel->body->params[owner->source.param];
    if (!owner->summed || owner->touched || map_has(&search->touched, PTR_KEY(root))) return false;
    return consists_of(element, owner->source.scalar);
}

/* ---- the form with copies */

static void add_own(Search *search, Owner *owner) {
    Func *kernel = search->kernel;
    owner->source.stride = type_layout(owner->buffer->args[0], LAYOUT_scalar).stride;
    Param *params = arena_array(search->arena, Param, kernel->nparams + 1);
    for (int i = 0; i < kernel->nparams; i++) params[i] = kernel->params[i];
    params[kernel->nparams] = (Param){.type = owner->buffer, .dir = DIR_in, .flags = PARAM_OWN};
    func_set_params(kernel, params, kernel->nparams + 1);
    owner->own = region_add_param(kernel->body, owner->buffer, NULL);
    kernel->sums[kernel->nsums++] = owner->source;
}

static void choose(Search *search, uint64_t large) {
    Func *kernel = search->kernel;
    int found = 0;
    kernel->sums = arena_array(kernel->module->arena, SumSource, MOST_SUMS);
    for (int i = 0; i < search->owners.count && found < MOST_SUMS; i++) {
        Owner *owner = &search->owners.at[i];
        if (can_be_kept(search, owner) && !(large >> found++ & 1)) add_own(search, owner);
    }
}

static void use_own(void *user, Inst *inst) {
    Search *search = user;
    if (inst->op != OP_buffer_elem) return;
    Trail trail = trail_of(search, ir_resolve(inst->args[0]));
    if (!trail.is_exact) return;
    const Owner *owner = owner_at(search, &trail, inst->args[0]->type);
    if (owner->own) inst->args[0] = owner->own;
}

static void note_other(void *user, Inst *inst) {
    Search *search = user;
    if (is_sum(search, inst) && !ir_is_own(inst->args[0])) search->kernel->has_other_sums = true;
}

/* ---- how much there is to do */

typedef struct Work {
    Arena *arena;
    Map known;     /* Func -> double; while it is being found out: `rounds` */
    double rounds; /* of a loop of which nobody knows how long it is */
} Work;

static double work_of(Work *work, const Func *func);

static double work_in(Work *work, const Region *region) {
    double total = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        double inside = 0;
        for (int i = 0; i < inst->nregions; i++) inside += work_in(work, inst->regions[i]);
        if (inst->op == OP_call) inside += work_of(work, inst->callee);
        int64_t rounds = inst->op == OP_loop ? loop_most_trips(inst) : 1;
        total += op_info[inst->op].cost + inside * (rounds == INT64_MAX ? work->rounds : (double)rounds);
    }
    return total;
}

static double work_of(Work *work, const Func *func) {
    const double *known = map_get(&work->known, PTR_KEY(func));
    if (known) return *known;
    double *found = arena_new(work->arena, double);
    *found = work->rounds;
    map_put(work->arena, &work->known, PTR_KEY(func), found);
    return *found = func->body ? work_in(work, func->body) : 0;
}

static int64_t count_work(Arena *arena, const Func *kernel, double rounds) {
    static const double MUCH = 1e15;
    Work work = {.arena = arena, .rounds = rounds};
    double total = work_of(&work, kernel);
    return total < MUCH ? (int64_t)total : 0;
}

bool opt_keep_sums(Func *kernel, uint64_t large) {
    Search search = {.arena = arena_scratch(kernel->module->arena), .kernel = kernel, .func = kernel};
    region_walk(kernel->body, note_all_used, &search);
    region_walk(kernel->body, note_inst, &search);
    if (!search.unknown) choose(&search, large);
    if (kernel->nsums) {
        region_walk(kernel->body, use_own, &search);
        region_walk(kernel->body, note_other, &search);
        kernel->work = count_work(search.arena, kernel, INFINITY); /* for runtime/sums.c */
        kernel->least_work = count_work(search.arena, kernel, COMMON_LOOP);
    }
    arena_free(search.arena);
    return kernel->nsums > 0;
}

/* ---- what is called */

typedef struct Calls {
    Arena *arena;
    Map seen; /* Func -> itself, if something is added there or in what it calls */
    bool found;
} Calls;

static bool adds(Calls *calls, const Func *func);

static void look_for_sums(void *user, Inst *inst) {
    Calls *calls = user;
    if (calls->found) return;
    if (inst->op == OP_atomic && inst->index == ATOMIC_add)
        calls->found = type_is_float(inst->results[0]->type);
    else if (inst->op == OP_call) calls->found = adds(calls, inst->callee);
}

/* A function that calls itself is looked into once. */
static bool adds(Calls *calls, const Func *func) {
    if (!func->body) return false;
    if (map_has(&calls->seen, PTR_KEY(func))) return map_get(&calls->seen, PTR_KEY(func)) != NULL;
    bool outer = calls->found;
    map_put(calls->arena, &calls->seen, PTR_KEY(func), NULL);
    calls->found = false;
    region_walk(func->body, look_for_sums, calls);
    bool found = calls->found;
    map_put(calls->arena, &calls->seen, PTR_KEY(func), found ? (void *)(uintptr_t)func : NULL);
    calls->found = outer;
    return found;
}

bool opt_has_sums(Func *kernel) {
    Calls calls = {.arena = arena_scratch(kernel->module->arena)};
    bool found = adds(&calls, kernel);
    arena_free(calls.arena);
    return found;
}

static bool is_for_sums(void *user, const Func *callee, const Inst *call) {
    (void)call;
    return adds(user, callee);
}

bool opt_inline_sums(Func *kernel) {
    Calls calls = {.arena = arena_scratch(kernel->module->arena)};
    bool changed = opt_inline(
        kernel, (InlinePolicy){.max_size = INT_MAX, .any_form = true, .may = is_for_sums, .user = &calls});
    arena_free(calls.arena);
    return changed;
}
