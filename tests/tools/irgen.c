/* See irgen.h.
 *
 * A region is filled statement by statement. Values in scope are kept in one list, and leaving a region cuts
 * the list back to what it was. Local variables are kept likewise; addresses are made by walking into one of
 * them at random. */
#include "irgen.h"

uint32_t random_bits(Random *random) {
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

int random_below(Random *random, int count) { return (int)(random_bits(random) % (uint32_t)count); }
bool random_chance(Random *random, int percent) { return random_below(random, 100) < percent; }

/* A whole number, not of greater size than `most`: sums of these are exact. */
typedef struct Whole {
    Val *value;
    int most;
} Whole;

typedef struct Gen {
    ToolSession *session;
    Module *module;
    Random *random;
    GenOptions options;
    Func *func;
    Builder b;
    bool ended; /* the region at work has its end */
    int depth;
    ValVec vals;     /* in scope */
    ValVec objects;  /* addresses of whole objects: vars and parameters */
    ValVec places;   /* addresses of values, used before and still in scope */
    InstVec targets; /* loops and blocks around that may be left from here */
    bool whole;      /* the buffer has whole numbers alone, which add up to the same in any order */
    VEC(Whole) wholes;
    Val *buffer;
    const Record *small, *large;
    VEC(Func *) callees;
} Gen;

static bool chance(Gen *g, int percent) { return random_chance(g->random, percent); }
static int below(Gen *g, int count) { return random_below(g->random, count); }
static const Type *basic(Gen *g, TypeKind kind) { return type_basic(&g->session->types, kind); }
static Name name(Gen *g, const char *text) {
    return chance(g, 60) ? name_from(&g->session->names, text) : NULL;
}

/* ---- types */

static const Type *scalar_type(Gen *g) {
    static const TypeKind kinds[] = {TYPE_int,  TYPE_float,  TYPE_int,   TYPE_float,  TYPE_bool,
                                     TYPE_uint, TYPE_float,  TYPE_int,   TYPE_double, TYPE_half,
                                     TYPE_int8, TYPE_uint16, TYPE_int64, TYPE_uint64};
    return basic(g, kinds[below(g, 14)]);
}

static const Type *value_type(Gen *g) {
    const Type *scalar = scalar_type(g);
    return chance(g, 25) ? type_vector(&g->session->types, scalar, 2 + below(g, 3)) : scalar;
}

static const Type *object_type(Gen *g) {
    Types *types = &g->session->types;
    switch (below(g, 8)) {
    case 0: return g->small->type;
    case 1: return g->large->type;
    case 2: return type_array(types, basic(g, TYPE_float), 4);
    case 3: return type_array(types, type_array(types, basic(g, TYPE_int), 3), 2);
    case 4: return type_array(types, g->small->type, 2);
    default: return value_type(g);
    }
}

static bool is_value(const Type *type) { return type->kind != TYPE_record && type->kind != TYPE_array; }

static Record *make_record(Gen *g, const char *record_name, const char *const *names,
                           const Type *const *types, int n) {
    Record *record = record_new(&g->session->types, name_from(&g->session->names, record_name));
    record->fields = arena_array(&g->session->arena, Field, n);
    record->nfields = n;
    for (int i = 0; i < n; i++)
        record->fields[i] = (Field){.name = name_from(&g->session->names, names[i]), .type = types[i]};
    vec_push(g->module->arena, &g->module->records, record);
    return record;
}

static void make_records(Gen *g) {
    static const char *const small[] = {"a", "b", "c"}, *const large[] = {"inner", "list", "n"};
    Types *types = &g->session->types;
    const Type *parts[] = {basic(g, TYPE_float), basic(g, TYPE_int),
                           type_vector(types, basic(g, TYPE_float), 3)};
    g->small = make_record(g, "Small", small, parts, 3);
    const Type *more[] = {g->small->type, type_array(types, basic(g, TYPE_float), 3), basic(g, TYPE_int)};
    g->large = make_record(g, "Large", large, more, 3);
}

/* ---- operands */

static Val *constant(Gen *g, const Type *type) {
    static const double reals[] = {0, -0.0, 1, -1, 0.5, 2, 3.25, 1e30, -7, 0.1};
    static const int integers[] = {0, 1, -1, 2, 3, 7, -5, 100, 255, 31};
    if (!type_is_scalar(type)) return ir_const_zero(g->module, type);
    if (type_is_float(type)) return ir_const_real(g->module, type, reals[below(g, 10)]);
    return ir_const_int(g->module, type, integers[below(g, 10)]);
}

static Val *add_val(Gen *g, Val *v) {
    if (v->kind != VAL_const) vec_push(g->module->arena, &g->vals, v);
    return v;
}

static Val *named(Gen *g, Val *v, const char *text) {
    if (v->kind == VAL_inst && !v->name) v->name = name(g, text);
    return add_val(g, v);
}

/* A value of the type; recent ones are likelier. */
static Val *operand(Gen *g, const Type *type) {
    for (int tries = 0; tries < 12 && g->vals.count && !chance(g, 10); tries++) {
        int window = chance(g, 60) && g->vals.count > 10 ? 10 : g->vals.count;
        Val *v = g->vals.at[g->vals.count - 1 - below(g, window)];
        if (v->type == type) return v;
    }
    if (type->kind == TYPE_vector && chance(g, 50)) {
        Val *lane = operand(g, type_element(type));
        return named(g, build_splat(&g->b, type, lane), "splat");
    }
    return constant(g, type);
}

static Val *condition(Gen *g) { return operand(g, basic(g, TYPE_bool)); }
static Val *any_int(Gen *g) { return operand(g, basic(g, TYPE_int)); }

/* ---- addresses */

/* An address inside an object: that of a value, or else of whatever it stops at. */
static Val *walk_into(Gen *g, Val *address, bool to_value) {
    for (;;) {
        const Type *target = address->type->args[0];
        bool inside = target->kind == TYPE_vector && chance(g, 30);
        if (is_value(target) && !inside) return address;
        if (!to_value && chance(g, 40)) return address;
        if (target->kind == TYPE_record)
            address = build_field(&g->b, address, below(g, type_record(target)->nfields));
        else {
            Val *index =
                chance(g, 75) ? ir_const_int(g->module, basic(g, TYPE_int), below(g, 5)) : any_int(g);
            address = build_elem(&g->b, address, index, false);
        }
    }
}

static Val *new_place(Gen *g) {
    if (g->objects.count == 0 || (!g->whole && chance(g, 12)))
        return build_buffer_elem(&g->b, g->buffer,
                                 chance(g, 50) ? any_int(g) : constant(g, basic(g, TYPE_int)), true);
    return walk_into(g, g->objects.at[below(g, g->objects.count)], true);
}

/* Often one that was used before: loads and stores of the same thing are what passes look for. */
static Val *place(Gen *g) {
    if (g->places.count && chance(g, 55)) {
        int window = g->places.count < 6 ? g->places.count : 6;
        return g->places.at[g->places.count - 1 - below(g, window)];
    }
    Val *made = new_place(g);
    vec_push(g->module->arena, &g->places, made);
    return made;
}

static bool is_read_only(const Gen *g, const Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = address->inst->args[0];
    if (address->kind != VAL_param) return false;
    return address->region == g->func->body && g->func->params[address->index].dir == DIR_in;
}

static Val *new_var(Gen *g, const Type *type) {
    Val *v = build_var(&g->b, type, name(g, "var"), false);
    vec_push(g->module->arena, &g->objects, v);
    return v;
}

/* ---- statements without regions */

static void gen_arithmetic(Gen *g) {
    static const Op floats[] = {OP_add, OP_sub, OP_mul, OP_div,   OP_rem,
                                OP_min, OP_max, OP_pow, OP_atan2, OP_copysign};
    static const Op unary[] = {OP_neg,   OP_abs,   OP_sqrt,  OP_sin,    OP_exp,
                               OP_floor, OP_round, OP_trunc, OP_detach, OP_log};
    static const Op ints[] = {OP_add, OP_sub, OP_mul, OP_div, OP_rem, OP_min,
                              OP_max, OP_and, OP_or,  OP_xor, OP_shl, OP_shr};
    static const Op int_unary[] = {OP_neg, OP_not, OP_abs, OP_reversebits, OP_detach};
    const Type *type = value_type(g), *element = type_element(type);
    if (element->kind == TYPE_bool) {
        static const Op logic[] = {OP_and, OP_or, OP_xor, OP_eq, OP_ne};
        Val *x = operand(g, type);
        named(g,
              chance(g, 25) ? build_not(&g->b, x)
                            : build_binary(&g->b, logic[below(g, 5)], x, operand(g, type)),
              "q");
    } else if (type_is_float(element)) {
        if (chance(g, 30)) named(g, build_unary(&g->b, unary[below(g, 10)], operand(g, type)), "u");
        else if (chance(g, 10))
            named(g, build_fma(&g->b, operand(g, type), operand(g, type), operand(g, type)), "m");
        else
            named(g,
                  build_binary(&g->b, floats[chance(g, 70) ? below(g, 4) : below(g, 10)], operand(g, type),
                               operand(g, type)),
                  "f");
    } else if (chance(g, 20)) named(g, build_unary(&g->b, int_unary[below(g, 5)], operand(g, type)), "v");
    else
        named(g,
              build_binary(&g->b, ints[chance(g, 60) ? below(g, 3) : below(g, 12)], operand(g, type),
                           operand(g, type)),
              "i");
}

static void gen_bits(Gen *g) {
    static const Op ops[] = {OP_countbits, OP_firstbithigh, OP_firstbitlow};
    Val *x = any_int(g);
    named(g, build_op(&g->b, ops[below(g, 3)], basic(g, TYPE_uint), &x, 1), "bits");
}

static void gen_comparison(Gen *g) {
    static const Op ops[] = {OP_eq, OP_ne, OP_lt, OP_le};
    const Type *type = value_type(g);
    if (type_element(type)->kind == TYPE_bool) type = basic(g, TYPE_int);
    Val *result = build_binary(&g->b, ops[below(g, 4)], operand(g, type), operand(g, type));
    if (chance(g, 25)) result = build_not(&g->b, result);
    named(g, result, "c");
    if (result->type->kind == TYPE_vector)
        named(g, build_op(&g->b, chance(g, 50) ? OP_any : OP_all, basic(g, TYPE_bool), &result, 1), "c");
}

static void gen_conversion(Gen *g) {
    const Type *to = value_type(g), *from = scalar_type(g);
    if (to->kind == TYPE_vector) from = type_vector(&g->session->types, from, type_count(to));
    if (chance(g, 15)) {
        Val *x = operand(g, basic(g, chance(g, 50) ? TYPE_float : TYPE_int));
        named(g, build_bitcast(&g->b, x, basic(g, TYPE_uint)), "bits");
        return;
    }
    Val *x = operand(g, from);
    while (chance(g, 45)) { /* over others */
        const Type *over = scalar_type(g);
        if (to->kind == TYPE_vector) over = type_vector(&g->session->types, over, type_count(to));
        x = build_convert(&g->b, x, over);
    }
    named(g, build_convert(&g->b, x, to), "to");
}

static void gen_vector(Gen *g) {
    const Type *scalar = scalar_type(g), *type = type_vector(&g->session->types, scalar, 2 + below(g, 3));
    Val *lanes[4];
    uint8_t order[4];
    int count = type_count(type);
    switch (below(g, 5)) {
    case 0: {
        for (int i = 0; i < count; i++) lanes[i] = operand(g, scalar);
        Val *made = named(g, build_vec(&g->b, type, lanes), "vec");
        if (chance(g, 50)) named(g, build_extract_lane(&g->b, made, below(g, 7) - 1), "part");
        break;
    }
    case 1: named(g, build_insert(&g->b, operand(g, type), any_int(g), operand(g, scalar)), "ins"); break;
    case 2: {
        Val *vector = operand(g, type);
        int n = 1 + below(g, 4);
        for (int i = 0; i < n; i++) order[i] = (uint8_t)below(g, count);
        named(g, build_shuffle(&g->b, vector, order, n), "swizzle");
        break;
    }
    case 3: {
        Val *vector = operand(g, type);
        for (int i = 0; i < count; i++) lanes[i] = build_extract_lane(&g->b, vector, below(g, count));
        named(g, build_vec(&g->b, type, lanes), "again");
        break;
    }
    default: named(g, build_extract(&g->b, operand(g, type), any_int(g)), "lane"); break;
    }
}

static void gen_memory(Gen *g) {
    Val *address = place(g);
    const Type *type = address->type->args[0];
    if (chance(g, 45) || is_read_only(g, address)) named(g, build_load(&g->b, address), "l");
    else build_store(&g->b, address, operand(g, type));
}

/* copy, zero, acc of whole objects */
static void gen_object(Gen *g) {
    if (g->objects.count < 2) return;
    Val *to = walk_into(g, g->objects.at[below(g, g->objects.count)], false);
    if (is_read_only(g, to)) return;
    const Type *type = to->type->args[0];
    if (chance(g, 20)) {
        build_zero(&g->b, to);
        return;
    }
    for (int tries = 0; tries < 10; tries++) {
        Val *from = walk_into(g, g->objects.at[below(g, g->objects.count)], false);
        if (from->type != to->type) continue;
        Val *args[] = {to, from};
        bool adds = chance(g, 30) && type_is_float(type_element(type));
        build_inst(&g->b, adds ? OP_acc : OP_copy, args, 2, 0, 0);
        return;
    }
}

static void build_print(Gen *g, const char *word, Val *const *args, int count) {
    Text text = {.arena = g->module->arena};
    text_add(&text, str_of(word));
    for (int i = 0; i < count; i++)
        text_add(&text, type_is_float(type_element(args[i]->type)) ? STR(" %.17g") : STR(" %lld"));
    text_char(&text, '\n');
    build_inst(&g->b, OP_printf, args, count, 0, 0)->text = text_str(&text);
}

/* Prints the latest values: what is not seen cannot be wrong. */
static void gen_print(Gen *g) {
    Val *args[4];
    int count = 0;
    for (int i = g->vals.count - 1; i >= 0 && count < 4; i--)
        if (chance(g, 60)) args[count++] = g->vals.at[i];
    build_print(g, "say", args, count);
}

static void gen_effect(Gen *g) {
    if (g->whole || chance(g, 75)) {
        gen_print(g);
        return;
    }
    Val *address = build_buffer_elem(&g->b, g->buffer, any_int(g), true);
    Val *change[] = {address, operand(g, basic(g, TYPE_float))};
    Inst *atomic = build_inst(&g->b, OP_atomic, change, 2, 1, 0);
    atomic->results[0]->type = basic(g, TYPE_float);
    atomic->index = chance(g, 50) ? ATOMIC_add : ATOMIC_exchange;
    add_val(g, atomic->results[0]);
}

static void gen_select(Gen *g) {
    const Type *type = value_type(g);
    named(g, build_select(&g->b, condition(g), operand(g, type), operand(g, type)), "s");
}

/* An object that may be given to a call: nothing is given twice. */
static Val *argument_object(Gen *g, const Param *param, Val *const *args, int nargs) {
    for (int tries = 0; tries < 8 && g->objects.count; tries++) {
        Val *object = g->objects.at[below(g, g->objects.count)];
        bool taken = object->type->args[0] != param->type ||
                     (object->kind == VAL_inst && object->inst->op == OP_global);
        for (int i = 0; i < nargs; i++) taken |= args[i] == object;
        if (!taken && (param->dir == DIR_in || !is_read_only(g, object))) return object;
    }
    Val *fresh = build_var(&g->b, param->type, name(g, "arg"), false);
    for (int i = 0; i < g->objects.count; i++)
        if (g->objects.at[i]->type == fresh->type && chance(g, 70))
            build_copy(&g->b, fresh, g->objects.at[i]);
    vec_push(g->module->arena, &g->objects, fresh);
    return fresh;
}

static void gen_call(Gen *g) {
    if (g->callees.count == 0) return;
    Func *callee = g->callees.at[below(g, g->callees.count)];
    Val *args[8];
    for (int i = 0; i < callee->nparams; i++) {
        const Param *param = &callee->params[i];
        if (param->type->kind == TYPE_buffer) args[i] = g->buffer;
        else if (!(param->flags & PARAM_BY_ADDRESS)) args[i] = operand(g, param->type);
        else args[i] = argument_object(g, param, args, i);
    }
    Inst *call = build_call(&g->b, callee, args, callee->nparams);
    for (int i = 0; i < call->nresults; i++) add_val(g, call->results[i]);
}

/* ---- regions */

static void gen_statements(Gen *g, int count);

typedef struct Scope {
    Builder b;
    int vals, objects, places, targets, wholes;
} Scope;

static Scope enter(Gen *g, Region *region) {
    Scope scope = {g->b, g->vals.count, g->objects.count, g->places.count, g->targets.count, g->wholes.count};
    bool no_fold = g->b.no_fold;
    g->b = build_at_end(region);
    g->b.no_fold = no_fold;
    g->ended = false;
    g->depth++;
    return scope;
}

static void leave(Gen *g, Scope scope) {
    g->b = scope.b;
    g->vals.count = scope.vals;
    g->objects.count = scope.objects;
    g->places.count = scope.places;
    g->targets.count = scope.targets;
    g->wholes.count = scope.wholes;
    g->ended = false;
    g->depth--;
}

static void yield_like(Gen *g, Val *const *like, int count) {
    Val *args[8];
    if (g->ended) return;
    for (int i = 0; i < count; i++) args[i] = operand(g, like[i]->type);
    build_yield(&g->b, args, count);
    g->ended = true;
}

static void fill(Gen *g, Inst *owner, Region *region, int statements) {
    Scope scope = enter(g, region);
    for (int i = 0; i < region->nparams; i++) add_val(g, region->params[i]);
    gen_statements(g, statements);
    if (!g->ended && chance(g, 30)) gen_print(g);
    yield_like(g, owner->results, owner->nresults);
    leave(g, scope);
}

static int result_types(Gen *g, const Type **types) {
    int count = chance(g, 50) ? 0 : 1 + below(g, 3);
    for (int i = 0; i < count; i++) types[i] = value_type(g);
    return count;
}

static void add_results(Gen *g, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) named(g, inst->results[i], "r");
}

