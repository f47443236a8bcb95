/* Arrays that a tape keeps although they are there still. What the way there hands to the way back goes by
 * the tape; where both have become parts of one function, an array that nobody writes to any more need not go
 * anywhere.
 *
 *     base = tape_grow 32                                        the second array is the first
 *     for (i = 0; i < 32; i++) tape_store base + i, a[i]
 *     ...
 *     for (i = 0; i < 32; i++) b[i] = tape_load base + i
 *     tape_shrink 32
 *
 * All of that stands in one region that runs once, so that what stands behind runs later. The tape shrinks by
 * as much as it no longer grows, at the first place behind the second loop where it does: what else it holds
 * then is what it held before, or more. */
#include "opt.h"

/* A loop over all of an array, which puts it on a tape or takes it from there. */
typedef struct Transfer {
    Inst *loop;
    const Val *array, *tape, *base;
    bool takes;
} Transfer;

/* Of a variable that is an array. */
typedef struct Use {
    int writes;     /* how many there are ... */
    int last_write; /* ... and the number of the last */
    bool escapes;
} Use;

typedef struct Untape {
    Func *func;
    Arena *scratch;
    VEC(Transfer) kept; /* arrays that went to a tape, in the region at work */
    Use *uses;          /* by Val.id */
    int *count;         /* by Val.id: of uses */
    Map numbers;        /* Inst -> when it comes, from 1 on */
    int now;
    bool changed;
} Untape;

/* ---- what is done to arrays */

static void note_inst(void *user, Inst *inst) {
    Untape *u = user;
    map_put(u->scratch, &u->numbers, PTR_KEY(inst), (void *)(intptr_t)++u->now);
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_part || role == ROLE_read) continue;
        const Val *root = ir_root(inst->args[i]);
        if (val_is_const(root)) continue;
        Use *use = &u->uses[root->id];
        use->writes++;
        use->last_write = u->now;
        use->escapes |= role != ROLE_write;
    }
}

static int number_of(const Untape *u, const Inst *inst) {
    return (int)(intptr_t)map_get(&u->numbers, PTR_KEY(inst));
}

/* ---- loops over them */

/* From 0 on, one by one, `count` times; nothing else is carried. */
static bool counts(const Inst *loop, int64_t count) {
    int64_t first, step, limit;
    const Inst *test = loop->regions[0]->first;
    LoopTest found;
    if (loop->nregions != 2 || loop->nargs != 1 || !test || !test->next || test->next->op != OP_yield)
        return false;
    if (!loop_comparison(loop, test, &found) || !found.up || found.or_equal) return false;
    return val_is_int(ir_resolve(loop->args[0]), &first) && first == 0 && loop_step(loop, 0, &step) &&
           step == 1 && val_is_int(ir_resolve(found.limit), &limit) && limit == count;
}

/* The array whose element of the round's number is there; NULL: it is something else. */
static const Val *array_at(const Inst *loop, const Val *address) {
    if (address->kind != VAL_inst || address->inst->op != OP_elem) return NULL;
    const Val *array = ir_resolve(address->inst->args[0]);
    if (val_unconverted(inst_operand(address->inst, 1)) != loop->regions[1]->params[0]) return NULL;
    return array->kind == VAL_inst && array->inst->op == OP_var ? array : NULL;
}

static const Val *base_at(const Inst *loop, const Val *place) {
    if (place->kind != VAL_inst || place->inst->op != OP_add) return NULL;
    for (int i = 0; i < 2; i++)
        if (val_unconverted(inst_operand(place->inst, i)) == loop->regions[1]->params[0])
            return ir_resolve(place->inst->args[1 - i]);
    return NULL;
}

/* A round does nothing else. */
static bool is_plain(const Inst *loop, const Inst *access, const Inst *other) {
    for (const Inst *inst = loop->regions[1]->first; inst; inst = inst->next) {
        bool is_part = inst == access || inst == other || inst->op == OP_yield;
        if (!is_part && (!op_has(inst->op, OP_PURE) || inst->nregions)) return false;
    }
    return true;
}

static const Inst *find_access(const Inst *loop) {
    if (loop->op != OP_loop || loop->nregions != 2) return NULL;
    for (const Inst *inst = loop->regions[1]->first; inst; inst = inst->next)
        if (inst->op == OP_tape_store || inst->op == OP_tape_load) return inst;
    return NULL;
}

