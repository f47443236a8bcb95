/* Building instructions. What can be folded is folded on the way, so that producers stay naive: they ask for
 * `x * 1` and get x. Constants stand on the right of operations that commute. */
#include "ir.h"

Builder build_at_end(Region *region) { return (Builder){.func = region->func, .region = region}; }

Builder build_before(Inst *inst) {
    return (Builder){.func = inst->func, .region = inst->parent, .before = inst, .loc = inst->loc};
}

Builder build_after(Inst *inst) { return inst->next ? build_before(inst->next) : build_at_end(inst->parent); }

static Types *types_of(const Builder *b) { return b->func->module->types; }

static const Type *pointee(const Val *address) {
    assert(address->type->kind == TYPE_pointer);
    return address->type->args[0];
}

static void insert(Builder *b, Inst *inst) {
    inst->loc = b->loc;
    if (b->before) inst_insert_before(b->before, inst);
    else inst_append(b->region, inst);
}

Inst *build_inst(Builder *b, Op op, Val *const *args, int nargs, int nresults, int nregions) {
    Inst *inst = inst_new(b->func, op, nargs, nresults, nregions);
    for (int i = 0; i < nargs; i++) inst->args[i] = ir_resolve(args[i]);
    insert(b, inst);
    return inst;
}

static Inst *emit(Builder *b, Op op, const Type *type, Val *const *args, int nargs) {
    Inst *inst = build_inst(b, op, args, nargs, 1, 0);
    inst->results[0]->type = type;
    ir_follow_space(inst);
    return inst;
}

/* ---- values */

#define FEW 8

Val *build_op(Builder *b, Op op, const Type *type, Val *const *args, int nargs) {
    Val *few[FEW], **resolved = nargs <= FEW ? few : arena_array(b->func->module->arena, Val *, nargs);
    for (int i = 0; i < nargs; i++) resolved[i] = ir_resolve(args[i]);
    if (!b->no_fold) {
        if (op_has(op, OP_COMMUTES) && val_is_const(resolved[0])) {
            Val *constant = resolved[0];
            resolved[0] = resolved[1];
            resolved[1] = constant;
        }
        Val *folded = ir_fold(b->func->module, op, type, resolved, nargs);
        if (!folded) folded = build_rewrite(b, op, type, resolved, nargs);
        if (folded) return folded;
    }
    return inst_result(emit(b, op, type, resolved, nargs));
}

static const Type *shape_of_bool(const Builder *b, const Type *like) {
    const Type *boolean = type_basic(types_of(b), TYPE_bool);
    return like->kind == TYPE_vector ? type_vector(types_of(b), boolean, type_count(like)) : boolean;
}

static const Type *result_type(const Builder *b, Op op, const Type *operand) {
    return op_has(op, OP_COMPARES) ? shape_of_bool(b, operand) : operand;
}

Val *build_unary(Builder *b, Op op, Val *a) { return build_op(b, op, result_type(b, op, a->type), &a, 1); }

Val *build_binary(Builder *b, Op op, Val *x, Val *y) {
    Val *args[] = {x, y};
    return build_op(b, op, result_type(b, op, x->type), args, 2);
}

/* 0 + x is x, of what sign ever. */
static Val *fold_sum(Val *a, Val *b) {
    if (val_is_const(b) && val_is_zero(b)) return a;
    return val_is_const(a) && val_is_zero(a) ? b : NULL;
}

/* What a sum has become, of the minus of a number perhaps a difference. */
static void set_free(Val *sum) {
    bool is_sum = sum->kind == VAL_inst && (sum->inst->op == OP_add || sum->inst->op == OP_sub);
    if (is_sum && type_is_float(type_element(sum->type))) sum->inst->flags |= INST_FREE;
}

Val *build_sum(Builder *b, Val *x, Val *y) {
    Val *folded = fold_sum(ir_resolve(x), ir_resolve(y));
    if (folded) return folded;
    Val *sum = build_binary(b, OP_add, x, y);
    if (sum != x && sum != y) set_free(sum);
    return sum;
}

Val *build_quotient(Builder *b, Op op, Val *x, Val *y) {
    Val *quotient = build_binary(b, op, x, y);
    Inst *inst = quotient->kind == VAL_inst ? quotient->inst : NULL;
    if (inst && inst->op == OP_neg && inst_operand(inst, 0)->kind == VAL_inst)
        inst = inst_operand(inst, 0)->inst;
    bool is_new = inst && inst->op == op && inst_operand(inst, 1) == ir_resolve(y);
    if (is_new) inst->flags |= INST_FREE;
    return quotient;
}