/* At times made of two others, which are then likely to be asked about inside. */
static Val *made_condition(Gen *g) {
    if (chance(g, 65)) return condition(g);
    Val *x = condition(g), *y = condition(g);
    Val *made = build_binary(&g->b, chance(g, 50) ? OP_and : OP_or, x, y);
    if (chance(g, 30)) made = build_not(&g->b, made);
    add_val(g, made), add_val(g, x), add_val(g, y);
    return made;
}

static void gen_if(Gen *g) {
    const Type *types[3];
    int count = result_types(g, types);
    Inst *inst = build_if(&g->b, made_condition(g), types, count);
    fill(g, inst, inst->regions[0], chance(g, 20) ? 0 : g->options.size / 2);
    fill(g, inst, inst->regions[1], chance(g, 40) ? 0 : g->options.size / 2);
    add_results(g, inst);
}

static void gen_switch(Gen *g) {
    static int64_t values[][2] = {{0, 1}, {2, 7}, {3, -5}};
    const Type *types[3];
    SwitchCase cases[3];
    int count = result_types(g, types), ncases = below(g, 4);
    for (int i = 0; i < ncases; i++) cases[i] = (SwitchCase){values[i], 1 + below(g, 2), NULL};
    Inst *inst = build_switch(&g->b, any_int(g), cases, ncases, types, count);
    for (int i = 0; i <= ncases; i++) fill(g, inst, inst->regions[i], g->options.size / 2);
    add_results(g, inst);
}

