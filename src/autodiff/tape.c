/* Tapes: how values go to the storage that the primal pass leaves to the reverse, and come back.
 *
 * Scalars have a stack each on the tape. What has none goes there as bits, a buffer as two words; objects go
 * scalar by scalar, arrays also as blocks. Where the values of a loop stay is said by a table of homes: what
 * has to be done before the loop, in each iteration, in each iteration of the reversed loop, and behind that.
 * A value outside of loops needs no home: it is handed over (signature.c). */
#include "autodiff/ad.h"

/* ---- instructions */

Inst *ad_tape_inst(Builder *b, Op op, Val *const *args, int nargs, const Type *type) {
    Inst *inst = build_inst(b, op, args, nargs, 0, 0);
    inst->type = type;
    return inst;
}

static void push_one(Builder *b, Val *tape, Val *v) {
    ad_tape_inst(b, OP_tape_push, (Val *[]){tape, v}, 2, NULL);
}

static Val *pop_one(Builder *b, Val *tape, const Type *type, Name name) {
    return inst_add_result(ad_tape_inst(b, OP_tape_pop, &tape, 1, NULL), type, name);
}

/* A block; everything in it will be stored. */
static Val *grow(Ad *ad, Builder *b, Val *tape, const Type *type, Val *count) {
    Inst *inst = ad_tape_inst(b, OP_tape_grow, (Val *[]){tape, count}, 2, type);
    inst->flags |= INST_RAW;
    return inst_add_result(inst, type_basic(ad->m->types, TYPE_int64), name_from(ad->m->names, "base"));
}

static void shrink(Builder *b, Val *tape, const Type *type, Val *count) {
    ad_tape_inst(b, OP_tape_shrink, (Val *[]){tape, count}, 2, type);
}

static void store_at(Builder *b, Val *tape, Val *index, Val *v) {
    ad_tape_inst(b, OP_tape_store, (Val *[]){tape, index, v}, 3, NULL);
}

static Val *load_at(Builder *b, Val *tape, Val *index, const Type *type, Name name) {
    return inst_add_result(ad_tape_inst(b, OP_tape_load, (Val *[]){tape, index}, 2, NULL), type, name);
}

/* ---- values */

static const Type *tape_type(Ad *ad, const Type *type) {
    bool as_bits = type->kind == TYPE_pointer || type->kind == TYPE_buffer;
    return as_bits ? type_basic(ad->m->types, TYPE_uint64) : type;
}

enum { BUFFER_WORDS = 2 };

static Val *part(Ad *ad, Builder *b, Val *object, int index) {
    return build_elem(b, object, ir_const_int(ad->m, type_basic(ad->m->types, TYPE_int), index), true);
}

/* Any value that can be stored. */
static void push(Ad *ad, Builder *b, Val *tape, Val *v) {
    const Type *word = tape_type(ad, v->type);
    if (v->type->kind != TYPE_buffer) {
        push_one(b, tape, build_bitcast(b, v, word));
        return;
    }
    Val *place = build_var(b, v->type, NULL, true);
    build_store(b, place, v);
    Val *words =
        build_bitcast(b, place, type_pointer(ad->m->types, type_array(ad->m->types, word, BUFFER_WORDS)));
    for (int i = 0; i < BUFFER_WORDS; i++) push_one(b, tape, build_load(b, part(ad, b, words, i)));
}

static Val *pop(Ad *ad, Builder *b, Val *tape, const Type *type, Name name) {
    const Type *word = tape_type(ad, type);
    if (type->kind != TYPE_buffer) return build_bitcast(b, pop_one(b, tape, word, name), type);
    Val *words = build_var(b, type_array(ad->m->types, word, BUFFER_WORDS), NULL, true);
    for (int i = BUFFER_WORDS - 1; i >= 0; i--) {
        Val *place = part(ad, b, words, i), *kept = pop_one(b, tape, word, NULL);
        build_store(b, place, kept);
    }
    return build_load(b, build_bitcast(b, words, type_pointer(ad->m->types, type)));
}