/* What stores the number that was taken; NULL: more is done with it. */
static const Inst *find_store(const Untape *u, const Inst *taken) {
    for (const Inst *inst = taken->next; inst; inst = inst->next)
        if (inst->op == OP_store && ir_resolve(inst->args[1]) == taken->results[0])
            return u->count[taken->results[0]->id] == 1 ? inst : NULL;
    return NULL;
}

static bool find_transfer(const Untape *u, Inst *loop, Transfer *out) {
    const Inst *access = find_access(loop), *other = NULL;
    if (!access) return false;
    *out = (Transfer){.loop = loop, .tape = ir_resolve(access->args[0]), .takes = access->op == OP_tape_load};
    out->base = base_at(loop, ir_resolve(access->args[1]));
    if (out->takes) other = find_store(u, access);
    else {
        const Val *value = ir_resolve(access->args[2]);
        other = value->kind == VAL_inst && value->inst->op == OP_load ? value->inst : NULL;
    }
    if (!other || !out->base || !is_plain(loop, access, other)) return false;
    out->array = array_at(loop, ir_resolve(other->args[0]));
    const Type *type = out->array ? out->array->type->args[0] : NULL;
    return type && type->kind == TYPE_array && type_is_scalar(type->args[0]) &&
           counts(loop, type_length(type));
}

/* ---- one array for two */

static Inst *find_shrink(const Transfer *taken, const Type *type, int64_t length) {
    for (Inst *inst = taken->loop->next; inst; inst = inst->next) {
        int64_t less;
        bool is_shrink = inst->op == OP_tape_shrink && inst->type == type;
        if (is_shrink)
            return ir_resolve(inst->args[0]) == taken->tape && val_is_int(ir_resolve(inst->args[1]), &less) &&
                           less == length
                       ? inst
                       : NULL;
        if (inst->nregions && !find_access(inst)) return NULL;
    }
    return NULL;
}

static bool is_grown(const Transfer *kept, int64_t length) {
    int64_t count;
    const Inst *grow = kept->base->kind == VAL_inst ? kept->base->inst : NULL;
    return grow && grow->op == OP_tape_grow && grow->parent == kept->loop->parent &&
           ir_resolve(grow->args[0]) == kept->tape && val_is_int(ir_resolve(grow->args[1]), &count) &&
           count == length;
}

static bool stays(const Untape *u, const Transfer *kept, const Transfer *taken) {
    const Use *from = &u->uses[kept->array->id], *to = &u->uses[taken->array->id];
    return !from->escapes && from->last_write < number_of(u, kept->loop) && !to->escapes && to->writes == 1 &&
           u->count[kept->base->id] == 2 && kept->array->type == taken->array->type &&
           taken->array->inst->parent == taken->loop->parent;
}

static void join(Untape *u, const Transfer *kept, const Transfer *taken) {
    const Type *type = kept->array->type->args[0];
    int64_t length = type_length(type);
    Inst *shrink = find_shrink(taken, type->args[0], length);
    if (!shrink || !is_grown(kept, length) || !stays(u, kept, taken)) return;
    inst_remove(taken->array->inst);
    inst_remove(shrink);
    inst_remove(taken->loop);
    inst_remove(kept->loop);
    inst_remove(kept->base->inst);
    taken->array->inst->results[0]->forward = (Val *)(uintptr_t)kept->array;
    u->changed = true;
}

static void visit_region(Untape *u, Region *region) {
    Transfer found;
    int first = u->kept.count;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions && inst->op != OP_loop; i++) visit_region(u, inst->regions[i]);
        if (!find_transfer(u, inst, &found)) continue;
        if (!found.takes) vec_push(u->scratch, &u->kept, found);
        for (int i = first; i < u->kept.count && found.takes; i++) {
            const Transfer *kept = &u->kept.at[i];
            if (kept->base != found.base || kept->tape != found.tape) continue;
            if (next && next->op == OP_tape_shrink) next = next->next; /* it may go */
            join(u, kept, &found);
            break;
        }
    }
    u->kept.count = first;
}

bool opt_untape(Func *func) {
    if (!func->body) return false;
    Untape u = {.func = func, .scratch = arena_scratch(func->module->arena)};
    ir_resolve_func(func);
    u.uses = arena_array(u.scratch, Use, func->nvals + 1);
    u.count = region_count_uses(u.scratch, func->body);
    region_walk(func->body, note_inst, &u);
    visit_region(&u, func->body);
    if (u.changed) ir_resolve_func(func);
    arena_free(u.scratch);
    return u.changed;
}