static void gen_block(Gen *g) {
    const Type *types[3];
    int count = result_types(g, types);
    Inst *block = build_block(&g->b);
    for (int i = 0; i < count; i++) inst_add_result(block, types[i], NULL);
    Scope scope = enter(g, block->regions[0]);
    vec_push(g->module->arena, &g->targets, block);
    gen_statements(g, g->options.size);
    yield_like(g, block->results, block->nresults);
    leave(g, scope);
    add_results(g, block);
}

/* ---- loops: the first carried value counts up to a small bound, in the step if there is one */

static Val *bound_of(Gen *g) {
    if (chance(g, 50)) return ir_const_int(g->module, basic(g, TYPE_int), below(g, 6));
    return build_binary(&g->b, OP_and, any_int(g), ir_const_int(g->module, basic(g, TYPE_int), 3));
}

static Val *next_of(Gen *g, Val *counter) {
    return build_binary(&g->b, OP_add, counter,
                        ir_const_int(g->module, basic(g, TYPE_int), 1 + (chance(g, 15) ? 1 : 0)));
}

static void end_iteration(Gen *g, const Inst *loop, Op op, Val *counter, bool counts) {
    Val *args[8];
    if (g->ended) return;
    for (int i = 0; i < loop->nargs; i++) args[i] = operand(g, loop->args[i]->type);
    args[0] = counts ? next_of(g, counter) : counter;
    if (op == OP_yield) build_yield(&g->b, args, loop->nargs);
    else build_continue(&g->b, (Inst *)(uintptr_t)loop, args, loop->nargs);
    g->ended = true;
}