Val **ad_keep_on_stack(Ad *ad, const Making *making, Region *region, Builder *head, const ValVec *values) {
    Val **again = arena_array(ad->arena, Val *, values->count + 1);
    Builder tail = build_before(region->last);
    for (int i = 0; i < values->count; i++) push(ad, &tail, making->tape, values->at[i]);
    for (int i = values->count - 1; i >= 0; i--)
        again[i] = pop(ad, head, making->reverse_tape, values->at[i]->type, values->at[i]->name);
    return again;
}

/* ---- objects, scalar by scalar */

static void save_object(Ad *ad, Builder *b, Val *tape, Val *at, bool restore);

static void save_elements(Ad *ad, Builder *b, Val *tape, Val *at, bool restore) {
    int64_t count = type_length(at->type->args[0]);
    CountLoop loop = build_count(b, 0, count);
    Val *last = ir_const_int(ad->m, loop.index->type, count - 1);
    Val *index = restore ? build_binary(&loop.body, OP_sub, last, loop.index) : loop.index;
    save_object(ad, &loop.body, tape, build_elem(&loop.body, at, index, true), restore);
    build_next(&loop);
}

static void save_parts(Ad *ad, Builder *b, Val *tape, Val *at, bool restore) {
    const Type *type = at->type->args[0];
    bool is_record = type->kind == TYPE_record;
    int count = is_record ? type_record(type)->nfields : type_count(type);
    for (int i = 0; i < count; i++) {
        int index = restore ? count - 1 - i : i;
        save_object(ad, b, tape, is_record ? build_field(b, at, index) : part(ad, b, at, index), restore);
    }
}

/* Pushes an object; restoring goes the other way round. */
static void save_object(Ad *ad, Builder *b, Val *tape, Val *at, bool restore) {
    const Type *type = at->type->args[0];
    if (type->kind == TYPE_array) save_elements(ad, b, tape, at, restore);
    else if (type->kind == TYPE_record || type->kind == TYPE_vector) save_parts(ad, b, tape, at, restore);
    else if (restore) build_store(b, at, pop(ad, b, tape, type, NULL));
    else push(ad, b, tape, build_load(b, at));
}

Val *ad_keep_object(Ad *ad, const Making *making, Inst *after, Builder *b, Val *object) {
    Builder behind = build_after(after);
    save_object(ad, &behind, making->tape, object, false);
    Val *again = build_var(b, object->type->args[0], object->name, false);
    save_object(ad, b, making->reverse_tape, again, true);
    return again;
}

/* ---- variables that are read by their addresses */

static Val *copy_of(void *user, Builder *b, Val *v) {
    (void)b;
    return map_get(user, PTR_KEY(v));
}

/* The address as it was, in copies of the variables that it may lead into. */
static Val *restore_objects(Ad *ad, const Making *making, Builder *b, Val *address, const ValVec *objects) {
    Map copies = {0};
    for (int i = objects->count - 1; i >= 0; i--) {
        const Val *object = objects->at[i];
        Val *copy = build_var(b, object->type->args[0], object->name, false);
        save_object(ad, b, making->reverse_tape, copy, true);
        map_put(ad->arena, &copies, PTR_KEY(object), copy);
    }
    return build_place_again(b, address, copy_of, &copies);
}

Val *ad_keep_address(Ad *ad, const Making *making, Inst *after, Builder *b, Val *address,
                     const ValVec *objects) {
    Builder behind = build_after(after);
    for (int i = 0; i < objects->count; i++) save_object(ad, &behind, making->tape, objects->at[i], false);
    return restore_objects(ad, making, b, address, objects);
}

/* ---- arguments */

