/* Settle: which reads of a local array, or of an array that is a parameter, see its final content.
 *
 * A variable belongs to a region and begins anew with each execution of it. Of the instructions of that very region, the last one that
 * writes it, itself or somewhere inside, is noted; what is read behind that one is settled: it is what the array holds when the region
 * ends, so that keeping the array once serves all such reads. An array whose address goes elsewhere is never settled. */
#include "autodiff/ad.h"

struct Settled {
    Arena *arena;
    Map positions; /* Inst -> Moment, in the order of execution */
    int *last;     /* by id of a variable: position of the last write */
    uint32_t nvals;
    int count;
};

typedef struct Moment {
    int position;
} Moment;

static int position_of(const Settled *s, const Inst *inst) {
    const Moment *moment = map_get(&s->positions, PTR_KEY(inst));
    return moment ? moment->position : INT32_MAX;
}

/* The instruction of `region` that `inst` is, or is inside of. */
static const Inst *ancestor_in(const Region *region, const Inst *inst) {
    while (inst && inst->parent != region) inst = inst->parent->owner;
    return inst;
}

Region *ad_home(const Val *root) { return root->kind == VAL_param ? root->region : root->inst->parent; }

static void note_use(Settled *s, const Inst *inst, int arg) {
    Role role = ir_role(inst, arg);
    if (role != ROLE_write && role != ROLE_share && role != ROLE_escape) return;
    const Val *root = ad_root(inst->args[arg]);
    if (!root || root->id >= s->nvals) return;
    const Inst *top = ancestor_in(ad_home(root), inst);
    int position = role == ROLE_escape || !top ? INT32_MAX : position_of(s, top);
    if (position > s->last[root->id]) s->last[root->id] = position;
}

static void walk(Settled *s, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        Moment *moment = arena_new(s->arena, Moment);
        moment->position = ++s->count;
        map_put(s->arena, &s->positions, PTR_KEY(inst), moment);
        for (int i = 0; i < inst->nargs; i++) note_use(s, inst, i);
        for (int i = 0; i < inst->nregions; i++) walk(s, inst->regions[i]);
    }
}

Settled *ad_settle(Ad *ad, const Region *region, uint32_t nvals) {
    Settled *s = arena_new(ad->arena, Settled);
    *s = (Settled){.arena = ad->arena, .last = arena_array(ad->arena, int, (int)nvals + 1), .nvals = nvals};
    walk(s, region);
    return s;
}

Val *ad_settled_root(const Settled *s, const Inst *load) {
    Val *root = ad_root(load->args[0]);
    if (!root || root->type->kind != TYPE_pointer || root->id >= s->nvals) return NULL;
    const Inst *top = ancestor_in(ad_home(root), load);
    return top && position_of(s, top) != INT32_MAX && position_of(s, top) > s->last[root->id] ? root : NULL;
}

int64_t ad_scalars_in(const Type *type) {
    int64_t count = 1;
    for (; type->kind == TYPE_array; type = type->args[0]) count *= type_length(type);
    return type_is_scalar(type) ? count : 0;
}

/* ---- to and from a tape */

static Val *array_word(Ad *ad, int64_t value) {
    return ir_const_int(ad->m, type_basic(ad->m->types, TYPE_int), value);
}

void ad_move_array(Ad *ad, Builder *b, Val *tape, Val *at, Val *index, bool restore) {
    const Type *type = at->type->args[0];
    Val *args[3] = {tape, index, NULL};
    if (type->kind != TYPE_array && !restore) {
        args[2] = build_load(b, at);
        build_inst(b, OP_tape_store, args, 3, 0, 0);
        return;
    }
    if (type->kind != TYPE_array) {
        build_store(b, at, inst_add_result(build_inst(b, OP_tape_load, args, 2, 0, 0), type, NULL));
        return;
    }
    Val *start = array_word(ad, 0);
    Inst *loop = build_loop(b, &start, 1, false);
    Builder cond = build_at_end(loop->regions[0]), body = build_at_end(loop->regions[1]);
    Val *go = build_binary(&cond, OP_lt, loop->regions[0]->params[0], array_word(ad, type_length(type)));
    build_yield(&cond, &go, 1);
    Val *i = loop->regions[1]->params[0], *far = build_convert(&body, i, index->type);
    Val *offset = build_binary(&body, OP_mul, far, ad_int64(ad, ad_scalars_in(type->args[0])));
    ad_move_array(ad, &body, tape, build_elem(&body, at, i, true), build_binary(&body, OP_add, index, offset),
                  restore);
    Val *next = build_binary(&body, OP_add, i, array_word(ad, 1));
    build_yield(&body, &next, 1);
}
