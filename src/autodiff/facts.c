/* Facts about functions: is it recursive, does it have derivatives of the user, effects?
 *
 * A fact holds of a function if something in its body shows it, or if it holds of a function that it calls.
 * The search goes through all that can be reached, so that functions which call each other in a circle get
 * the same answer. What a search without success has seen is known from then on, and so is what led to
 * success. */
#include "autodiff/ad.h"

typedef struct Search {
    Ad *ad;
    AdFact fact;
    const AdFunc *in; /* whose body is searched */
    Map seen;         /* AdFunc -> itself */
    bool found;
} Search;

static bool is_new(Search *search, AdFunc *f) {
    if (search->found || map_has(&search->seen, PTR_KEY(f))) return false;
    map_put(search->ad->arena, &search->seen, PTR_KEY(f), f);
    return true;
}

/* What derivatives call there. */
static AdFunc *substitute_of(Ad *ad, const Inst *call) { return ad_plan_call(ad, call, AD_bwd).callee; }

/* ---- recursion
 *
 * Functions that reach each other are recursive. One search settles all that it comes by: a function stays open until nothing that was
 * entered after it, and is open as well, leads to one that was entered before it. What is open then leads back to it. */

typedef VEC(AdFunc *) AdFuncs;

typedef struct Circles {
    Ad *ad;
    AdFunc *from; /* whose calls are followed */
    AdFuncs *open;
} Circles;

static void follow_calls(Ad *ad, AdFuncs *open, AdFunc *f);

static void follow_callee(const Circles *circles, AdFunc *callee) {
    AdFunc *from = circles->from;
    if (callee == from) from->recursive = ANSWER_yes;
    if (!callee->open && !callee->recursive) follow_calls(circles->ad, circles->open, callee);
    if (callee->open && callee->leads_to < from->leads_to) from->leads_to = callee->leads_to;
}

/* To the function itself, and to what is called in its place. */
static void follow_call(void *user, Inst *inst) {
    Circles *circles = user;
    if (inst->op != OP_call || inst_has(inst, INST_NO_DIFF)) return; /* such a call is not reversed */
    AdFunc *callee = ad_func(circles->ad, inst->callee), *substitute = substitute_of(circles->ad, inst);
    follow_callee(circles, callee);
    if (substitute != callee) follow_callee(circles, substitute);
}

static void settle(AdFuncs *open, AdFunc *f) {
    int first = f->open;
    bool is_circle = open->count > first;
    while (open->count >= first) {
        AdFunc *member = vec_pop(open);
        if (is_circle) member->recursive = ANSWER_yes;
        else if (!member->recursive) member->recursive = ANSWER_no;
        member->open = 0;
    }
}

static void follow_calls(Ad *ad, AdFuncs *open, AdFunc *f) {
    Circles circles = {ad, f, open};
    vec_push(ad->arena, open, f);
    f->open = f->leads_to = open->count;
    if (f->source) ad_fill(ad, f, f->normal);
    if (f->flat->body) region_walk(f->flat->body, follow_call, &circles);
    if (f->leads_to == f->open) settle(open, f);
}

bool ad_is_recursive(Ad *ad, AdFunc *f) {
    AdFuncs open = {0};
    if (f->general) return ad_is_recursive(ad, f->general);
    if (!f->recursive) follow_calls(ad, &open, f);
    return f->recursive == ANSWER_yes;
}

/* ---- effects */

bool ad_is_object(Val *address) {
    const Val *root = ad_root(address);
    if (!root || root->kind != VAL_param || root->region->owner) return root;
    return root->region->func->params[root->index].flags & PARAM_BY_ADDRESS;
}

static bool has_own_effect(const Inst *inst) {
    if (op_has(inst->op, OP_EFFECT)) return true;
    return op_has(inst->op, OP_WRITES) && (!op_has(inst->op, OP_PLAIN) || !ad_is_object(inst->args[0]));
}

/* Numbers of buffers, of globals, of what a pointer leads to: they may have derivatives that only the source
 * knows of. */