static void gen_carried_loop(Gen *g) {
    bool normal = g->func->flags & FUNC_NORMAL, with_step = !normal && chance(g, 50);
    int extra = below(g, 3);
    Val *initial[4] = {ir_const_int(g->module, basic(g, TYPE_int), below(g, 2))}, *bound = bound_of(g);
    for (int i = 1; i <= extra; i++) initial[i] = operand(g, value_type(g));
    Inst *loop = build_loop(&g->b, initial, extra + 1, with_step);
    if (chance(g, 35)) loop->hints.unroll = chance(g, 70) ? -1 : 2;
    Scope scope = enter(g, loop->regions[0]);
    for (int i = 0; i <= extra; i++) add_val(g, loop->regions[0]->params[i]);
    if (chance(g, 25)) gen_statements(g, 2);
    if (!g->ended) {
        Val *go = build_binary(&g->b, OP_lt, loop->regions[0]->params[0], bound);
        build_yield(&g->b, &go, 1);
    }
    leave(g, scope);
    scope = enter(g, loop->regions[1]);
    for (int i = 0; i <= extra; i++) add_val(g, loop->regions[1]->params[i]);
    if (!normal) vec_push(g->module->arena, &g->targets, loop);
    gen_statements(g, g->options.size);
    end_iteration(g, loop, OP_yield, loop->regions[1]->params[0], !with_step);
    leave(g, scope);
    if (with_step) {
        scope = enter(g, loop->regions[2]);
        for (int i = 0; i <= extra; i++) add_val(g, loop->regions[2]->params[i]);
        if (chance(g, 20)) gen_statements(g, 2);
        end_iteration(g, loop, OP_yield, loop->regions[2]->params[0], true);
        leave(g, scope);
    }
    add_results(g, loop);
}