/* Pushed in order around the primal call, popped in the opposite order in the reverse. */
Val **ad_keep_arguments(Ad *ad, const Making *making, const CallNote *note, Builder *b) {
    const CallPlan *plan = &note->plan;
    Inst *call = note->primal;
    const Leaves *leaves = &(plan->pass ? plan->pass : plan->callee)->leaves;
    Val **kept = arena_array(ad->arena, Val *, leaves->count + 1);
    ValVec *objects = arena_array(ad->arena, ValVec, leaves->count + 1);
    Builder before = build_before(call), after = build_after(call);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        bool state = plan->pass && ad_is_state(plan, i);
        Val *arg = leaf->in >= 0 ? ir_resolve(note->args[i]) : NULL;
        objects[i] = ad_objects_read(ad, note, i);
        for (int k = 0; k < objects[i].count; k++)
            save_object(ad, &before, making->tape, objects[i].at[k], false);
        if (objects[i].count) continue;
        if (!leaf->by_ref) kept[i] = state ? call->results[leaf->out] : arg;
        else if (!state && leaf->dir != DIR_out && ad_is_stable(making, arg, call)) kept[i] = arg;
        else if (state || leaf->dir != DIR_out)
            save_object(ad, state ? &after : &before, making->tape, arg, false);
    }
    for (int states = 1; states >= 0; states--)
        for (int i = leaves->count - 1; i >= 0; i--) {
            const Leaf *leaf = &leaves->at[i];
            bool state = plan->pass && ad_is_state(plan, i);
            if (kept[i] || state != states || leaf->in < 0) continue;
            if (objects[i].count) {
                kept[i] = restore_objects(ad, making, b, note->args[i], &objects[i]);
                continue;
            }
            kept[i] = build_var(b, leaf->type, note->args[i]->name, false);
            if (state || leaf->dir != DIR_out) save_object(ad, b, making->reverse_tape, kept[i], true);
        }
    return kept;
}

/* ---- arrays, as blocks */

int64_t ad_scalars_in(const Type *type) {
    int64_t count = 1;
    for (; type->kind == TYPE_array; type = type->args[0]) count *= type_length(type);
    return type_is_scalar(type) ? count : 0;
}

static const Type *scalar_of(const Type *type) {
    while (type->kind == TYPE_array) type = type->args[0];
    return type;
}

/* Between an array and a tape, from element `index` of the tape on. */
static void move_array(Ad *ad, Builder *b, Val *tape, Val *at, Val *index, bool restore) {
    const Type *type = at->type->args[0];
    if (type->kind != TYPE_array) {
        if (restore) build_store(b, at, load_at(b, tape, index, type, NULL));
        else store_at(b, tape, index, build_load(b, at));
        return;
    }
    CountLoop loop = build_count(b, 0, type_length(type));
    Val *far = build_convert(&loop.body, loop.index, index->type);
    Val *offset = build_binary(&loop.body, OP_mul, far, ad_int64(ad, ad_scalars_in(type->args[0])));
    Val *element = build_elem(&loop.body, at, loop.index, true);
    move_array(ad, &loop.body, tape, element, build_binary(&loop.body, OP_add, index, offset), restore);
    build_next(&loop);
}

/* The blocks of all rounds of the nest, or the only one. */
static Val *size_of_blocks(Ad *ad, Builder *b, const Nest *nest, const Type *array) {
    return build_binary(b, OP_mul, ad_rounds(ad, b, nest), ad_int64(ad, ad_scalars_in(array)));
}

static RoundLayout layout_of_arrays(const Type *type) { return (RoundLayout){ad_scalars_in(type), 1}; }

Val *ad_save_array(Ad *ad, const Making *making, const Nest *nest, Builder *b, Val *array) {
    const Type *type = array->type->args[0];
    Builder before = nest->outer ? build_before(nest->outer) : *b;
    Val *base = grow(ad, &before, making->tape, scalar_of(type), size_of_blocks(ad, &before, nest, type));
    move_array(ad, b, making->tape, array,
               ad_place_of_round(ad, b, nest, base, layout_of_arrays(type), false), false);
    return base;
}

Val *ad_load_array(Ad *ad, const Making *making, const Nest *nest, Builder *b, const Val *array, Val *base) {
    const Type *type = array->type->args[0];
    Val *tape = making->reverse_tape, *copy = build_var(b, type, array->name, true);
    move_array(ad, b, tape, copy, ad_place_of_round(ad, b, nest, base, layout_of_arrays(type), true), true);
    Builder after = nest->outer ? build_after(ad_loop_info(making, nest->outer)->reverse) : *b;
    shrink(&after, tape, scalar_of(type), size_of_blocks(ad, &after, nest, type));
    return copy;
}

