/* Code to be differentiated numerically: held where derivatives do not flow, and stopped where it would not
 * end.
 *
 * Differences of a function are its derivative only if the function moves as its derivative does. Where the
 * source cuts the derivative (detach, no_diff, a callee that is not differentiable) the function has to stand
 * still: so the first run, at the point itself, records every such value, and the runs beside it take the
 * values from the record, in the same order. What is cut is what autodiff cuts:
 *   - the result of detach, and what a copy under no_diff writes;
 *   - everything that a call returns or writes if no derivative flows through it: a call under no_diff, or of a function
 *     that is not differentiable, or only treated as if it were;
 *   - in any other call, objects of types that are not differentiable, and a result that is not (arguments under no_diff
 *     have been cut by lowering, and what is in a tuple flows, although its functions do not know its type);
 *   - the bits of a number, as an integer;
 *   - what is read from a buffer or by an address in an object that is not one of a variable, if these move: where a function takes references to them.
 * A function whose derivatives the user wrote is not looked into: its derivative is that of all it does.
 *
 * Steps of loops and of recursion are counted, and so is the depth of it; a run that goes too far is ended
 * with abort. Square roots of almost nothing are noted if what they are taken of moves, since the library's
 * derivative is not the true one there: the first run records what it is. Another run has these roots
 * shifted, to tell whether any result depends on them.
 *
 * The record and the counts are memory of the host; a uniform of type HoldState leads to them. */
#include "gradcheck/copy.h"

enum { STEP_LIMIT = 2000000, DEPTH_LIMIT = 1000 };

typedef struct HeldFunc {
    Func *func;
    bool busy;   /* being visited: a call to it is recursion */
    bool values; /* its own derivative is taken: hold values in it */
} HeldFunc;

typedef struct Holder {
    Module *m;
    Map funcs; /* Func -> HeldFunc */
    VEC(HeldFunc *) order;
    Map recursive; /* calls that close a circle */
    bool buffers_move;
    Map keepers; /* Val of a var -> Keeper */
    Global *state;
    Func *value, *step, *enter, *leave, *root; /* made when first needed */
    HeldFunc *current;
} Holder;

/* ---- what flows where */

bool gradcheck_is_derived(const Func *func) {
    if (func->flags & (FUNC_TREAT_AS_DIFF | FUNC_BY_HAND)) return false;
    if (func->flags & FUNC_GENERATED) return true;
    if (func_is_by_hand(func)) return false;
    return (func->flags & (FUNC_FWD | FUNC_BWD)) != 0;
}

static bool is_plain_call(const Inst *call) {
    const Func *callee = call->callee;
    if (inst_has(call, INST_NO_DIFF)) return true;
    bool by_hand = callee->custom.fwd || callee->custom.bwd || (callee->flags & FUNC_BY_HAND);
    return !by_hand && !gradcheck_is_derived(callee);
}

static HeldFunc *held_of(Holder *h, const Func *func) { return map_get(&h->funcs, PTR_KEY(func)); }

static void visit(Holder *h, Func *func);

static void visit_call(void *user, Inst *inst) {
    Holder *h = user;
    if (inst->op != OP_call) return;
    HeldFunc *callee = held_of(h, inst->callee);
    if (!callee) visit(h, inst->callee);
    else if (callee->busy) map_put(h->m->arena, &h->recursive, PTR_KEY(inst), inst);
}

static void visit(Holder *h, Func *func) {
    HeldFunc *held = arena_new(h->m->arena, HeldFunc);
    *held = (HeldFunc){.func = func, .busy = true};
    map_put(h->m->arena, &h->funcs, PTR_KEY(func), held);
    vec_push(h->m->arena, &h->order, held);
    if (func->body) region_walk(func->body, visit_call, h);
    held->busy = false;
}

static void spread(Holder *h, HeldFunc *held);

static void spread_call(void *user, Inst *inst) {
    Holder *h = user;
    if (inst->op == OP_call && !is_plain_call(inst)) spread(h, held_of(h, inst->callee));
}

static void spread(Holder *h, HeldFunc *held) {
    if (held->values || !gradcheck_is_derived(held->func)) return;
    held->values = true;
    if (held->func->body) region_walk(held->func->body, spread_call, h);
}

/* ---- references without derivatives
 *
 * What they lead to moves for the references that have them, so that it cannot be held where it is read. */

