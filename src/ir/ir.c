/* Making and walking modules, functions, regions, instructions and constants.
 *
 * Arrays of operands, results and parameters have room for the next power of two, so that appending one at a
 * time is linear without a field for the room: see `grow`. */
#include "ir.h"

#include <math.h>

/* ---- arrays */

static int room_for(int count) {
    int room = 1;
    while (room < count) room *= 2;
    return count ? room : 0;
}

/* An array of `count` pointers that can take one more. */
static void *grow(Arena *arena, void *old, int count) {
    if (count != room_for(count)) return old;
    void *grown = arena_array(arena, void *, room_for(count + 1));
    if (count) memcpy(grown, old, sizeof(void *) * (size_t)count);
    return grown;
}

/* ---- modules */

Module *module_new(Arena *arena, Types *types, Names *names, Diags *diags) {
    Module *module = arena_new(arena, Module);
    module->arena = arena;
    module->types = types;
    module->names = names;
    module->diags = diags;
    return module;
}

/* A name that is not among those taken, with a number behind it if need be: the next after the last that
 * was. */
static Name unique_name(Module *module, const Map *taken, Map *numbers, const char *wish) {
    Name wished = name_from(module->names, wish), unique = wished;
    if (!map_has(taken, PTR_KEY(wished))) return wished;
    uintptr_t number = (uintptr_t)map_get(numbers, PTR_KEY(wished));
    while (map_has(taken, PTR_KEY(unique)))
        unique = name_from(module->names, format_text(module->arena, "%s.%d", wish, (int)++number));
    map_put(module->arena, numbers, PTR_KEY(wished), (void *)number);
    return unique;
}

Func *func_new(Module *module, const char *name) {
    Func *func = arena_new(module->arena, Func);
    func->name = unique_name(module, &module->func_names, &module->func_numbers, name);
    func->module = module;
    func->nvals = 1; /* id 0 is that of constants */
    vec_push(module->arena, &module->funcs, func);
    map_put(module->arena, &module->func_names, PTR_KEY(func->name), func);
    return func;
}

int func_lanes(const Func *func) { return func->rounds ? func->rounds : func->wide ? 0 : func->lanes; }

Func *func_new_part(const Func *of, const char *suffix, Loc loc) {
    Func *part = func_new(of->module, format_text(of->module->arena, "%s.%s", of->name->text, suffix));
    part->flags = (of->flags & (FUNC_GENERATED | FUNC_NORMAL | FUNC_PRECISE)) | FUNC_PART;
    part->loc = loc ? loc : of->loc;
    part->is_library = of->is_library;
    part->rounds = func_lanes(of);
    return part;
}

void func_forget(const Func *func) {
    Module *module = func->module;
    map_put(module->arena, &module->func_names, PTR_KEY(func->name), NULL);
    module->funcs.count--;
}

Func *module_find(const Module *module, Name name) { return map_get(&module->func_names, PTR_KEY(name)); }

Global *global_new(Module *module, GlobalKind kind, const char *name, const Type *type) {
    Global *global = arena_new(module->arena, Global);
    global->name = unique_name(module, &module->global_names, &module->global_numbers, name);
    global->kind = (uint8_t)kind;
    global->type = type;
    vec_push(module->arena, &module->globals, global);
    map_put(module->arena, &module->global_names, PTR_KEY(global->name), global);
    return global;
}

static int64_t part_count(const Type *type) {
    if (type->kind == TYPE_record) return type_record(type)->nfields;
    return type->kind == TYPE_array ? type_length(type) : type_count(type);
}

/* A constant for each scalar of the type, in order, from `at` on. */
static bool data_fits(const Global *global, const Type *type, int *at) {
    bool record = type->kind == TYPE_record;
    if (!record && type->kind != TYPE_array && type->kind != TYPE_vector)
        return *at < global->ndata && global->data[(*at)++]->type == type;
    for (int64_t i = 0, count = part_count(type); i < count; i++) {
        int before = *at;
        const Type *part = record ? type_record(type)->fields[i].type : type_element(type);
        if (!data_fits(global, part, at)) return false;
        if (!record && *at == before) break; /* elements of nothing, however many */
    }
    return true;
}

bool global_data_fit(const Global *global) {
    int at = 0;
    return data_fits(global, global->type, &at) && at == global->ndata;
}

/* ---- functions */

void func_set_params(Func *func, const Param *params, int nparams) {
    func->params = arena_copy(func->module->arena, params, sizeof *params * (size_t)nparams);
    func->nparams = nparams;
}

