/* What divides several numbers becomes a reciprocal that they are multiplied by.
 *
 *     d.x / s, d.y / s, d.z / s        r = 1 / s; d.x * r, d.y * r, d.z * r
 *
 * So does a constant, and what divides in a loop and comes from outside of it. Where a constant is divided by
 * the same number anyway, that quotient is a reciprocal but for a factor.
 *
 * A quotient may differ in its last digit then. Nobody wrote those that differentiation makes (`div free`). Of
 * all others that holds on a GPU, where a division takes ten times as long as a product: also of a square root
 * that is good for nothing else (whose reciprocal such targets have), alone or times what it is the root of:
 * the third power of a distance. Who wants them as they are written says so (--fp strict, `precise`).
 *
 * The reciprocal of a number below the smallest normal one is too large to be a number, although the quotient
 * may be one. Unless it is known not to be that small, the divisor is therefore scaled up first, if it is,
 * and so are the dividends. */
#include "opt.h"

#include <float.h>
#include <math.h>

enum { DEPTH = 6 };

/* What divides, by Val.id. */
typedef struct Divisor {
    int divided;          /* numbers that it divides */
    bool in_loop;         /* some of them in a loop that it is not made in */
    Inst *first;          /* before this its reciprocal is made ... */
    bool is_scattered;    /* ... which comes before some of the divisions only */
    Inst *of_constant;    /* that it divides before */
    Val *over;            /* its reciprocal, or NULL: not made yet */
    Val *dividend_factor; /* NULL: none is needed */
} Divisor;

typedef struct Division {
    Inst *inst;
    Val *by; /* as it was before anything was replaced */
} Division;

typedef struct Reciprocals {
    Arena *scratch;
    bool all;  /* also of quotients that somebody wrote */
    int *uses; /* by Val.id */
    Divisor *divisors;
    VEC(Division) divisions;
} Reciprocals;

static const Inst *made_by(const Val *v, Op op) {
    return v->kind == VAL_inst && v->inst->op == op ? v->inst : NULL;
}

static bool is_division(const Inst *inst) {
    if (inst->op != OP_div && inst->op != OP_ratio) return false;
    TypeKind kind = type_element(inst->results[0]->type)->kind;
    return kind == TYPE_float || kind == TYPE_double;
}

/* The number that all lanes are divided by; NULL: they have their own. */
static Val *divisor_of(const Inst *division) {
    Val *v = inst_operand(division, 1);
    if (type_is_scalar(v->type)) return v;
    const Inst *splat = made_by(v, OP_splat);
    return splat ? inst_operand(splat, 0) : NULL;
}

/* ---- what is known of numbers */

static double smallest(const Type *type) { return type->kind == TYPE_double ? DBL_MIN : FLT_MIN; }

static bool is_constant_from(const Val *v, double least) { return val_is_const(v) && v->real >= least; }

static bool is_not_negative(const Val *v, int depth) {
    if (val_is_const(v)) return v->real >= 0;
    if (v->kind != VAL_inst || depth == 0) return false;
    const Inst *inst = v->inst;
    switch ((Op)inst->op) {
    case OP_abs:
    case OP_sqrt:
    case OP_exp: return true;
    case OP_mul: return inst_operand(inst, 0) == inst_operand(inst, 1);
    case OP_add:
        return is_not_negative(inst_operand(inst, 0), depth - 1) &&
               is_not_negative(inst_operand(inst, 1), depth - 1);
    case OP_max:
        return is_not_negative(inst_operand(inst, 0), 1) || is_not_negative(inst_operand(inst, 1), 1);
    default: return false;
    }
}