static bool reads_elsewhere(Ad *ad, const Inst *inst) {
    if (!op_has(inst->op, OP_READS)) return false;
    Val *from = inst->args[op_has(inst->op, OP_TWO_OBJECTS) ? 1 : 0];
    const Type *type = ir_target(from->type);
    const Val *root = ir_root(from);
    bool is_global = root->kind == VAL_inst && root->inst->op == OP_global;
    if (!type || !ad_differential(ad, type) || ad_is_object(from)) return false;
    return !is_global || root->inst->global->kind != GLOBAL_const;
}

static bool looks_around(const Inst *inst) {
    if (!op_has(inst->op, OP_READS)) return false;
    Val *from = inst->args[op_has(inst->op, OP_TWO_OBJECTS) ? 1 : 0];
    return !ad_is_object(from) && !ad_is_steady(ir_root(from), false);
}

/* A derivative that is used as a constant; NULL: it is no call of one. It may be made later, as it may need
 * what is being made now: nobody looks at its body. */
static Func *constant_derivative(Ad *ad, const Inst *call) {
    Func *source = inst_has(call, INST_NO_DIFF) ? ad_func(ad, call->callee)->source : NULL;
    return source && source->derivation.of ? source : NULL;
}

bool ad_inst_has_effects(Ad *ad, const Inst *inst) {
    if (inst->op != OP_call) return has_own_effect(inst);
    Func *constant = constant_derivative(ad, inst);
    if (constant) return ad_reaches_elsewhere(ad, constant);
    return ad_has(ad, ad_func(ad, inst->callee), AD_effects) ||
           ad_has(ad, substitute_of(ad, inst), AD_effects);
}

/* ---- derivatives of the user */

/* A function whose only output is memory may receive gradients from there. One that computes results and
 * nothing else has nothing to pass back if they are not used. */
static bool takes_gradients(Ad *ad, AdFunc *f) {
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].diff && f->leaves.at[i].dir != DIR_in) return ad_has(ad, f, AD_effects);
    return true;
}

bool ad_is_sink(Ad *ad, const CallPlan *plan) {
    if (plan->kind == CALL_custom) return takes_gradients(ad, plan->callee);
    return plan->kind == CALL_derived && ad_has(ad, plan->callee, AD_sinks);
}

static bool gives_derivatives(const AdFunc *f) {
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        bool writes = leaf->out >= 0 || (leaf->in >= 0 && f->flat->params[leaf->in].dir != DIR_in);
        if (leaf->diff && writes) return true;
    }
    return false;
}

bool ad_is_unmarked_custom(Ad *ad, const AdFunc *caller, const CallPlan *plan) {
    const Func *custom = plan->callee->source, *from = caller->source;
    if (plan->kind != CALL_plain || !custom || (custom->flags & FUNC_TREAT_AS_DIFF)) return false;
    bool is_generated = !from || from->derivation.of || (from->flags & FUNC_GENERATED);
    return is_generated && map_get(&ad->customs, PTR_KEY(custom)) == custom &&
           gives_derivatives(plan->callee);
}

/* ---- what a reverse pass reads and writes through references */

/* As lowered from DifferentialPtrPair: a reference and its counterpart; a view, which has more of these. */
static bool is_pair_of_references(Ad *ad, const Type *type) {
    if (type->kind != TYPE_record || type_record(type)->is_view) return type->kind == TYPE_record;
    if (type_record(type)->nfields != 2) return false;
    const Field *fields = type_record(type)->fields;
    return fields[1].type == ad_counterpart(ad, fields[0].type);
}

enum { MOST_NESTED = 4 }; /* functions that call each other; what is nested deeper may be recursive */

typedef struct Visit {
    Ad *ad;
    AdFunc *f;
    const struct Visit *outer; /* NULL: f is a backward derivative that the user wrote */
    const Inst *call;          /* of f, in the outer one */
    int depth;
    bool found;
} Visit;