/* As lowering makes them: the counter is a variable; at times the condition counts. */
static void gen_memory_loop(Gen *g) {
    bool normal = g->func->flags & FUNC_NORMAL, with_step = !normal && chance(g, 70),
         in_condition = chance(g, 20);
    const Type *type = basic(g, TYPE_int);
    Val *counter = build_var(&g->b, type, name(g, "i"), false), *bound = bound_of(g);
    if (chance(g, 50)) build_store(&g->b, counter, ir_const_int(g->module, type, 0));
    Inst *loop = build_loop(&g->b, NULL, 0, with_step);
    Scope scope = enter(g, loop->regions[0]);
    Val *now = build_load(&g->b, counter);
    if (in_condition) build_store(&g->b, counter, next_of(g, now));
    Val *go = build_binary(&g->b, OP_lt, now, bound);
    build_yield(&g->b, &go, 1);
    leave(g, scope);
    scope = enter(g, loop->regions[1]);
    if (!normal && (with_step || in_condition)) vec_push(g->module->arena, &g->targets, loop);
    add_val(g, build_load(&g->b, counter));
    gen_statements(g, g->options.size);
    if (!with_step && !in_condition && !g->ended)
        build_store(&g->b, counter, next_of(g, build_load(&g->b, counter)));
    if (!g->ended) build_yield(&g->b, NULL, 0);
    leave(g, scope);
    if (!with_step) return;
    scope = enter(g, loop->regions[2]);
    if (!in_condition) build_store(&g->b, counter, next_of(g, build_load(&g->b, counter)));
    build_yield(&g->b, NULL, 0);
    leave(g, scope);
}