typedef struct CutSearch {
    Module *m;
    Map seen;
    bool found;
} CutSearch;

static void search_cuts(CutSearch *search, const Func *func);

/* detach(reference), or one that is passed as no_diff. */
static bool gives_reference(const Inst *call) {
    for (int i = 0; i < call->nargs; i++) {
        const Param *param = &call->callee->params[i];
        bool written = (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in;
        if (written && type_leads_elsewhere(param->type)) return true;
    }
    return false;
}

static bool is_constant_field(CutSearch *search, const Inst *field) {
    const Type *type = ir_target(field->args[0]->type);
    const RecordDiff *rule = ir_record_diff(search->m, type);
    if (!rule->field_map || rule->field_map[field->index] != FIELD_NO_DIFF) return false;
    return type_leads_elsewhere(type_record(type)->fields[field->index].type);
}

static void search_cut(void *user, Inst *inst) {
    CutSearch *search = user;
    if (inst->op == OP_field) search->found |= is_constant_field(search, inst);
    if (inst->op != OP_call) return;
    search->found |= inst_has(inst, INST_NO_DIFF) && gives_reference(inst);
    search_cuts(search, inst->callee);
}

static void search_cuts(CutSearch *search, const Func *func) {
    if (search->found || map_has(&search->seen, PTR_KEY(func))) return;
    map_put(search->m->arena, &search->seen, PTR_KEY(func), search);
    if (func->body) region_walk(func->body, search_cut, search);
}

bool gradcheck_cuts_references(Module *module, const Func *func) {
    CutSearch search = {.m = module};
    search_cuts(&search, func);
    return search.found;
}

/* ---- the state, as code sees it */

static const Type *basic(const Holder *h, TypeKind kind) { return type_basic(h->m->types, kind); }
static Val *int64(const Holder *h, int64_t value) { return ir_const_int(h->m, basic(h, TYPE_int64), value); }

static Global *make_state(Holder *h) {
    Types *types = h->m->types;
    const Type *word = basic(h, TYPE_int64);
    const Field fields[] = {
        {.name = name_from(h->m->names, "values"), .type = type_pointer(types, basic(h, TYPE_double))},
        {.name = name_from(h->m->names, "counts"), .type = type_pointer(types, word)},
        {.name = name_from(h->m->names, "room"), .type = word},
        {.name = name_from(h->m->names, "mode"), .type = word}};
    Record *record = record_new(types, name_from(h->m->names, "HoldState"));
    record->fields = arena_copy(h->m->arena, fields, sizeof fields);
    record->nfields = (int)(sizeof fields / sizeof *fields);
    record->has_diff = true; /* none */
    vec_push(h->m->arena, &h->m->records, record);
    return global_new(h->m, GLOBAL_uniform, "hold.state", record->type);
}

static Val *state_field(const Holder *h, Builder *b, int field) {
    return build_load(b, build_field(b, build_global(b, h->state), field));
}

static Val *count_address(const Holder *h, Builder *b, HoldCount count) {
    return build_offset(b, state_field(h, b, 1), int64(h, count));
}

/* Adds to a count; gives what it was. */
static Val *bump(const Holder *h, Builder *b, HoldCount count, int by) {
    Val *address = count_address(h, b, count), *was = build_load(b, address);
    build_store(b, address, build_binary(b, OP_add, was, int64(h, by)));
    return was;
}

/* Of numbers: those that it takes, and whether it gives one. */
static Func *new_function(Holder *h, const char *name, int nparams, bool has_result) {
    Func *func = func_new(h->m, name);
    const Type *real = basic(h, TYPE_double);
    Param params[] = {{.name = name_from(h->m->names, "x"), .type = real},
                      {.name = name_from(h->m->names, "root"), .type = real}};
    func_set_params(func, params, nparams);
    if (has_result) func_set_results(func, &real, 1);
    func->flags |= FUNC_NOINLINE;
    func_begin(func);
    return func;
}

static void mark_trouble(const Holder *h, Builder *b, HoldTrouble trouble) {
    Val *address = count_address(h, b, HOLD_trouble);
    build_store(b, address, build_binary(b, OP_or, build_load(b, address), int64(h, trouble)));
}

/* ---- hold.value(x): x, recorded; or what was recorded in its place */

static Val *record_or_replay(Holder *h, Builder *b, Val *index, Val *x) {
    const Type *real = basic(h, TYPE_double);
    Val *place = build_offset(b, state_field(h, b, 0), index);
    Inst *either = build_if(b, build_binary(b, OP_ne, state_field(h, b, 3), int64(h, HOLD_record)), &real, 1);
    Builder replay = build_at_end(either->regions[0]), record = build_at_end(either->regions[1]);
    Val *old = build_load(&replay, place);
    build_yield(&replay, &old, 1);
    build_store(&record, place, x);
    build_yield(&record, &x, 1);
    return either->results[0];
}

static Func *value_function(Holder *h) {
    if (h->value) return h->value;
    const Type *real = basic(h, TYPE_double);
    h->value = new_function(h, "hold.value", 1, true);
    Builder b = build_at_end(h->value->body);
    Val *x = h->value->body->params[0], *index = bump(h, &b, HOLD_values, 1);
    Inst *fits = build_if(&b, build_binary(&b, OP_lt, index, state_field(h, &b, 2)), &real, 1);
    Builder inside = build_at_end(fits->regions[0]), beyond = build_at_end(fits->regions[1]);
    Val *held = record_or_replay(h, &inside, index, x);
    build_yield(&inside, &held, 1);
    mark_trouble(h, &beyond, HOLD_too_many);
    build_yield(&beyond, &x, 1);
    build_return(&b, fits->results, 1);
    return h->value;
}

static Val *hold_scalar(Holder *h, Builder *b, Val *x) {
    const Type *type = x->type, *word = basic(h, TYPE_int64), *real = basic(h, TYPE_double);
    x = type_is_float(type) ? build_convert(b, x, real) : build_bitcast(b, build_convert(b, x, word), real);
    x = build_call(b, value_function(h), &x, 1)->results[0];
    return build_convert(b, type_is_float(type) ? x : build_bitcast(b, x, word), type);
}

static Val *hold(Holder *h, Builder *b, Val *x) {
    if (type_is_scalar(x->type)) return hold_scalar(h, b, x);
    int count = type_count(x->type);
    Val **lanes = arena_array(h->m->arena, Val *, count);
    for (int i = 0; i < count; i++) lanes[i] = hold_scalar(h, b, build_extract_lane(b, x, i));
    return build_vec(b, x->type, lanes);
}

static bool is_real(const Type *type) {
    return type_is_float(type) || (type->kind == TYPE_vector && type_is_float(type->args[0]));
}

/* ---- objects in memory */

static void hold_object(Holder *h, Builder *b, Val *at);

static void hold_elements(Holder *h, Builder *b, Val *at) {
    CountLoop loop = build_count(b, 0, type_length(at->type->args[0]));
    hold_object(h, &loop.body, build_elem(&loop.body, at, loop.index, true));
    build_next(&loop);
}

static bool has_reals(const Type *type) {
    if (type->kind == TYPE_array) return has_reals(type->args[0]);
    if (type->kind != TYPE_record) return is_real(type);
    for (int i = 0; i < type_record(type)->nfields; i++)
        if (has_reals(type_record(type)->fields[i].type)) return true;
    return false;
}

static void hold_object(Holder *h, Builder *b, Val *at) {
    const Type *type = at->type->args[0];
    if (!has_reals(type)) return;
    if (type->kind == TYPE_array) hold_elements(h, b, at);
    else if (type->kind != TYPE_record) build_store(b, at, hold(h, b, build_load(b, at)));
    else
        for (int i = 0; i < type_record(type)->nfields; i++) hold_object(h, b, build_field(b, at, i));
}

/* ---- limits */

static void abort_if(Builder *b, Val *condition, Str text) {
    Inst *inst = build_if(b, condition, NULL, 0);
    Builder then = build_at_end(inst->regions[0]), otherwise = build_at_end(inst->regions[1]);
    build_inst(&then, OP_abort, NULL, 0, 0, 0)->text = text;
    build_yield(&then, NULL, 0);
    build_yield(&otherwise, NULL, 0);
}

static Func *step_function(Holder *h);

static Func *counting_function(Holder *h, const char *name, HoldCount count, int limit, Str text) {
    Func *func = new_function(h, name, 0, false);
    Builder b = build_at_end(func->body);
    Val *was = bump(h, &b, count, limit ? 1 : -1);
    if (limit) abort_if(&b, build_binary(&b, OP_lt, int64(h, limit), was), text);
    if (count == HOLD_depth && limit)
        build_call(&b, step_function(h), NULL, 0); /* trees are deep nowhere, but large */
    build_return(&b, NULL, 0);
    return func;
}

static Func *step_function(Holder *h) {
    if (!h->step)
        h->step = counting_function(h, "hold.step", HOLD_steps, STEP_LIMIT, STR("it runs on and on"));
    return h->step;
}

static void count_steps(Holder *h, Inst *loop) {
    Builder b = build_before(loop->regions[0]->last);
    build_call(&b, step_function(h), NULL, 0);
}

static void count_depth(Holder *h, Inst *call) {
    Builder before = build_before(call), after = build_before(call->next);
    if (!h->enter)
        h->enter =
            counting_function(h, "hold.enter", HOLD_depth, DEPTH_LIMIT, STR("it calls itself on and on"));
    if (!h->leave) h->leave = counting_function(h, "hold.leave", HOLD_depth, 0, STR(""));
    build_call(&before, h->enter, NULL, 0);
    build_call(&after, h->leave, NULL, 0);
}

/* ---- square roots */

/* What the root of a small x, which has a place in the record, is taken for. */
static Val *watched_root(Holder *h, Builder *b, Val *place, Val *x, Val *root) {
    const Type *real = root->type;
    Val *moved = build_binary(b, OP_ne, build_load(b, place), x);
    Val *replays = build_binary(b, OP_ne, state_field(h, b, 3), int64(h, HOLD_record));
    Inst *inst = build_if(b, build_binary(b, OP_and, replays, moved), &real, 1);
    Builder then = build_at_end(inst->regions[0]), otherwise = build_at_end(inst->regions[1]);
    mark_trouble(h, &then, HOLD_small_root);
    Val *shifts = build_binary(&then, OP_eq, state_field(h, &then, 3), int64(h, HOLD_shift));
    Val *shifted = build_binary(&then, OP_add, root, ir_const_real(h->m, real, 1e-3));
    shifted = build_select(&then, shifts, shifted, root);
    build_yield(&then, &shifted, 1);
    build_store(&otherwise, place, x);
    build_yield(&otherwise, &root, 1);
    return inst->results[0];
}

/* hold.root(x, root): the root, or, if it moves while it is noted and results are asked whether they depend
 * on it, another. */
static Func *root_function(Holder *h) {
    if (h->root) return h->root;
    const Type *real = basic(h, TYPE_double);
    Func *func = h->root = new_function(h, "hold.root", 2, true);
    Builder b = build_at_end(func->body);
    Val *x = func->body->params[0], *root = func->body->params[1];
    Val *real_root = build_binary(&b, OP_le, ir_const_zero(h->m, real), x),
        *small = build_binary(&b, OP_lt, x, ir_const_real(h->m, real, 1.01e-7));
    Inst *inst = build_if(&b, build_binary(&b, OP_and, real_root, small), &real, 1);
    Builder then = build_at_end(inst->regions[0]), otherwise = build_at_end(inst->regions[1]);
    Val *index = bump(h, &then, HOLD_values, 1);
    Inst *fits = build_if(&then, build_binary(&then, OP_lt, index, state_field(h, &then, 2)), &real, 1);
    Builder inside = build_at_end(fits->regions[0]), beyond = build_at_end(fits->regions[1]);
    Val *watched =
        watched_root(h, &inside, build_offset(&inside, state_field(h, &inside, 0), index), x, root);
    build_yield(&inside, &watched, 1);
    mark_trouble(h, &beyond, HOLD_too_many);
    build_yield(&beyond, &root, 1);
    build_yield(&then, fits->results, 1);
    build_yield(&otherwise, &root, 1);
    build_return(&b, inst->results, 1);
    return func;
}

static void watch_root(Holder *h, Inst *inst) {
    Builder b = build_before(inst);
    Val *x = ir_resolve(inst->args[0]), *root = build_unary(&b, OP_sqrt, x);
    int count = type_count(x->type);
    Val **lanes = arena_array(h->m->arena, Val *, count);
    for (int i = 0; i < count; i++) {
        bool vector = x->type->kind == TYPE_vector;
        Val *args[] = {vector ? build_extract_lane(&b, x, i) : x,
                       vector ? build_extract_lane(&b, root, i) : root};
        lanes[i] = build_call(&b, root_function(h), args, 2)->results[0];
    }
    inst->results[0]->forward = x->type->kind == TYPE_vector ? build_vec(&b, x->type, lanes) : lanes[0];
    inst_remove(inst);
}

/* ---- instructions */

static void replace_held(Holder *h, Inst *inst, Val *x) {
    Builder b = build_before(inst);
    inst->results[0]->forward = hold(h, &b, x);
    inst_remove(inst);
}

static bool is_diff_type(const Holder *h, const Type *type) {
    if (type->kind == TYPE_array) return is_diff_type(h, type->args[0]);
    if (type->kind != TYPE_record) return is_real(type);
    return ir_record_diff(h->m, type)->differential != NULL;
}

/* Can a derivative go through it? */
static bool is_open(const Holder *h, const Param *param) {
    return (param->flags & PARAM_DIFF) || is_diff_type(h, param->type);
}

/* Derivatives do not enter through this parameter: it is an object of a type that has none. */
static void hold_argument(Holder *h, Inst *call, int index) {
    const Param *param = &call->callee->params[index];
    if (param->dir == DIR_out || !has_reals(param->type)) return;
    Val *object = ir_resolve(call->args[index]);
    Builder b = build_before(call);
    if (param->dir == DIR_in) { /* the caller's own stays as it is */
        Val *given = object;
        object = call->args[index] = build_var(&b, param->type, param->name, true);
        build_copy(&b, object, given);
    }
    hold_object(h, &b, object);
}

/* What a call returns, held: the call is made anew, and the old results are replaced. */
static Inst *hold_results(Holder *h, Inst *call) {
    Builder b = build_before(call);
    Inst *again = build_call(&b, call->callee, call->args, call->nargs);
    again->flags = call->flags & INST_NO_DIFF;
    for (int i = 0; i < call->nresults; i++) {
        Val *result = again->results[i];
        call->results[i]->forward = is_real(result->type) ? hold(h, &b, result) : result;
    }
    inst_remove(call);
    return again;
}

/* Memory that a call writes and that no derivative flows into. */
static void hold_outputs(Holder *h, Inst *call) {
    Builder b = build_before(call->next);
    for (int i = 0; i < call->nargs; i++) {
        const Param *param = &call->callee->params[i];
        bool written = (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in;
        bool flows = is_open(h, param) && !is_plain_call(call);
        if (written && !flows) hold_object(h, &b, ir_resolve(call->args[i]));
    }
}

static void hold_call(Holder *h, Inst *call) {
    bool recursive = map_has(&h->recursive, PTR_KEY(call)), plain = is_plain_call(call);
    bool generated = (call->callee->flags & FUNC_GENERATED) != 0; /* everything flows through these */
    if (h->current->values && (plain || !generated)) {
        for (int i = 0; i < call->nargs && !plain; i++)
            if (!is_open(h, &call->callee->params[i])) hold_argument(h, call, i);
        hold_outputs(h, call);
        bool flows = !plain && (call->callee->flags & FUNC_RESULT_DIFF);
        if (call->nresults && !flows) call = hold_results(h, call);
    }
    if (recursive) count_depth(h, call);
}

/* ---- addresses that are kept in variables */

static bool is_var(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_var; }

typedef struct Keeper {
    Holder *h;
    const Val *var;
    bool is_home; /* all that it keeps are addresses of variables */
} Keeper;

static bool keeps_own(Holder *h, const Val *var);

static bool is_own(Holder *h, Val *address) {
    const Val *root = ir_root(address);
    if (val_is_const(root) || is_var(root)) return true;
    const Inst *inst = root->kind == VAL_inst ? root->inst : NULL;
    if (!inst) return false;
    if (inst->op == OP_select) return is_own(h, inst->args[1]) && is_own(h, inst->args[2]);
    if (inst->op == OP_load) return is_var(ir_root(inst->args[0])) && keeps_own(h, ir_root(inst->args[0]));
    bool own = inst->op == OP_if;
    for (int i = 0; i < inst->nregions && own; i++)
        own = inst->regions[i]->last->op == OP_yield && is_own(h, inst->regions[i]->last->args[root->index]);
    return own;
}

static void look_at_use(void *user, Inst *inst) {
    Keeper *k = user;
    for (int i = 0; i < inst->nargs && k->is_home; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || ir_root(inst->args[i]) != k->var) continue;
        if (inst->op == OP_store && i == 0)
            k->is_home = inst->args[1]->type->kind != TYPE_pointer || is_own(k->h, inst->args[1]);
        else if (inst->op == OP_copy && i == 0)
            k->is_home = is_var(ir_root(inst->args[1])) && keeps_own(k->h, ir_root(inst->args[1]));
        else k->is_home = role == ROLE_read || role == ROLE_part || role == ROLE_move || inst->op == OP_zero;
    }
}

/* While it is asked about, it is taken for one that does. */
static bool keeps_own(Holder *h, const Val *var) {
    Keeper *known = map_get(&h->keepers, PTR_KEY(var));
    if (known) return known->is_home;
    Keeper *k = arena_new(h->m->arena, Keeper);
    *k = (Keeper){.h = h, .var = var, .is_home = true};
    map_put(h->m->arena, &h->keepers, PTR_KEY(var), k);
    region_walk(h->current->func->body, look_at_use, k);
    return k->is_home;
}

/* Memory of others: an element of a buffer, or what an address that was kept in an object leads to, unless
 * all of these are of variables. */
static bool is_elsewhere(Holder *h, Val *address) {
    const Val *root = ir_root(address);
    if (root->kind != VAL_inst) return false;
    bool is_kept = root->inst->op == OP_load || root->inst->op == OP_select || root->inst->op == OP_if;
    return root->inst->op == OP_buffer_elem || root->inst->op == OP_buffer_bytes ||
           (is_kept && !is_own(h, address));
}

static void hold_read(Holder *h, Inst *inst) {
    if (inst->op == OP_copy) {
        Builder after = build_before(inst->next);
        if (is_elsewhere(h, inst->args[1])) hold_object(h, &after, ir_resolve(inst->args[0]));
    } else if (is_real(inst->results[0]->type) && is_elsewhere(h, inst->args[0])) {
        Builder before = build_before(inst);
        replace_held(h, inst, build_load(&before, ir_resolve(inst->args[0])));
    }
}

static bool takes_references(const Func *func) {
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_PTR_DIFF) return true;
    return false;
}