static Visit called(const Visit *x, const Inst *call) {
    return (Visit){
        .ad = x->ad, .f = ad_func(x->ad, call->callee), .outer = x, .call = call, .depth = x->depth + 1};
}

typedef enum Side { SIDE_neither, SIDE_pointer, SIDE_counterpart } Side; /* a buffer stays as it is */

/* Does the address lead into what a pointer, or the counterpart of a reference, refers to? Perhaps by way of
 * an argument. */
static Side side_of(const Visit *x, Val *address) {
    const AdFunc *f = x->f;
    Val *root = ir_root(address);
    if (root->kind == VAL_inst && root->inst->op == OP_buffer_elem) root = root->inst->args[0];
    if (root->kind != VAL_param || root->region != f->flat->body) return SIDE_neither;
    if (x->outer) return side_of(x->outer, x->call->args[root->index]);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in != root->index || leaf->by_ref || leaf->npath == 0) continue;
        if (!is_pair_of_references(x->ad, f->source->params[leaf->param].type)) return SIDE_neither;
        if (leaf->path[0] > 0) return SIDE_counterpart;
        return leaf->type->kind == TYPE_pointer ? SIDE_pointer : SIDE_neither;
    }
    return SIDE_neither;
}

/* What cannot be seen is taken for found. */
static bool is_in_body(Visit *x, void (*search)(void *user, Inst *inst)) {
    AdFunc *f = x->f;
    if (!f->source || x->depth == MOST_NESTED) return true;
    ad_fill(x->ad, f, f->normal);
    if (!f->flat->body) return true;
    region_walk(f->flat->body, search, x);
    return x->found;
}

static void search_writes(void *user, Inst *inst) {
    Visit *x = user;
    if (x->found || !ad_inst_has_effects(x->ad, inst)) return;
    if (inst->op == OP_call) {
        Visit inside = called(x, inst);
        x->found = inst->callee != inside.f->flat || is_in_body(&inside, search_writes);
    } else x->found = op_has(inst->op, OP_EFFECT) || side_of(x, inst->args[0]) != SIDE_counterpart;
}

/* A backward derivative of the user, which may write anything, such as the parameters of a model that learns
 * as it goes. */
static bool writes_elsewhere(Ad *ad, Func *custom) {
    Visit x = {.ad = ad, .f = ad_func(ad, custom)};
    return is_in_body(&x, search_writes);
}

static void search_reads(void *user, Inst *inst) {
    Visit *x = user;
    bool calls = inst->op == OP_call;
    for (int i = 0; i < inst->nargs && !x->found && (calls || op_has(inst->op, OP_READS)); i++) {
        Val *arg = inst->args[i];
        if (arg->type->kind != TYPE_pointer || side_of(x, arg) != SIDE_pointer) continue;
        Visit inside = calls ? called(x, inst) : *x;
        x->found = calls ? inst->callee != inside.f->flat || is_in_body(&inside, search_reads)
                         : ir_role(inst, i) != ROLE_write;
    }
}

bool ad_reads_primal(Ad *ad, Func *custom) {
    Visit x = {.ad = ad, .f = ad_func(ad, custom)};
    return is_in_body(&x, search_reads);
}

/* ---- variables that addresses lead into */

typedef struct Objects {
    Ad *ad;
    Map seen;
    ValVec *found;
    bool is_handed_on; /* by a branch or loop */
} Objects;

static void find_objects(Objects *x, Val *address) {
    Val *root = ir_root(address);
    if (map_has(&x->seen, PTR_KEY(root))) return;
    map_put(x->ad->arena, &x->seen, PTR_KEY(root), x);
    const Inst *from = root->kind == VAL_inst    ? root->inst
                       : root->kind == VAL_param ? root->region->owner
                                                 : NULL;
    if (from && from->op == OP_select) {
        find_objects(x, inst_operand(from, 1));
        find_objects(x, inst_operand(from, 2));
    } else if (from && from->nregions) {
        x->is_handed_on = true;
        if (from->op == OP_loop) find_objects(x, inst_operand(from, root->index));
        for (int i = from->op == OP_loop; i < from->nregions; i++)
            if (from->regions[i]->last->op == OP_yield)
                find_objects(x, inst_operand(from->regions[i]->last, root->index));
    } else if (ad_is_object(root)) vec_push(x->ad->arena, x->found, root);
}