/* ---- sums whose order is free, as differentiation makes them */

enum { MOST_WHOLE = 1 << 20, MOST_TERM = 512, MOST_ROUNDS = 6 };

static Whole add_whole(Gen *g, Val *v, int most) {
    Whole whole = {v, most};
    named(g, v, "w");
    if (most <= MOST_WHOLE) vec_push(g->module->arena, &g->wholes, whole);
    return whole;
}

static Whole small_whole(Gen *g) {
    const Type *real = basic(g, TYPE_float), *integer = basic(g, TYPE_int);
    int constant = chance(g, 50) ? 0 : below(g, 4);
    if (chance(g, 40)) return (Whole){ir_const_real(g->module, real, constant), constant};
    Val *bits = build_binary(&g->b, OP_and, any_int(g), ir_const_int(g->module, integer, 7));
    return add_whole(g, build_convert(&g->b, bits, real), 7);
}

/* One of no more than that size; recent ones are likelier. */
static Whole any_whole(Gen *g, int most) {
    for (int tries = 0; tries < 8 && g->wholes.count && !chance(g, 10); tries++) {
        int window = chance(g, 60) && g->wholes.count > 6 ? 6 : g->wholes.count;
        Whole whole = g->wholes.at[g->wholes.count - 1 - below(g, window)];
        if (whole.most <= most) return whole;
    }
    return small_whole(g);
}

static Whole free_sum(Gen *g, Whole a, Whole b) {
    bool no_fold = g->b.no_fold;
    g->b.no_fold = true;
    Val *sum = build_binary(&g->b, chance(g, 75) ? OP_add : OP_sub, a.value, b.value);
    g->b.no_fold = no_fold;
    sum->inst->flags |= INST_FREE;
    return add_whole(g, sum, a.most + b.most);
}

/* Of no negative number, which would give a zero its sign. */
static void gen_product(Gen *g) {
    Whole a = any_whole(g, 64), b = any_whole(g, 64);
    Val *x = build_unary(&g->b, OP_abs, a.value), *y = build_unary(&g->b, OP_abs, b.value);
    add_whole(g, build_binary(&g->b, OP_mul, x, y), a.most * b.most);
}

/* Nothing, or all, or a part. */
static void gen_share(Gen *g) {
    const Type *type = basic(g, TYPE_float);
    Whole whole = any_whole(g, MOST_TERM);
    Val *zero = ir_const_real(g->module, type, 0), *one = ir_const_real(g->module, type, 1),
        *two = ir_const_real(g->module, type, 2);
    Val *some = build_select(&g->b, condition(g), zero, whole.value),
        *weight = build_select(&g->b, condition(g), one, two);
    add_whole(g, build_binary(&g->b, OP_mul, some, weight), 2 * whole.most);
}

/* Elements that are known to be there have constant indices, or those of a few bits. */
static Val *whole_place(Gen *g) {
    const Type *type = basic(g, TYPE_int);
    bool is_there = chance(g, 80);
    Val *mask = ir_const_int(g->module, type, 7);
    Val *index = !is_there       ? any_int(g)
                 : chance(g, 60) ? ir_const_int(g->module, type, below(g, 3))
                                 : build_binary(&g->b, OP_and, any_int(g), mask);
    Val *place = build_buffer_elem(&g->b, g->buffer, index, true);
    if (is_there) place->inst->flags |= INST_UNCHECKED;
    return place;
}

static void gen_whole_memory(Gen *g) {
    Val *place = whole_place(g);
    int kind = below(g, 10);
    if (kind < 3) build_store(&g->b, place, small_whole(g).value);
    else if (kind < 5) named(g, build_load(&g->b, place), "e");
    else {
        Val *change[] = {place, any_whole(g, MOST_TERM).value};
        Inst *atomic = build_inst(&g->b, OP_atomic, change, 2, 1, 0);
        atomic->results[0]->type = basic(g, TYPE_float);
        atomic->index = ATOMIC_add;
    }
}

static void gen_wholes(Gen *g, int count);