static void hold_region(Holder *h, Region *region);

static void hold_inst(Holder *h, Inst *inst) {
    bool values = h->current->values;
    for (int i = 0; i < inst->nregions; i++) hold_region(h, inst->regions[i]);
    switch ((Op)inst->op) {
    case OP_detach:
        if (values && is_real(inst->results[0]->type)) replace_held(h, inst, ir_resolve(inst->args[0]));
        break;
    case OP_copy:
        if (values && inst_has(inst, INST_NO_DIFF)) {
            Builder b = build_before(inst->next);
            hold_object(h, &b, ir_resolve(inst->args[0]));
        } else if (values && h->buffers_move) hold_read(h, inst);
        break;
    case OP_load:
        if (values && h->buffers_move) hold_read(h, inst);
        break;
    case OP_bitcast:
        if (values && is_real(ir_resolve(inst->args[0])->type) && !is_real(inst->results[0]->type)) {
            Builder b = build_before(inst);
            Val *bits = build_bitcast(&b, ir_resolve(inst->args[0]), inst->results[0]->type);
            replace_held(h, inst, bits);
        }
        break;
    case OP_sqrt:
        if (values) watch_root(h, inst);
        break;
    case OP_call: hold_call(h, inst); break;
    case OP_loop: count_steps(h, inst); break;
    default: break;
    }
}

static void hold_region(Holder *h, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        hold_inst(h, inst);
    }
}

Global *gradcheck_hold(Module *module, Func *const *roots, int nroots) {
    Holder h = {.m = module};
    h.state = make_state(&h);
    for (int i = 0; i < nroots; i++) h.buffers_move |= takes_references(roots[i]);
    for (int i = 0; i < nroots; i++)
        if (!held_of(&h, roots[i])) visit(&h, roots[i]);
    for (int i = 0; i < nroots; i++) spread(&h, held_of(&h, roots[i]));
    for (int i = 0; i < h.order.count; i++) {
        h.current = h.order.at[i];
        if (!h.current->func->body) continue;
        hold_region(&h, h.current->func->body);
        h.current->func->flags &= ~(uint32_t)(FUNC_PURE | FUNC_HARMLESS);
        ir_resolve_func(h.current->func);
    }
    return h.state;
}