bool ad_find_objects(Ad *ad, Val *address, ValVec *objects) {
    Objects x = {.ad = ad, .found = objects};
    find_objects(&x, address);
    return !x.is_handed_on || objects->count == 0;
}

/* ---- calls that only read */

bool ad_gives_object(const Inst *call, int arg) {
    const Param *param = &call->callee->params[arg];
    return (param->flags & PARAM_BY_ADDRESS) && param->dir == DIR_out;
}

typedef struct Reading {
    Ad *ad;
    bool steady;
    int cost, depth;
} Reading;

static int cost_of_reading(const Reading *outer, const Inst *call);

bool ad_is_steady(const Val *root, bool buffers_are) {
    if (root->kind != VAL_inst) return false;
    const Inst *inst = root->inst;
    if (inst->op == OP_global)
        return inst->global->kind == GLOBAL_const || inst->global->kind == GLOBAL_uniform;
    if (inst->op != OP_buffer_elem && inst->op != OP_buffer_bytes) return false;
    return buffers_are || type_is_read_only(inst->args[0]->type);
}

/* In a variable, or in what the function gives. */
static bool is_own_object(Val *address) {
    const Val *root = ir_root(address);
    if (root->kind == VAL_inst) return root->inst->op == OP_var;
    return ad_is_object(address) && !root->region->owner &&
           root->region->func->params[root->index].dir == DIR_out;
}

static int cost_of_read(const Reading *reading, Val *address) {
    const Val *root = ir_root(address);
    if (root->kind == VAL_inst ? root->inst->op == OP_var : ad_is_object(address)) return 0;
    return ad_is_steady(root, reading->steady) ? 1 : AD_NEVER;
}

static int cost_of_access(const Reading *reading, const Inst *inst) {
    int total = inst->op == OP_call ? cost_of_reading(reading, inst) : 0;
    for (int i = 0; i < inst->nargs && total < AD_NEVER; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_write && !is_own_object(inst->args[i])) return AD_NEVER;
        if (role == ROLE_read && inst->op != OP_call) total += cost_of_read(reading, inst->args[i]);
    }
    return total;
}

/* Finding out where to read is free: the reverse must know as well where to add, and indices are not worth
 * keeping. */
static void add_reading(void *user, Inst *inst) {
    Reading *reading = user;
    int cost = 0;
    if (reading->cost == AD_NEVER) return; /* calls in calls in calls are many */
    if (inst->op == OP_call || inst->op == OP_store || inst->op == OP_load || inst->op == OP_copy)
        cost = cost_of_access(reading, inst);
    else if (inst->op == OP_var || inst->op == OP_return) cost = 0;
    else if (!op_has(inst->op, OP_PURE) || inst->nregions) cost = AD_NEVER;
    else if (type_is_float(inst->results[0]->type)) cost = op_info[inst->op].cost;
    reading->cost += cost;
    if (reading->cost > AD_NEVER) reading->cost = AD_NEVER;
}

static int cost_of_reading(const Reading *outer, const Inst *call) {
    if (constant_derivative(outer->ad, call)) return AD_NEVER;
    AdFunc *callee = substitute_of(outer->ad, call);
    if (callee->source) ad_fill(outer->ad, callee, callee->normal);
    bool flat = callee->flat->body && call->callee == callee->flat;
    if (!flat || outer->depth == MOST_NESTED) return AD_NEVER;
    for (int i = 0; i < call->nargs; i++) {
        Role role = ir_role(call, i);
        if (role == ROLE_share || (role == ROLE_write && !ad_gives_object(call, i))) return AD_NEVER;
    }
    Reading reading = {.ad = outer->ad, .steady = outer->steady, .depth = outer->depth + 1};
    region_walk(callee->flat->body, add_reading, &reading);
    return reading.cost;
}