/* An `if` one way of which often gives constants. */
static void gen_whole_choice(Gen *g) {
    const Type *types[] = {basic(g, TYPE_float), basic(g, TYPE_float)};
    int count = 1 + below(g, 2), most[2] = {0};
    Inst *inst = build_if(&g->b, condition(g), types, count);
    for (int i = 0; i < 2; i++) {
        Scope scope = enter(g, inst->regions[i]);
        bool is_constant = chance(g, 40);
        if (!is_constant) gen_wholes(g, 4);
        Val *args[2];
        for (int k = 0; k < count && !g->ended; k++) {
            Whole whole = {ir_const_real(g->module, types[k], chance(g, 80) ? 0 : 1), 1};
            if (!is_constant && chance(g, 85)) whole = any_whole(g, MOST_WHOLE);
            args[k] = whole.value;
            if (whole.most > most[k]) most[k] = whole.most;
        }
        if (!g->ended) build_yield(&g->b, args, count);
        leave(g, scope);
    }
    for (int k = 0; k < count; k++) add_whole(g, inst->results[k], most[k]);
}

/* Of no more than 64 in size, and a zero without a sign. */
static Val *reduced(Gen *g, Val *v) {
    Val *rest = build_binary(&g->b, OP_rem, v, ir_const_real(g->module, v->type, 64));
    return build_binary(&g->b, OP_add, rest, ir_const_real(g->module, v->type, 0));
}

/* What is handed on is a sum that rounds add to, or something of a limited size. Some loops end by what they
 * compute. */
static void gen_whole_loop(Gen *g) {
    const Type *real = basic(g, TYPE_float), *integer = basic(g, TYPE_int);
    Whole given[2] = {any_whole(g, MOST_TERM), any_whole(g, 64)};
    Val *initial[] = {ir_const_int(g->module, integer, 0), given[0].value, given[1].value}, *args[3];
    Val *bound = bound_of(g);
    Inst *loop = build_loop(&g->b, initial, 3, false);
    loop->hints.ways = chance(g, 50);
    Scope scope = enter(g, loop->regions[0]);
    Val *go = build_binary(&g->b, OP_lt, loop->regions[0]->params[0], bound);
    if (chance(g, 50)) {
        Val *limit = ir_const_real(g->module, real, 5 + below(g, 30));
        go = build_binary(&g->b, OP_and, go, build_binary(&g->b, OP_lt, loop->regions[0]->params[2], limit));
    }
    build_yield(&g->b, &go, 1);
    leave(g, scope);
    scope = enter(g, loop->regions[1]);
    Val *const *params = loop->regions[1]->params;
    add_val(g, params[0]);
    Whole sum = add_whole(g, params[1], given[0].most + MOST_ROUNDS * MOST_TERM);
    add_whole(g, params[2], 64);
    gen_wholes(g, 8);
    if (!g->ended) {
        args[0] = next_of(g, params[0]);
        args[1] = chance(g, 80) ? free_sum(g, sum, any_whole(g, MOST_TERM)).value : sum.value;
        args[2] = reduced(g, any_whole(g, MOST_WHOLE).value);
        build_yield(&g->b, args, 3);
    }
    leave(g, scope);
    add_val(g, loop->results[0]);
    add_whole(g, loop->results[1], sum.most);
    add_whole(g, loop->results[2], 64);
}

static void gen_wholes(Gen *g, int count) {
    int wanted = 1 + below(g, count * 2);
    for (int i = 0; i < wanted && !g->ended; i++) {
        int kind = below(g, 100);
        if (kind < 40) free_sum(g, any_whole(g, MOST_WHOLE / 2), any_whole(g, MOST_WHOLE / 2));
        else if (kind < 50) gen_product(g);
        else if (kind < 55) gen_share(g);
        else if (kind < 65 && g->whole) gen_whole_memory(g);
        else if (kind < 85 && g->depth < g->options.depth + 2) gen_whole_choice(g);
        else if (kind < 90 && g->depth < g->options.depth) gen_whole_loop(g);
        else if (kind < 94) gen_comparison(g);
        else gen_statements(g, 1);
    }
}

/* ---- leaving */

static void gen_return(Gen *g) {
    Val *args[4];
    for (int i = 0; i < g->func->nresults; i++) args[i] = operand(g, g->func->results[i]);
    build_return(&g->b, args, g->func->nresults);
    g->ended = true;
}

static void gen_jump(Gen *g) {
    if (g->func->flags & FUNC_NORMAL || g->depth < 2) return;
    if (g->targets.count == 0 || chance(g, 15)) {
        gen_return(g);
        return;
    }
    Inst *target = g->targets.at[below(g, g->targets.count)];
    Val *args[8];
    if (target->op == OP_loop && chance(g, 50)) {
        if (target->nargs)
            end_iteration(g, target, OP_continue, target->regions[1]->params[0], target->nregions == 2);
        else build_continue(&g->b, target, NULL, 0);
    } else {
        for (int i = 0; i < target->nresults; i++) args[i] = operand(g, target->results[i]->type);
        build_break(&g->b, target, args, target->nresults);
    }
    g->ended = true;
}

/* ---- statements */

