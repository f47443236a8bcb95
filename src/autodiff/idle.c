/* Idle: does a round of a reversed loop change anything, where branches of it go a certain way?
 *
 * Where a round of the primal went past something, the adjoints of that are zero; so is what is computed of
 * them, whatever they are multiplied by, and to add that changes nothing. Also in what is called, such as the
 * derivative of an accessor, which puts adjoints into an object and adds that to a buffer. What else it may
 * do, to print something say, is no sum, and not idle. */
#include "autodiff/ad.h"

enum {
    MOST_CALLS = 8,    /* in each other, that are looked into */
    MOST_STEPS = 20000 /* instructions that are looked at, for one way */
};

typedef struct Idle {
    Ad *ad;
    Arena *scratch;
    const Inst *loop; /* NULL: it is a function that is looked at */
    const Way *ways;
    int nways, depth;
    int *steps;       /* left */
    Map zeros;        /* values; memory that a parameter is the address of */
    Map same;         /* value -> another that it equals */
    Map own;          /* parameters that are addresses of what is gone when the round ends */
    Map dirty;        /* addresses of objects in which there is something else than zeros */
    bool *gives_zero; /* by result of a function */
    bool is_idle;
} Idle;

static void visit_region(Idle *x, const Region *region);

/* ---- values and memory */

static Val *now(const Idle *x, Val *v) {
    v = ir_resolve(v);
    Val *other = map_get(&x->same, PTR_KEY(v));
    return other ? other : v;
}

static void put(const Idle *x, Map *map, const Val *v, Val *to) { map_put(x->scratch, map, PTR_KEY(v), to); }

static bool is_zero(const Idle *x, Val *v) {
    v = now(x, v);
    if (!type_is_float(type_element(v->type))) return false;
    return val_is_const(v) ? val_is_zero(v) : map_has(&x->zeros, PTR_KEY(v));
}

static bool are_zero(const Idle *x, const Inst *inst, int first) {
    for (int i = first; i < inst->nargs; i++)
        if (!is_zero(x, inst->args[i])) return false;
    return true;
}

/* Does nobody else see the object? */
static bool is_own(const Idle *x, const Val *root) {
    bool is_var = root->kind == VAL_inst && root->inst->op == OP_var;
    return is_var ? !x->loop || inst_contains(x->loop, root) : map_has(&x->own, PTR_KEY(root));
}

static bool is_blank(const Idle *x, Val *address) {
    const Val *root = ir_root(address);
    if (map_has(&x->dirty, PTR_KEY(root))) return false;
    return is_own(x, root) || map_has(&x->zeros, PTR_KEY(root));
}

/* Something is written that is not known to be zero, unless it is. */
static void write_to(Idle *x, Val *address, bool is_zero) {
    Val *root = ir_root(address);
    x->is_idle &= is_own(x, root);
    if (!is_zero) put(x, &x->dirty, root, root);
}

/* ---- instructions */

static bool may_write(const Inst *inst) {
    return inst->op == OP_call || op_has(inst->op, OP_WRITES | OP_EFFECT);
}

/* Is what is stored what was there? */
static bool changes_nothing(const Idle *x, const Inst *store) {
    const Val *v = now(x, store->args[1]);
    const Inst *load = v->kind == VAL_inst && v->inst->op == OP_load ? v->inst : NULL;
    if (!load || load->parent != store->parent ||
        !val_is_same(ir_resolve(load->args[0]), ir_resolve(store->args[0])))
        return false;
    for (const Inst *at = load; at != store; at = at->next)
        if (!at || may_write(at) || at->nregions) return false;
    return true;
}

static void visit_store(Idle *x, const Inst *inst) {
    if (!changes_nothing(x, inst)) write_to(x, inst->args[0], is_zero(x, inst->args[1]));
}

static void compute(Idle *x, const Inst *inst) {
    bool first = inst->nargs > 0 && is_zero(x, inst->args[0]),
         second = inst->nargs > 1 && is_zero(x, inst->args[1]);
    bool is_all = false;
    switch ((Op)inst->op) {
    case OP_add:
    case OP_sub:
        is_all = first && second;
        if (!is_all && second) put(x, &x->same, inst->results[0], now(x, inst->args[0]));
        else if (!is_all && first && inst->op == OP_add)
            put(x, &x->same, inst->results[0], now(x, inst->args[1]));
        break;
    case OP_mul:
    case OP_scale: is_all = first || second; break;
    case OP_div:
    case OP_ratio:
    case OP_extract: is_all = first; break;
    case OP_fma: is_all = (first || second) && is_zero(x, inst->args[2]); break;
    case OP_select: is_all = are_zero(x, inst, 1); break;
    case OP_neg:
    case OP_convert:
    case OP_detach:
    case OP_splat:
    case OP_vec:
    case OP_shuffle: is_all = are_zero(x, inst, 0); break;
    default: break;
    }
    if (is_all && type_is_float(type_element(inst->results[0]->type)))
        put(x, &x->zeros, inst->results[0], inst->results[0]);
}

/* ---- calls */

static bool is_passed_before(const Inst *call, int index) {
    const Val *root = ir_root(call->args[index]);
    for (int i = 0; i < index; i++)
        if (call->args[i]->type->kind == TYPE_pointer && ir_root(call->args[i]) == root) return true;
    return false;
}