void func_set_results(Func *func, const Type *const *results, int nresults) {
    func->results = arena_copy(func->module->arena, results, sizeof *results * (size_t)nresults);
    func->nresults = nresults;
}

const Type *param_value_type(Module *module, const Param *param) {
    bool by_address = param->flags & PARAM_BY_ADDRESS;
    return by_address ? type_pointer(module->types, param->type) : param->type;
}

bool param_goes_by_address(unsigned dir, const Type *type) {
    return dir != DIR_in || type->kind == TYPE_record || type->kind == TYPE_array;
}

Region *func_begin(Func *func) {
    func->body = region_new(func, NULL);
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        region_add_param(func->body, param_value_type(func->module, param), param->name);
    }
    return func->body;
}

/* ---- values, regions, instructions */

static Val *val_new(Func *func, ValKind kind, int index, const Type *type, Name name) {
    Val *v = arena_new(func->module->arena, Val);
    v->kind = (uint8_t)kind;
    v->index = index;
    v->id = func->nvals++;
    v->type = type;
    v->name = name;
    return v;
}

Region *region_new(Func *func, Inst *owner) {
    Region *region = arena_new(func->module->arena, Region);
    region->owner = owner;
    region->func = func;
    return region;
}

Val *region_add_param(Region *region, const Type *type, Name name) {
    Val *v = val_new(region->func, VAL_param, region->nparams, type, name);
    v->region = region;
    region->params = grow(region->func->module->arena, region->params, region->nparams);
    return region->params[region->nparams++] = v;
}

Inst *inst_new(Func *func, Op op, int nargs, int nresults, int nregions) {
    Arena *arena = func->module->arena;
    Inst *inst = arena_new(arena, Inst);
    inst->op = (uint16_t)op;
    inst->func = func;
    inst->nargs = nargs;
    if (nargs) inst->args = arena_array(arena, Val *, room_for(nargs));
    if (nresults) inst->results = arena_array(arena, Val *, room_for(nresults));
    for (int i = 0; i < nresults; i++) {
        inst->results[i] = val_new(func, VAL_inst, i, NULL, NULL);
        inst->results[i]->inst = inst;
    }
    inst->nresults = nresults;
    if (nregions) inst->regions = arena_array(arena, Region *, nregions);
    for (int i = 0; i < nregions; i++) inst->regions[i] = region_new(func, inst);
    inst->nregions = nregions;
    return inst;
}

Val *inst_add_result(Inst *inst, const Type *type, Name name) {
    Val *v = val_new(inst->func, VAL_inst, inst->nresults, type, name);
    v->inst = inst;
    inst->results = grow(inst->func->module->arena, inst->results, inst->nresults);
    return inst->results[inst->nresults++] = v;
}

Val *inst_renew_result(Inst *inst, int index) {
    const Val *old = inst->results[index];
    Val *v = val_new(inst->func, VAL_inst, index, old->type, old->name);
    v->inst = inst;
    return inst->results[index] = v;
}

void inst_add_arg(Inst *inst, Val *arg) {
    inst->args = grow(inst->func->module->arena, inst->args, inst->nargs);
    inst->args[inst->nargs++] = arg;
}

Val *inst_result(const Inst *inst) {
    assert(inst->nresults == 1);
    return inst->results[0];
}

static void link_between(Region *region, Inst *prev, Inst *inst, Inst *next) {
    assert(!inst->parent && "inserted twice");
    inst->parent = region;
    inst->func = region->func;
    inst->prev = prev;
    inst->next = next;
    *(prev ? &prev->next : &region->first) = inst;
    *(next ? &next->prev : &region->last) = inst;
}

void inst_append(Region *region, Inst *inst) { link_between(region, region->last, inst, NULL); }

void inst_insert_before(Inst *at, Inst *inst) { link_between(at->parent, at->prev, inst, at); }

void inst_remove(Inst *inst) {
    Region *region = inst->parent;
    *(inst->prev ? &inst->prev->next : &region->first) = inst->next;
    *(inst->next ? &inst->next->prev : &region->last) = inst->prev;
    inst->prev = inst->next = NULL;
    inst->parent = NULL;
}

void inst_replace(Inst *inst, const Inst *with) {
    for (int i = 0; i < inst->nresults; i++) {
        inst->results[i]->forward = with->results[i];
        if (!with->results[i]->name) with->results[i]->name = inst->results[i]->name;
    }
    inst_remove(inst);
}

void region_walk(Region *region, InstVisitor visit, void *user) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next; /* the visitor may remove the instruction */
        visit(user, inst);
        inst_walk(inst, visit, user);
    }
}