/* ---- homes of what a loop keeps */

/* Values of one type at one home. */
typedef struct Stay {
    Ad *ad;
    Keeping *keep;
    const Type *type;      /* on the tape */
    int count;             /* of the values */
    Val *base;             /* of a block */
    Builder before, tail;  /* the nest; at the end of an iteration */
    Builder around, after; /* the reversed nest: before and behind it */
} Stay;

/* What comes of the numbers that a loop carries, in its body. Through memory it is not followed. */
typedef struct Flow {
    Arena *arena;
    Map of;
} Flow;

static bool comes_of(const Flow *flow, Val *v) { return map_has(&flow->of, PTR_KEY(ir_resolve(v))); }

static void flow_to(Flow *flow, const Val *v) { map_put(flow->arena, &flow->of, PTR_KEY(v), flow); }

static void flow_through(void *user, Inst *inst) {
    Flow *flow = user;
    const Inst *owner = inst->op == OP_yield ? inst->parent->owner : NULL;
    bool is_condition = owner && owner->op == OP_loop && inst->parent == owner->regions[0];
    for (int i = 0; i < inst->nargs; i++) {
        if (!comes_of(flow, inst->args[i])) continue;
        if (owner && !is_condition) flow_to(flow, owner->results[i]);
        for (int k = 0; k < inst->nregions && inst->op == OP_loop; k++)
            flow_to(flow, inst->regions[k]->params[i]);
        for (int k = 0; k < inst->nresults; k++) flow_to(flow, inst->results[k]);
    }
}

/* Are there many values, and one of them made of what the round before has left? */
static bool are_in_turn(Ad *ad, const Inst *loop, Val *const *values, int count) {
    enum { MANY = 4 };
    Flow flow = {.arena = ad->arena};
    const Region *body = loop->regions[1];
    if (count < MANY) return false;
    for (int i = 0; i < loop->nargs; i++)
        if (type_is_float(body->params[i]->type)) flow_to(&flow, body->params[i]);
    region_walk(loop->regions[1], flow_through, &flow);
    for (int i = 0; i < count; i++)
        if (comes_of(&flow, values[i])) return true;
    return false;
}

/* Where memory is far, those of one round stand together, and come together. Otherwise each has a row of all
 * rounds of the innermost loop, and these rows stand together: LLVM sees that they do not overlap, as they
 * are as far from each other as the loop has rounds, and all are found from one address where that is a
 * constant. Where it is none, and rounds cannot be done at once, many values of one round stand together as
 * well: else LLVM takes a fifth of its time to find out which addresses are best counted with. */
static bool is_by_round(const Stay *x) { return x->ad->m->many_threads || x->keep->in_turn; }

static Val *start_of(const Stay *x, Builder *b, int index) {
    Val *distance = is_by_round(x) ? ad_int64(x->ad, 1) : x->keep->nest.loops.at[0]->trip;
    Val *offset = build_binary(b, OP_mul, distance, ad_int64(x->ad, index));
    return build_binary(b, OP_add, x->base, offset);
}

static RoundLayout layout_of(const Stay *x) {
    return is_by_round(x) ? (RoundLayout){x->count, 1} : (RoundLayout){1, x->count};
}

static Val *size_of(const Stay *x, Builder *b) {
    return build_binary(b, OP_mul, ad_rounds(x->ad, b, &x->keep->nest), ad_int64(x->ad, x->count));
}

static bool fits_block(const Keeping *keep, const Val *v) {
    return keep->nest.outer && v->type->kind != TYPE_buffer;
}

static void begin_block(Stay *x) {
    x->base = grow(x->ad, &x->before, x->keep->making->tape, x->type, size_of(x, &x->before));
    vec_push(x->ad->arena, &x->keep->bases, x->base);
}

static void store_in_block(Stay *x, Val *v, int index) {
    Val *start = start_of(x, &x->before, index);
    Val *at = ad_place_of_round(x->ad, &x->tail, &x->keep->nest, start, layout_of(x), false);
    store_at(&x->tail, x->keep->making->tape, at, build_bitcast(&x->tail, v, x->type));
}