/* Is it zero, or too large in magnitude to have an infinite reciprocal? */
static bool has_reciprocal(const Val *v, int depth) {
    const double least = smallest(v->type);
    if (val_is_const(v)) return fabs(v->real) >= least;
    if (v->kind != VAL_inst || depth == 0) return false;
    const Inst *inst = v->inst;
    switch ((Op)inst->op) {
    case OP_sqrt: return true;
    case OP_convert: return type_is_integer(inst->args[0]->type);
    case OP_max:
        return is_constant_from(inst_operand(inst, 0), least) ||
               is_constant_from(inst_operand(inst, 1), least);
    case OP_add:
        return (is_constant_from(inst_operand(inst, 0), least) &&
                is_not_negative(inst_operand(inst, 1), depth)) ||
               (is_constant_from(inst_operand(inst, 1), least) &&
                is_not_negative(inst_operand(inst, 0), depth));
    case OP_select:
        return has_reciprocal(inst_operand(inst, 1), depth - 1) &&
               has_reciprocal(inst_operand(inst, 2), depth - 1);
    default: return false;
    }
}

/* ---- which ones */

static const Region *home_of(const Val *v) { return v->kind == VAL_param ? v->region : v->inst->parent; }

/* The outermost loop around it that the number is not made in; itself: there is none. */
static Inst *outside_of_loops(Inst *inst, const Region *home) {
    Inst *outside = inst;
    for (const Region *at = inst->parent; at != home && at->owner; at = at->owner->parent)
        if (at->owner->op == OP_loop) outside = at->owner;
    return outside;
}

/* Can what is divided be multiplied by a quotient of it instead? Not where that would be infinite, but no other
 * quotient: half of a number has a reciprocal that is no more than twice as large. */
static bool is_of_constant(const Inst *division) {
    const Val *x = inst_operand(division, 0);
    return division->op == OP_div && val_is_const(x) && fabs(x->real) >= 0.5 && fabs(x->real) <= 2;
}

static void note_division(Reciprocals *r, Inst *inst, const Val *v) {
    Divisor *divisor = &r->divisors[v->id];
    Inst *outside = outside_of_loops(inst, home_of(v));
    divisor->divided += r->all ? type_count(inst->results[0]->type) : 1;
    divisor->in_loop |= outside != inst;
    if (!divisor->first) divisor->first = outside;
    else divisor->is_scattered |= !region_is_in(inst->parent, divisor->first->parent);
}

/* Those of constants come first in a walk, or are of no use. */
static void note_inst(void *user, Inst *inst) {
    Reciprocals *r = user;
    Val *v = is_division(inst) ? divisor_of(inst) : NULL;
    if (!v) return;
    if (!r->all && !val_is_const(v) && is_of_constant(inst) && !r->divisors[v->id].first) {
        r->divisors[v->id].of_constant = inst;
    } else if (r->all || inst_has(inst, INST_FREE)) {
        vec_push(r->scratch, &r->divisions, ((Division){inst, v}));
        if (!val_is_const(v)) note_division(r, inst, v);
    }
}

/* The root in y * sqrt(y), if that is all it is for; NULL: it is something else. */
static const Inst *root_of_cube(const Reciprocals *r, const Val *v) {
    const Inst *product = made_by(v, OP_mul);
    for (int i = 0; product && i < 2; i++) {
        const Val *root = inst_operand(product, i), *y = inst_operand(product, 1 - i);
        if (made_by(root, OP_sqrt) && inst_operand(root->inst, 0) == y && r->uses[root->id] == 1 &&
            is_not_negative(y, DEPTH))
            return root->inst;
    }
    return NULL;
}

static bool is_divided_before(const Divisor *divisor) {
    return divisor->of_constant && region_is_in(divisor->first->parent, divisor->of_constant->parent);
}

static bool is_worth_it(const Reciprocals *r, const Val *v) {
    if (val_is_const(v)) return has_reciprocal(v, 1) && fabs(1 / v->real) >= smallest(v->type);
    const Divisor *divisor = &r->divisors[v->id];
    if (!r->all && divisor->is_scattered) return false;
    bool is_dear = !r->all && !has_reciprocal(v, DEPTH); /* to scale it takes as long as a division */
    if (divisor->divided > 1 + is_dear || divisor->in_loop) return true;
    if (!r->all) return is_divided_before(divisor);
    return root_of_cube(r, v) || (made_by(v, OP_sqrt) && r->uses[v->id] == 1);
}