Val *build_fma(Builder *b, Val *x, Val *y, Val *z) {
    Val *args[] = {x, y, z};
    return build_op(b, OP_fma, x->type, args, 3);
}

Val *build_select(Builder *b, Val *condition, Val *x, Val *y) {
    Val *args[] = {condition, x, y};
    return build_op(b, OP_select, x->type, args, 3);
}

Val *build_convert(Builder *b, Val *x, const Type *to) {
    return x->type == to ? x : build_op(b, OP_convert, to, &x, 1);
}

Val *build_bitcast(Builder *b, Val *x, const Type *to) {
    return x->type == to ? x : build_op(b, OP_bitcast, to, &x, 1);
}

Val *build_not(Builder *b, Val *x) { return build_unary(b, OP_not, x); }

Val *build_vec(Builder *b, const Type *type, Val *const *lanes) {
    return build_op(b, OP_vec, type, lanes, type_count(type));
}

Val *build_splat(Builder *b, const Type *vector, Val *x) { return build_op(b, OP_splat, vector, &x, 1); }

Val *build_extract(Builder *b, Val *vector, Val *index) {
    Val *args[] = {vector, index};
    return build_op(b, OP_extract, type_element(vector->type), args, 2);
}

Val *build_extract_lane(Builder *b, Val *vector, int lane) {
    Module *module = b->func->module;
    return build_extract(b, vector, ir_const_int(module, type_basic(module->types, TYPE_int), lane));
}

Val *build_insert(Builder *b, Val *vector, Val *index, Val *x) {
    Val *args[] = {vector, index, x};
    return build_op(b, OP_insert, vector->type, args, 3);
}

/* ---- shuffles: their lanes are an attribute, so that they fold here */

static bool shuffle_is_identity(const Val *vector, const uint8_t *lanes, int nlanes) {
    for (int i = 0; i < nlanes; i++)
        if (lanes[i] != i) return false;
    return nlanes == type_count(vector->type);
}

static Val *emit_shuffle(Builder *b, const Type *type, Val *vector, const uint8_t *lanes) {
    Inst *inst = emit(b, OP_shuffle, type, &vector, 1);
    memcpy(inst->lanes, lanes, (size_t)type_count(type));
    return inst_result(inst);
}

/* NULL: nothing simpler than shuffling `vector` itself. */
static Val *fold_shuffle(Builder *b, const Type *type, Val *vector, const uint8_t *lanes) {
    int count = type_count(type);
    if (shuffle_is_identity(vector, lanes, count)) return vector;
    if (val_is_zero(vector)) return ir_const_zero(b->func->module, type);
    if (vector->kind != VAL_inst) return NULL;
    const Inst *inst = vector->inst;
    if (inst->op == OP_splat) return build_splat(b, type, inst->args[0]);
    if (inst->op == OP_vec) {
        Val *parts[4];
        for (int i = 0; i < count; i++) parts[i] = inst->args[lanes[i]];
        return build_vec(b, type, parts);
    }
    if (inst->op != OP_shuffle) return NULL;
    uint8_t composed[4];
    for (int i = 0; i < count; i++) composed[i] = inst->lanes[lanes[i]];
    return build_shuffle(b, inst->args[0], composed, count);
}

Val *build_shuffle(Builder *b, Val *vector, const uint8_t *lanes, int nlanes) {
    vector = ir_resolve(vector);
    const Type *type = type_vector(types_of(b), type_element(vector->type), nlanes);
    Val *folded = b->no_fold ? NULL : fold_shuffle(b, type, vector, lanes);
    return folded ? folded : emit_shuffle(b, type, vector, lanes);
}

/* ---- the same again, for an instruction that exists */