static Val *load_from_block(Stay *x, const Val *v, int index) {
    Val *start = start_of(x, &x->around, index);
    Builder *b = &x->keep->head;
    Val *at = ad_place_of_round(x->ad, b, &x->keep->nest, start, layout_of(x), true);
    return build_bitcast(b, load_at(b, x->keep->making->reverse_tape, at, x->type, v->name), v->type);
}

static void end_block(Stay *x) {
    shrink(&x->after, x->keep->making->reverse_tape, x->type, size_of(x, &x->after));
}

static bool fits_stack(const Keeping *keep, const Val *v) {
    (void)keep, (void)v;
    return true;
}

static void store_on_stack(Stay *x, Val *v, int index) {
    (void)index;
    push(x->ad, &x->tail, x->keep->making->tape, v);
}

static Val *load_from_stack(Stay *x, const Val *v, int index) {
    (void)index;
    return pop(x->ad, &x->keep->head, x->keep->making->reverse_tape, v->type, v->name);
}

/* The first that fits. Both are on the tape, which is memory that grows, or local arrays where its size is
 * known (emit/tape.c). */
static const struct Home {
    bool (*fits)(const Keeping *keep, const Val *v);
    void (*begin)(Stay *stay); /* NULL: nothing to be done */
    void (*store)(Stay *stay, Val *v, int index);
    Val *(*load)(Stay *stay, const Val *v, int index);
    void (*end)(Stay *stay);
    bool by_type;   /* values of different types do not stay together */
    bool backwards; /* what was stored last is loaded first */
} homes[] = {
    {fits_block, begin_block, store_in_block, load_from_block, end_block, .by_type = true},
    {fits_stack, NULL, store_on_stack, load_from_stack, NULL, .backwards = true},
};

static void stay_at(Ad *ad, Keeping *keep, const struct Home *home, const Type *type, const ValVec *values,
                    Val **again) {
    Inst *outer = keep->nest.outer ? keep->nest.outer : keep->loop,
         *reverse = ad_loop_info(keep->making, outer)->reverse;
    Stay x = {.ad = ad, .keep = keep, .type = type, .count = values->count};
    x.before = build_before(outer);
    x.tail = build_before(keep->region->last);
    x.around = build_before(reverse);
    x.after = build_after(reverse);
    if (home->begin) home->begin(&x);
    for (int i = 0; i < x.count; i++) home->store(&x, values->at[i], i);
    for (int i = 0; i < x.count; i++) {
        int index = home->backwards ? x.count - 1 - i : i;
        again[index] = home->load(&x, values->at[index], index);
    }
    if (home->end) home->end(&x);
}

/* Of the values that have none yet, those that fit; NULL: of any type. */
static void move_in(Ad *ad, Keeping *keep, const struct Home *home, const Type *type, Val *const *values,
                    int count, Val **again) {
    ValVec mine = {0};
    for (int i = 0; i < count; i++)
        if (!again[i] && home->fits(keep, values[i]) && (!type || tape_type(ad, values[i]->type) == type))
            vec_push(ad->arena, &mine, values[i]);
    if (mine.count == 0) return;
    Val **loaded = arena_array(ad->arena, Val *, mine.count);
    stay_at(ad, keep, home, type, &mine, loaded);
    for (int i = 0, next = 0; i < count && next < mine.count; i++)
        if (values[i] == mine.at[next]) again[i] = loaded[next++];
}

Val **ad_keep_in_loop(Ad *ad, Keeping *keep, Val *const *values, int count) {
    Val **again = arena_array(ad->arena, Val *, count + 1);
    int64_t trip;
    keep->in_turn = keep->nest.outer && !val_is_int(keep->nest.loops.at[0]->trip, &trip) &&
                    are_in_turn(ad, keep->loop, values, count);
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        if (!homes[i].by_type) move_in(ad, keep, &homes[i], NULL, values, count, again);
        for (int kind = TYPE_bool; kind <= TYPE_double && homes[i].by_type; kind++)
            move_in(ad, keep, &homes[i], type_basic(ad->m->types, (TypeKind)kind), values, count, again);
    }
    return again;
}