int ad_cost_of_reading(Ad *ad, const Inst *call, bool steady) {
    Reading reading = {.ad = ad, .steady = steady};
    return cost_of_reading(&reading, call);
}

/* ---- the search */

static void search_body(Search *search, AdFunc *f);

static bool takes_plain_pointer(const CallPlan *plan) {
    const Leaves *leaves = &plan->callee->leaves;
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].type->kind == TYPE_pointer && !leaves->at[i].dual && !leaves->at[i].by_ref)
            return true;
    return false;
}

static void search_plan(Search *search, const CallPlan *plan, AdMode mode) {
    if (plan->kind == CALL_derived) search_body(search, plan->callee);
    if (search->fact == AD_sources && ad_is_unmarked_custom(search->ad, search->in, plan))
        search->found |= ad_has(search->ad, plan->callee, AD_reads);
    if (plan->kind != CALL_custom || search->fact == AD_substitutes) return;
    if (search->fact == AD_disturbs) {
        search->found |= writes_elsewhere(search->ad, plan->custom);
        return;
    }
    if (search->fact == AD_looks_back) {
        search->found |= takes_plain_pointer(plan) || ad_reads_primal(search->ad, plan->custom);
        return;
    }
    search->found |= search->fact == AD_sources || (mode == AD_bwd && ad_is_sink(search->ad, plan));
}

static void search_inst(void *user, Inst *inst) {
    Search *search = user;
    bool effects = search->fact == AD_effects || search->fact == AD_disturbs,
         reads = search->fact == AD_reads || search->fact == AD_looks_around;
    search->found |= effects && has_own_effect(inst);
    search->found |= search->fact == AD_reads && reads_elsewhere(search->ad, inst);
    search->found |= search->fact == AD_looks_around && looks_around(inst);
    if (inst->op != OP_call || search->found) return;
    Func *constant = constant_derivative(search->ad, inst);
    if (constant) {
        search->found = (effects || reads) && ad_reaches_elsewhere(search->ad, constant);
        return;
    }
    if (search->fact == AD_effects || reads) {
        search_body(search, ad_func(search->ad, inst->callee));
        search_body(search, substitute_of(search->ad, inst));
        return;
    }
    if (search->fact == AD_disturbs) search->found = ad_inst_has_effects(search->ad, inst);
    if (search->fact == AD_substitutes)
        search->found = substitute_of(search->ad, inst) != ad_func(search->ad, inst->callee);
    bool any_mode = search->fact == AD_sources || search->fact == AD_substitutes;
    for (int mode = any_mode ? AD_fwd : AD_bwd; mode <= AD_bwd && !inst_has(inst, INST_NO_DIFF); mode++) {
        CallPlan plan = ad_plan_call(search->ad, inst, (AdMode)mode);
        search_plan(search, &plan, (AdMode)mode);
    }
}

static void search_body(Search *search, AdFunc *f) {
    Answer known = f->facts[search->fact];
    search->found |= known == ANSWER_yes;
    if (known || !is_new(search, f)) return;
    ad_fill(search->ad, f, search->fact != AD_effects || f->normal);
    const AdFunc *outer = search->in;
    search->in = f;
    if (f->flat->body) region_walk(f->flat->body, search_inst, search);
    search->in = outer;
    if (search->found) f->facts[search->fact] = ANSWER_yes; /* it leads there */
}

bool ad_has(Ad *ad, AdFunc *f, AdFact fact) {
    if (f->facts[fact]) return f->facts[fact] == ANSWER_yes;
    Search search = {.ad = ad, .fact = fact};
    search_body(&search, f);
    for (int i = 0; i < search.seen.count && !search.found; i++)
        ((AdFunc *)search.seen.entries[i].value)->facts[fact] = ANSWER_no;
    return search.found;
}