/* ---- making them */

static Builder build_behind(const Val *v) {
    return v->kind == VAL_inst ? build_after(v->inst) : build_before(v->region->first);
}

static void make_reciprocal(const Reciprocals *r, Divisor *divisor, Val *v, const Inst *root) {
    Builder b = r->all ? build_behind(v) : build_before(divisor->first);
    Module *module = b.func->module;
    if (is_divided_before(divisor)) {
        const Inst *quotient = divisor->of_constant;
        Val *factor = ir_const_real(module, v->type, 1 / inst_operand(quotient, 0)->real);
        divisor->over = build_binary(&b, OP_mul, quotient->results[0], factor);
        return;
    }
    Val *one = ir_const_real(module, v->type, 1), *scaled = v;
    if (root) {
        Val *over = build_binary(&b, OP_div, one, build_unary(&b, OP_sqrt, inst_operand(root, 0)));
        divisor->over = build_binary(&b, OP_mul, build_binary(&b, OP_mul, over, over), over);
        return;
    }
    if (!has_reciprocal(v, DEPTH)) {
        Val *least = ir_const_real(module, v->type, smallest(v->type));
        Val *is_small = build_binary(&b, OP_lt, build_unary(&b, OP_abs, v), least);
        Val *large = ir_const_real(module, v->type, v->type->kind == TYPE_double ? 0x1p54 : 0x1p25);
        divisor->dividend_factor = build_select(&b, is_small, large, one);
        scaled = build_binary(&b, OP_mul, v, divisor->dividend_factor);
    }
    divisor->over = build_binary(&b, OP_div, one, scaled);
}

static Val *in_lanes(Builder *b, const Type *type, Val *v) {
    return type_is_scalar(type) ? v : build_splat(b, type, v);
}

static void multiply(Inst *division, Val *factor, Val *over) {
    Builder b = build_before(division);
    Val *result = division->results[0], *x = inst_operand(division, 0);
    b.loc = division->loc;
    if (factor) x = build_binary(&b, OP_mul, x, in_lanes(&b, x->type, factor));
    over = in_lanes(&b, x->type, over);
    Val *product =
        division->op == OP_ratio ? build_binary(&b, OP_scale, over, x) : build_binary(&b, OP_mul, x, over);
    if (!product->name) product->name = result->name;
    result->forward = product;
    inst_remove(division);
}

static bool replace(Reciprocals *r, Division division) {
    if (!is_worth_it(r, division.by)) return false;
    Val *by = ir_resolve(division.by);
    if (val_is_const(by)) {
        multiply(division.inst, NULL, ir_const_real(division.inst->func->module, by->type, 1 / by->real));
        return true;
    }
    Divisor *divisor = &r->divisors[division.by->id];
    if (!divisor->over) make_reciprocal(r, divisor, by, r->all ? root_of_cube(r, division.by) : NULL);
    multiply(division.inst, divisor->dividend_factor, divisor->over);
    return true;
}

bool opt_reciprocal(Func *func) {
    const Module *module = func->module;
    if (!func->body || module->rounds_as_written || (func->flags & FUNC_PRECISE)) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Reciprocals r = {.scratch = scratch,
                     .all = module->many_threads,
                     .uses = region_count_uses(scratch, func->body),
                     .divisors = arena_array(scratch, Divisor, func->nvals + 1)};
    bool changed = false;
    region_walk(func->body, note_inst, &r);
    for (int i = 0; i < r.divisions.count; i++) changed |= replace(&r, r.divisions.at[i]);
    if (changed) ir_resolve_func(func);
    arena_free(scratch);
    return changed;
}