static void gen_construct(Gen *g) {
    bool normal = g->func->flags & FUNC_NORMAL;
    if (g->depth >= g->options.depth) return;
    switch (below(g, 6)) {
    case 0:
    case 1: gen_if(g); break;
    case 2: gen_switch(g); break;
    case 3: gen_carried_loop(g); break;
    case 4: gen_memory_loop(g); break;
    default:
        if (normal) gen_if(g);
        else gen_block(g);
    }
}

static void gen_statement(Gen *g) {
    int kind = below(g, 100);
    g->b.no_fold = chance(g, 70);
    if (kind < 22) gen_arithmetic(g);
    else if (kind < 30) gen_comparison(g);
    else if (kind < 35) gen_conversion(g);
    else if (kind < 41) gen_vector(g);
    else if (kind < 44) gen_select(g);
    else if (kind < 46) gen_bits(g);
    else if (kind < 62) gen_memory(g);
    else if (kind < 68) gen_object(g);
    else if (kind < 75) new_var(g, object_type(g));
    else if (kind < 79) gen_effect(g);
    else if (kind < 83) gen_call(g);
    else if (kind < 87 && g->options.free) gen_wholes(g, 8);
    else if (kind < 97) gen_construct(g);
    else gen_jump(g);
}

static void gen_statements(Gen *g, int count) {
    int wanted = count ? 1 + below(g, count * 2) : 0;
    for (int i = 0; i < wanted && !g->ended; i++) gen_statement(g);
}

/* ---- functions */

static void gen_signature(Gen *g) {
    Types *types = &g->session->types;
    const Type *array = type_array(types, basic(g, TYPE_float), 4);
    const struct {
        const char *name;
        const Type *type;
        Dir dir;
    } rows[] = {{"n", basic(g, TYPE_int), DIR_in},
                {"x", basic(g, TYPE_float), DIR_in},
                {"v", type_vector(types, basic(g, TYPE_float), 3), DIR_in},
                {"c", basic(g, TYPE_bool), DIR_in},
                {"large", g->large->type, DIR_inout},
                {"small", g->small->type, DIR_in},
                {"list", array, DIR_inout},
                {"buffer", type_buffer(types, BUFFER_rw_structured, basic(g, TYPE_float)), DIR_in}};
    Param params[8];
    for (int i = 0; i < 8; i++) {
        bool by_address = param_goes_by_address(rows[i].dir, rows[i].type);
        params[i] = (Param){.name = name_from(&g->session->names, rows[i].name),
                            .type = rows[i].type,
                            .dir = (uint8_t)rows[i].dir,
                            .flags = by_address ? PARAM_BY_ADDRESS : 0};
    }
    func_set_params(g->func, params, 8);
    const Type *results[2] = {basic(g, TYPE_float), basic(g, TYPE_int)};
    func_set_results(g->func, results, below(g, 3));
}

/* Shows what there is, then returns. */
static void gen_ending(Gen *g) {
    for (int i = 0; i < 3; i++) gen_print(g);
    for (int i = 0; i < g->objects.count && i < 6; i++) {
        Val *v = build_load(&g->b, walk_into(g, g->objects.at[i], true));
        build_print(g, "end", &v, 1);
    }
    gen_return(g);
}

static void gen_func(Gen *g, const char *func_name) {
    g->func = func_new(g->module, func_name);
    g->func->flags = (chance(g, 40) ? FUNC_NORMAL : 0u) | (chance(g, 20) ? FUNC_INLINE : 0u);
    gen_signature(g);
    g->vals.count = g->objects.count = g->places.count = g->targets.count = g->wholes.count = 0;
    g->depth = 0;
    Region *body = func_begin(g->func);
    g->buffer = body->params[7];
    for (int i = 0; i < 4; i++) add_val(g, body->params[i]);
    for (int i = 4; i < 7; i++) vec_push(g->module->arena, &g->objects, body->params[i]);
    Scope scope = enter(g, body);
    for (int i = 0; i < g->module->globals.count; i++) {
        Val *address = build_global(&g->b, g->module->globals.at[i]);
        vec_push(g->module->arena, &g->objects, address);
    }
    gen_statements(g, g->options.size * 2);
    if (!g->ended) gen_ending(g);
    leave(g, scope);
}

Func *gen_program(ToolSession *session, Random *random, GenOptions options) {
    Gen g = {.session = session, .module = session->module, .random = random, .options = options};
    make_records(&g);
    g.whole = options.free && random_chance(random, 40);
    if (random_chance(random, 50)) {
        global_new(session->module, GLOBAL_static, "counter", type_basic(&session->types, TYPE_int));
        global_new(session->module, GLOBAL_static, "state", g.small->type);
    }
    for (int i = 0; i < options.helpers; i++) {
        gen_func(&g, format_text(&session->arena, "helper%d", i));
        vec_push(session->module->arena, &g.callees, g.func);
    }
    gen_func(&g, "main");
    return g.func;
}