void inst_walk(const Inst *inst, InstVisitor visit, void *user) {
    for (int i = 0; i < inst->nregions; i++) region_walk(inst->regions[i], visit, user);
}

Inst *inst_find(const Inst *inst, InstTest test, const void *user) {
    Inst *found = NULL;
    for (int i = 0; i < inst->nregions && !found; i++) found = region_find(inst->regions[i], test, user);
    return found;
}

Inst *region_find(const Region *region, InstTest test, const void *user) {
    Inst *found = NULL;
    for (Inst *inst = region->first; inst && !found; inst = inst->next)
        found = test(user, inst) ? inst : inst_find(inst, test, user);
    return found;
}

static void count_uses(void *user, Inst *inst) {
    int *uses = user;
    for (int i = 0; i < inst->nargs; i++)
        if (!val_is_const(inst_operand(inst, i))) uses[inst_operand(inst, i)->id]++;
}

int *region_count_uses(Arena *arena, Region *region) {
    int *uses = arena_array(arena, int, region->func->nvals + 1);
    region_walk(region, count_uses, uses);
    return uses;
}

static void count_inst(void *user, Inst *inst) {
    (void)inst;
    ++*(int *)user;
}

int region_size(Region *region) {
    int size = 0;
    region_walk(region, count_inst, &size);
    return size;
}

typedef struct Calls {
    const Func *callee;
    int count;
} Calls;

static void count_call(void *user, Inst *inst) {
    Calls *calls = user;
    calls->count += inst->op == OP_call && inst->callee == calls->callee;
}

int region_calls(Region *region, const Func *callee) {
    Calls calls = {callee, 0};
    region_walk(region, count_call, &calls);
    return calls.count;
}

void inst_resolve(Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) inst->args[i] = ir_resolve(inst->args[i]);
    ir_follow_space(inst);
}

static void resolve_operands(void *user, Inst *inst) {
    (void)user;
    inst_resolve(inst);
}

void ir_resolve_func(Func *func) {
    if (func->body) region_walk(func->body, resolve_operands, NULL);
}

/* ---- constants */

bool val_is_zero(const Val *v) {
    if (v->kind != VAL_const) return false;
    if (type_is_float(v->type)) return v->real == 0 && !signbit(v->real);
    return !type_is_scalar(v->type) || v->integer == 0;
}

bool val_is_one(const Val *v) {
    if (v->kind != VAL_const || !type_is_scalar(v->type)) return false;
    return type_is_float(v->type) ? v->real == 1 : v->integer == 1;
}

bool val_is_same(const Val *a, const Val *b) {
    if (a == b) return true;
    return a->kind == VAL_const && b->kind == VAL_const && a->type == b->type && a->integer == b->integer;
}

bool val_is_int(const Val *v, int64_t *value) {
    if (v->kind != VAL_const || !type_is_scalar(v->type) || type_is_float(v->type)) return false;
    *value = v->integer;
    return true;
}

const Val *val_unconverted(const Val *v) {
    while (v->kind == VAL_inst && v->inst->op == OP_convert && type_is_integer(v->type) &&
           type_bits(v->type) >= 32)
        v = inst_operand(v->inst, 0);
    return v;
}

Val *val_half(const Val *v) {
    bool is_sum = v->kind == VAL_inst && v->inst->op == OP_add && inst_has(v->inst, INST_FREE);
    Val *half = is_sum ? inst_operand(v->inst, 0) : NULL;
    return half && half == inst_operand(v->inst, 1) ? half : NULL;
}

static Val *const_new(Module *module, const Type *type) {
    Val *v = arena_new(module->arena, Val);
    v->kind = VAL_const;
    v->type = type;
    return v;
}

static int64_t wrap_integer(const Type *type, int64_t value) {
    int bits = type_bits(type);
    if (bits == 64) return value;
    uint64_t mask = ((uint64_t)1 << bits) - 1, low = (uint64_t)value & mask;
    bool negative = type_is_signed(type) && low >> (bits - 1);
    return (int64_t)(negative ? low | ~mask : low);
}

Val *ir_const_int(Module *module, const Type *type, int64_t value) {
    assert(type_is_scalar(type) && !type_is_float(type));
    Val *v = const_new(module, type);
    v->integer = wrap_integer(type, value);
    return v;
}

Val *ir_const_real(Module *module, const Type *type, double value) {
    assert(type_is_float(type));
    Val *v = const_new(module, type);
    /* One NaN: the sign of a computed one means nothing. */
    v->real = isnan(value) ? (double)NAN : compute_round(type, value);
    return v;
}

Val *ir_const_zero(Module *module, const Type *type) { return const_new(module, type); }
