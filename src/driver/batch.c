/* A function called for many values at once: a kernel around it, which all threads of the machine run and
 * which lanes do several calls of.
 *
 *     kernel(count, address of each argument ...) { if (id < count) *result[id] = f(*a[id], b[id], *c) }
 *
 * Where values follow each other as an array has them, an address moves by elements, so that lanes load
 * vectors of them; one value for all does not move; other distances are counted in bytes, and given when the
 * kernel runs. */
#include "driver/driver.h"

enum { GROUP = DRIVER_BATCH_GROUP };

static Param plain_param(const Type *type) { return (Param){.type = type, .dir = DIR_in}; }

/* Its parameters: the count, then for each argument its address and, where that is needed, the distance in
 * bytes. */
static void declare_params(Func *kernel, const Func *func, const BatchStep *steps) {
    Types *types = kernel->module->types;
    VEC(Param) params = {0};
    vec_push(kernel->module->arena, &params, plain_param(type_basic(types, TYPE_uint)));
    for (int i = 0; i < func->nparams + func->nresults; i++) {
        const Type *type = i < func->nparams ? func->params[i].type : func->results[i - func->nparams];
        vec_push(kernel->module->arena, &params, plain_param(type_pointer(types, type)));
        if (steps[i] == BATCH_apart)
            vec_push(kernel->module->arena, &params, plain_param(type_basic(types, TYPE_int64)));
    }
    func_set_params(kernel, params.at, params.count);
}

static Val *thread_number(Builder *b) {
    Types *types = b->region->func->module->types;
    Inst *inst = build_inst(b, OP_thread_id, NULL, 0, 0, 0);
    return build_extract_lane(
        b, inst_add_result(inst, type_vector(types, type_basic(types, TYPE_uint), 3), NULL), 0);
}

/* Where the value for this call is; `at` counts the parameters. */
static Val *place_of(Builder *b, const Region *body, int *at, Val *number, BatchStep step) {
    Types *types = b->region->func->module->types;
    Val *base = body->params[(*at)++];
    if (step == BATCH_same) return base;
    if (step == BATCH_next) return build_offset(b, base, number);
    Val *bytes = build_binary(b, OP_mul, number, body->params[(*at)++]);
    Val *memory = build_bitcast(b, base, type_pointer(types, type_basic(types, TYPE_uint8)));
    return build_bitcast(b, build_offset(b, memory, bytes), base->type);
}

static void call_once(Builder *b, Func *func, const Region *body, Val *id, const BatchStep *steps) {
    Module *module = func->module;
    Val *number = build_convert(b, id, type_basic(module->types, TYPE_int64));
    Val **args = arena_array(module->arena, Val *, func->nparams + 1);
    int at = 1;
    for (int i = 0; i < func->nparams; i++) {
        Val *place = place_of(b, body, &at, number, steps[i]);
        bool by_address = (func->params[i].flags & PARAM_BY_ADDRESS) != 0;
        args[i] = by_address ? place : build_load(b, place);
    }
    const Inst *call = build_call(b, func, args, func->nparams);
    for (int i = 0; i < func->nresults; i++)
        build_store(b, place_of(b, body, &at, number, steps[func->nparams + i]), call->results[i]);
    build_yield(b, NULL, 0);
}

Func *driver_batch_kernel(Func *func, const BatchStep *steps) {
    Module *module = func->module;
    Func *kernel = func_new(module, format_text(module->arena, "%s.batch", func->name->text));
    kernel->loc = func->loc;
    kernel->group_size[0] = GROUP, kernel->group_size[1] = kernel->group_size[2] = 1;
    declare_params(kernel, func, steps);
    Region *body = func_begin(kernel);
    Builder b = build_at_end(body);
    b.loc = func->loc;
    Val *id = thread_number(&b);
    Inst *inside = build_if(&b, build_binary(&b, OP_lt, id, body->params[0]), NULL, 0);
    Builder then = build_at_end(inside->regions[0]), otherwise = build_at_end(inside->regions[1]);
    then.loc = otherwise.loc = func->loc;
    call_once(&then, func, body, id, steps);
    build_yield(&otherwise, NULL, 0);
    build_return(&b, NULL, 0);
    return kernel;
}