Val *build_again(Builder *b, Inst *inst) {
    if (!op_has(inst->op, OP_PURE) || inst->nresults != 1) return NULL;
    inst_resolve(inst);
    const Type *type = inst->results[0]->type;
    if (inst->op == OP_shuffle) return fold_shuffle(b, type, inst->args[0], inst->lanes);
    if (op_has(inst->op, OP_COMMUTES) && val_is_const(inst->args[0]) && !val_is_const(inst->args[1])) {
        Val *constant = inst->args[0];
        inst->args[0] = inst->args[1];
        inst->args[1] = constant;
    }
    Val *folded = ir_fold(b->func->module, (Op)inst->op, type, inst->args, inst->nargs);
    bool is_free = inst_has(inst, INST_FREE);
    if (!folded && is_free && inst->op == OP_add) folded = fold_sum(inst->args[0], inst->args[1]);
    if (folded) return folded;
    Val *other = build_rewrite(b, (Op)inst->op, type, inst->args, inst->nargs);
    if (other && is_free) set_free(other);
    return other;
}

/* ---- memory */

static Inst *emit_address(Builder *b, Op op, const Type *target, Val *const *args, int nargs) {
    return emit(b, op, type_pointer(types_of(b), target), args, nargs);
}

Val *build_var(Builder *b, const Type *type, Name name, bool raw) {
    Inst *inst = emit_address(b, OP_var, type, NULL, 0);
    inst->type = type;
    if (raw) inst->flags |= INST_RAW;
    inst->results[0]->name = name;
    return inst->results[0];
}

Val *build_global(Builder *b, Global *global) {
    Inst *inst = build_inst(b, OP_global, NULL, 0, 1, 0);
    inst->global = global;
    inst->results[0]->type = ir_result_type(b->func->module, inst);
    return inst->results[0];
}

Val *build_field(Builder *b, Val *address, int field) {
    const Record *record = type_record(pointee(address));
    Inst *inst = emit_address(b, OP_field, record->fields[field].type, &address, 1);
    inst->index = field;
    return inst->results[0];
}

Val *build_elem(Builder *b, Val *address, Val *index, bool unchecked) {
    Val *args[] = {address, index};
    Inst *inst = emit_address(b, OP_elem, type_element(pointee(address)), args, 2);
    if (unchecked) inst->flags |= INST_UNCHECKED;
    return inst->results[0];
}

Val *build_offset(Builder *b, Val *pointer, Val *count) {
    Val *args[] = {pointer, count};
    if (!b->no_fold && val_is_zero(ir_resolve(count))) return ir_resolve(pointer);
    return build_op(b, OP_offset, pointer->type, args, 2);
}

typedef struct Again {
    Builder *b;
    Val *(*stands_for)(void *user, Builder *b, Val *v);
    void *user;
    Map selects; /* Val -> the new one: ways that part may meet again */
} Again;

static Val *place_again(Again *x, Val *address);

static Val *select_again(Again *x, Val *v) {
    Val *again = map_get(&x->selects, PTR_KEY(v));
    if (again) return again;
    Val *one = place_again(x, v->inst->args[1]), *other = place_again(x, v->inst->args[2]);
    again = build_select(x->b, inst_operand(v->inst, 0), one, other);
    map_put(v->inst->func->module->arena, &x->selects, PTR_KEY(v), again);
    return again;
}

static Val *place_again(Again *x, Val *address) {
    Val *v = ir_resolve(address), *other = x->stands_for ? x->stands_for(x->user, x->b, v) : NULL;
    if (other) return other;
    if (v->kind != VAL_inst || !op_has(v->inst->op, OP_PART | OP_MOVES)) return v;
    const Inst *inst = v->inst;
    if (inst->op == OP_select) return select_again(x, v);
    Val *base = place_again(x, inst->args[0]);
    if (inst->op == OP_field) return build_field(x->b, base, inst->index);
    if (inst->op == OP_offset) return build_offset(x->b, base, inst_operand(inst, 1));
    if (inst->op == OP_bitcast) return build_bitcast(x->b, base, v->type);
    return build_elem(x->b, base, inst_operand(inst, 1), inst_has(inst, INST_UNCHECKED));
}

Val *build_place_again(Builder *b, Val *address, Val *(*stands_for)(void *user, Builder *b, Val *v),
                       void *user) {
    return place_again(&(Again){.b = b, .stands_for = stands_for, .user = user}, address);
}

Val *build_load(Builder *b, Val *address) {
    return inst_result(emit(b, OP_load, pointee(address), &address, 1));
}

void build_store(Builder *b, Val *address, Val *value) {
    Val *args[] = {address, value};
    build_inst(b, OP_store, args, 2, 0, 0);
}

void build_copy(Builder *b, Val *to, Val *from) {
    Val *args[] = {to, from};
    build_inst(b, OP_copy, args, 2, 0, 0);
}