static void pass_arguments(const Idle *x, const Inst *call, Idle *in) {
    for (int i = 0; i < call->nargs; i++) {
        Val *arg = call->args[i], *param = call->callee->body->params[i];
        bool by_address = (call->callee->params[i].flags & PARAM_BY_ADDRESS) != 0;
        if (by_address ? is_blank(x, arg) : is_zero(x, arg)) put(in, &in->zeros, param, param);
        if (!by_address || !is_own(x, ir_root(arg))) continue;
        put(in, &in->own, param, param);
        in->is_idle &= !is_passed_before(call, i);
        if (!is_blank(x, arg)) put(in, &in->dirty, param, param);
    }
}

static void visit_call(Idle *x, const Inst *call) {
    Func *callee = call->callee;
    if (!callee->derivation.of) ad_complete(x->ad, callee); /* a derivative may need what is being made */
    if (!callee->body || x->depth == MOST_CALLS) {
        x->is_idle = false;
        return;
    }
    Idle in = {.ad = x->ad, .scratch = x->scratch, .depth = x->depth + 1, .steps = x->steps, .is_idle = true};
    in.gives_zero = arena_array(x->scratch, bool, call->nresults + 1);
    for (int i = 0; i < call->nresults; i++) in.gives_zero[i] = true;
    pass_arguments(x, call, &in);
    visit_region(&in, callee->body);
    x->is_idle &= in.is_idle;
    for (int i = 0; i < call->nargs; i++)
        if (map_has(&in.dirty, PTR_KEY(callee->body->params[i]))) write_to(x, call->args[i], false);
    for (int i = 0; i < call->nresults; i++)
        if (in.gives_zero[i] && type_is_float(type_element(call->results[i]->type)))
            put(x, &x->zeros, call->results[i], call->results[i]);
}

/* ---- control flow */

static const Way *way_of(const Idle *x, const Inst *inst) {
    for (int i = 0; i < x->nways; i++)
        if (x->ways[i].branch == inst) return &x->ways[i];
    return NULL;
}

/* What it is whichever way is gone. */
static void join(Idle *x, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) {
        bool is_all = true;
        for (int k = 0; k < inst->nregions && is_all; k++) {
            const Inst *end = inst->regions[k]->last;
            is_all = end->op == OP_yield && is_zero(x, end->args[i]);
        }
        if (is_all) put(x, &x->zeros, inst->results[i], inst->results[i]);
    }
}

/* What a later round writes an earlier instruction may read. */
static void soil(void *user, Inst *inst) {
    Idle *x = user;
    for (int i = 0; i < inst->nargs && may_write(inst); i++)
        if (inst->args[i]->type->kind == TYPE_pointer) {
            Val *root = ir_root(inst->args[i]);
            if (is_own(x, root)) put(x, &x->dirty, root, root);
        }
}

static void visit_control(Idle *x, const Inst *inst) {
    const Way *way = way_of(x, inst);
    if (way) {
        const Region *region = inst->regions[way->region];
        visit_region(x, region);
        for (int i = 0; i < inst->nresults; i++)
            put(x, &x->same, inst->results[i], now(x, region->last->args[i]));
        return;
    }
    if (inst->op == OP_loop) inst_walk(inst, soil, x);
    for (int k = 0; k < inst->nregions; k++) visit_region(x, inst->regions[k]);
    if (inst->op == OP_if || inst->op == OP_switch) join(x, inst);
}

static void visit_return(const Idle *x, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) x->gives_zero[i] &= is_zero(x, inst->args[i]);
}

static void visit_inst(Idle *x, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_store: visit_store(x, inst); return;
    case OP_zero: write_to(x, inst->args[0], true); return;
    case OP_copy: write_to(x, inst->args[0], is_blank(x, inst->args[1])); return;
    case OP_call: visit_call(x, inst); return;
    case OP_return: visit_return(x, inst); return;
    case OP_var: return;
    case OP_acc:
        if (!is_blank(x, inst->args[1])) write_to(x, inst->args[0], false);
        return;
    case OP_atomic: x->is_idle &= inst->index == ATOMIC_add && is_zero(x, inst->args[1]); return;
    case OP_load:
        if (is_blank(x, inst->args[0]) && type_is_float(type_element(inst->results[0]->type)))
            put(x, &x->zeros, inst->results[0], inst->results[0]);
        return;
    default: break;
    }
    if (inst->nregions) visit_control(x, inst);
    else if (op_has(inst->op, OP_PURE)) compute(x, inst);
    else x->is_idle &= !op_has(inst->op, OP_WRITES | OP_EFFECT | OP_TAPE);
}

static void visit_region(Idle *x, const Region *region) {
    for (const Inst *inst = region->first; inst && x->is_idle; inst = inst->next) {
        visit_inst(x, inst);
        x->is_idle &= --*x->steps > 0;
    }
}

bool ad_is_idle(Ad *ad, const Inst *loop, const Way *ways, int count) {
    const Region *body = loop->regions[1];
    int steps = MOST_STEPS;
    Idle x = {.ad = ad, .loop = loop, .ways = ways, .nways = count, .steps = &steps, .is_idle = true};
    x.scratch = arena_scratch(ad->arena);
    visit_region(&x, body);
    for (int i = 1; i < body->nparams && x.is_idle; i++)
        x.is_idle = now(&x, body->last->args[i]) == body->params[i];
    arena_free(x.scratch);
    return x.is_idle;
}