void build_zero(Builder *b, Val *address) { build_inst(b, OP_zero, &address, 1, 0, 0); }

Val *build_buffer_elem(Builder *b, Val *buffer, Val *index, bool writes) {
    Val *args[] = {buffer, index};
    Inst *inst = emit_address(b, OP_buffer_elem, buffer->type->args[0], args, 2);
    if (writes) inst->flags |= INST_WRITES;
    return inst->results[0];
}

Val *build_buffer_bytes(Builder *b, Val *buffer, Val *offset, const Type *type, bool writes) {
    Val *args[] = {buffer, offset};
    Inst *inst = emit_address(b, OP_buffer_bytes, type, args, 2);
    if (writes) inst->flags |= INST_WRITES;
    return inst->results[0];
}

Inst *build_call(Builder *b, Func *callee, Val *const *args, int nargs) {
    Inst *inst = build_inst(b, OP_call, args, nargs, callee->nresults, 0);
    inst->callee = callee;
    for (int i = 0; i < callee->nresults; i++) inst->results[i]->type = callee->results[i];
    return inst;
}

/* ---- control flow */

static void set_result_types(Inst *inst, const Type *const *types) {
    for (int i = 0; i < inst->nresults; i++) inst->results[i]->type = types[i];
}

Inst *build_if(Builder *b, Val *condition, const Type *const *results, int nresults) {
    Inst *inst = build_inst(b, OP_if, &condition, 1, nresults, 2);
    set_result_types(inst, results);
    return inst;
}

Inst *build_switch(Builder *b, Val *value, const SwitchCase *cases, int ncases, const Type *const *results,
                   int nresults) {
    Arena *arena = b->func->module->arena;
    Inst *inst = build_inst(b, OP_switch, &value, 1, nresults, ncases + 1);
    set_result_types(inst, results);
    inst->cases = arena_copy(arena, cases, sizeof *cases * (size_t)ncases);
    inst->ncases = ncases;
    for (int i = 0; i < ncases; i++)
        inst->cases[i].values =
            arena_copy(arena, cases[i].values, sizeof *cases[i].values * (size_t)cases[i].nvalues);
    return inst;
}

Inst *build_loop(Builder *b, Val *const *initial, int ncarried, bool with_step) {
    Inst *inst = build_inst(b, OP_loop, initial, ncarried, ncarried, with_step ? 3 : 2);
    for (int i = 0; i < ncarried; i++) {
        inst->results[i]->type = inst->args[i]->type;
        for (int r = 0; r < inst->nregions; r++)
            region_add_param(inst->regions[r], inst->args[i]->type, NULL);
    }
    return inst;
}

Inst *build_block(Builder *b) { return build_inst(b, OP_block, NULL, 0, 0, 1); }

void build_yield(Builder *b, Val *const *args, int nargs) { build_inst(b, OP_yield, args, nargs, 0, 0); }

static Val *count_value(Builder *b, int64_t value) {
    return ir_const_int(b->func->module, type_basic(types_of(b), TYPE_int), value);
}

CountLoop build_count(Builder *b, int64_t first, int64_t end) {
    Val *start = count_value(b, first);
    Inst *loop = build_loop(b, &start, 1, false);
    Builder condition = build_at_end(loop->regions[0]);
    Val *more = build_binary(&condition, OP_lt, loop->regions[0]->params[0], count_value(b, end));
    build_yield(&condition, &more, 1);
    return (CountLoop){.body = build_at_end(loop->regions[1]), .index = loop->regions[1]->params[0]};
}

void build_next(CountLoop *loop) {
    Val *next = build_binary(&loop->body, OP_add, loop->index, count_value(&loop->body, 1));
    build_yield(&loop->body, &next, 1);
}

void build_break(Builder *b, Inst *target, Val *const *args, int nargs) {
    build_inst(b, OP_break, args, nargs, 0, 0)->target = target;
}

void build_continue(Builder *b, Inst *target, Val *const *args, int nargs) {
    build_inst(b, OP_continue, args, nargs, 0, 0)->target = target;
}

void build_return(Builder *b, Val *const *args, int nargs) { build_inst(b, OP_return, args, nargs, 0, 0); }

void build_unreachable(Builder *b) { build_inst(b, OP_unreachable, NULL, 0, 0, 0); }
