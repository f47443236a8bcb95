/* Linearize: beside each primal instruction, its differential.
 *
 * The copy computes what the function computes and, for each active value, its differential; memory that is
 * active has a shadow of the Differential's type. This is forward mode. For reverse mode the same code is
 * made, but a call stays a primal call with a tangent call beside it, so that the two halves can be taken
 * apart.
 *
 * A differential reads primal values, a primal value never reads a differential: an instruction is
 * differential exactly if an operand is. Differentials that are known to be zero are not built at all (NULL
 * in `d`): 0 * inf must not become a NaN.
 *
 * Rules. Arithmetic has its partial derivatives in ops.def (ir/partials.c). Elementary functions have theirs
 * in the prelude, as functions of pairs that are linear in the differentials; their code is put in place. */
#include "autodiff/ad.h"

typedef struct Lin {
    Ad *ad;
    Module *m;
    AdFunc *f;
    AdMode mode;
    Activity a;
    Refs refs;
    Builder b;
    Val **p, **d; /* by id of the old value: its copy, its differential */
    Func *into;
    const Places *results; /* of it */
    Map *calls;            /* tangent call -> CallNote */
    bool escapes;          /* an address does, which was told */
} Lin;

/* ---- values */

static Val *primal(Lin *l, Val *old) {
    if (val_is_const(old)) return old;
    Val *v = l->p[old->id];
    if (!v) arena_fault(l->ad->arena, "a value is linearized before it is made");
    return v;
}

static Val *diff(Lin *l, const Val *old) { return val_is_const(old) ? NULL : l->d[old->id]; }

static bool is_active(const Lin *l, const Val *old) { return !val_is_const(old) && l->a.vals[old->id]; }

static bool is_paired(const Lin *l, Val *old) { return ad_ref_of(&l->refs, old).state == REF_paired; }

/* The counterpart of a reference, `type` being its type: null if it has none. */
static Val *counterpart(Lin *l, const Val *old, const Type *type) {
    Val *d = diff(l, old);
    return d ? d : ad_zero(l->ad, type);
}

static Val *diff_or_zero(Lin *l, const Val *old) { return counterpart(l, old, old->type); }

static void set_primal(Lin *l, const Val *old, Val *v) {
    l->p[old->id] = v;
    if (old->name && !v->name && v->kind == VAL_inst) v->name = old->name;
}

static void set_diff(Lin *l, const Val *old, Val *v) {
    if (v && val_is_const(v) && val_is_zero(v)) v = NULL;
    l->d[old->id] = v;
    if (v && old->name && !v->name && v->kind == VAL_inst) v->name = ad_diff_name(l->ad, old->name);
}

/* ---- tags */

static bool reads_diff(const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->flags & VAL_DIFF) return true;
    return false;
}

static void tag(Inst *inst) {
    if (inst->nregions || !reads_diff(inst)) return;
    inst->tag = TAG_diff;
    for (int i = 0; i < inst->nresults; i++)
        if (!val_is_const(inst->results[i])) inst->results[i]->flags |= VAL_DIFF;
}

/* Everything that was built behind `before` gets its tag. */
static void tag_from(Lin *l, Inst *before) {
    for (Inst *inst = before ? before->next : l->b.region->first; inst; inst = inst->next) tag(inst);
}

/* ---- rules: code of a flat function put in place */

typedef struct Placed {
    Val **vals; /* by id of the rule's value; NULL and `zero`: a differential that is zero */
    bool *zero;
} Placed;

static Val *placed(Lin *l, const Placed *x, Val *v) {
    if (val_is_const(v)) return v;
    return x->zero[v->id] ? ad_zero(l->ad, v->type) : x->vals[v->id];
}

static bool is_zero(const Placed *x, const Val *v) { return !val_is_const(v) && x->zero[v->id]; }

/* Chosen from zeros, one of which is a differential. */
static bool chooses_zero(const Placed *x, const Val *a, const Val *b) {
    return (is_zero(x, a) && (is_zero(x, b) || val_is_zero(b))) || (is_zero(x, b) && val_is_zero(a));
}

/* Linear operations on zero are zero. */
static bool folds_to_zero(const Placed *x, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_add:
    case OP_sub: return is_zero(x, inst->args[0]) && is_zero(x, inst->args[1]);
    case OP_mul:
    case OP_scale: return is_zero(x, inst->args[0]) || is_zero(x, inst->args[1]);
    case OP_neg:
    case OP_div:
    case OP_ratio:
    case OP_convert: return is_zero(x, inst->args[0]);
    case OP_select: return chooses_zero(x, inst->args[1], inst->args[2]);
    default: return false;
    }
}

/* The same on other operands. What is known of the derivative of an operation goes along. */
static Val *op_again(Lin *l, const Inst *inst, Val *const *args) {
    const Inst *last = l->b.region->last;
    Val *v = build_op(&l->b, (Op)inst->op, inst->results[0]->type, args, inst->nargs);
    if (inst->op == OP_sqrt && v->kind == VAL_inst && v->inst != last && v->inst->op == OP_sqrt)
        v->inst->flags |= inst->flags;
    return v;
}

static Val *place_inst(Lin *l, Placed *x, Inst *inst) {
    Val *args[3];
    for (int i = 0; i < inst->nargs && i < 3; i++) args[i] = placed(l, x, inst->args[i]);
    if (inst->op == OP_add && is_zero(x, inst->args[0])) return args[1];
    if ((inst->op == OP_add || inst->op == OP_sub) && is_zero(x, inst->args[1])) return args[0];
    if (inst->op == OP_sub && is_zero(x, inst->args[0])) return build_unary(&l->b, OP_neg, args[1]);
    return op_again(l, inst, args);
}

/* Anything else, control flow included, is copied. */
static void place_call_or_control(Lin *l, Placed *x, CloneMap *map, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (!val_is_const(inst->args[i])) clone_map_val(map, inst->args[i], placed(l, x, inst->args[i]));
    Inst *copy = clone_inst(map, inst);
    inst_append(l->b.region, copy);
    for (int i = 0; i < inst->nresults; i++) x->vals[inst->results[i]->id] = copy->results[i];
}

/* Puts the code of a flat function in normal form here. `args` NULL: zero. */
static void place_rule(Lin *l, Func *rule, Val *const *args, Val **results) {
    Placed x = {arena_array(l->ad->arena, Val *, rule->nvals + 1),
                arena_array(l->ad->arena, bool, rule->nvals + 1)};
    CloneMap map = {.module = l->m, .func = l->into};
    for (int i = 0; i < rule->nparams; i++) {
        Val *param = rule->body->params[i];
        x.vals[param->id] = args[i];
        x.zero[param->id] = !args[i];
        clone_map_val(&map, param, args[i] ? args[i] : ad_zero(l->ad, param->type));
    }
    for (Inst *inst = rule->body->first; inst; inst = inst->next) {
        if (inst->op == OP_return) {
            for (int i = 0; i < inst->nargs; i++)
                results[i] = is_zero(&x, inst->args[i]) ? NULL : placed(l, &x, inst->args[i]);
            return;
        }
        bool plain = op_has(inst->op, OP_PURE) && inst->nresults == 1 && inst->nargs <= 3 &&
                     !op_has(inst->op, OP_ATTRIBUTES);
        Val *value = NULL;
        if (plain && folds_to_zero(&x, inst)) x.zero[inst->results[0]->id] = true;
        else if (plain) value = x.vals[inst->results[0]->id] = place_inst(l, &x, inst);
        else place_call_or_control(l, &x, &map, inst);
        if (plain)
            clone_map_val(&map, inst->results[0], value ? value : ad_zero(l->ad, inst->results[0]->type));
    }
}

static Func *op_rule(Lin *l, const Inst *inst) {
    Ad *ad = l->ad;
    uint64_t which = (uint64_t)inst->op << 8 | inst->flags;
    uint64_t key = hash_mix(which + 1, PTR_KEY(inst->results[0]->type)) | 1;
    void *known = map_get(&ad->rules, key);
    if (known) return known == ad ? NULL : known;
    Func *source = ad->m->hooks.op_rule ? ad->m->hooks.op_rule(ad->m->hooks.user, inst) : NULL;
    AdFunc *rule = source ? ad_func(ad, source) : NULL;
    if (rule) ad_fill(ad, rule, true);
    map_put(ad->arena, &ad->rules, key, rule ? (void *)rule->flat : (void *)ad);
    return rule ? rule->flat : NULL;
}

static bool apply_op_rule(Lin *l, Inst *inst) {
    Func *rule = op_rule(l, inst);
    if (!rule || rule->nparams != 2 * inst->nargs || rule->nresults != 2) return false;
    Val *args[6], *results[2];
    for (int i = 0; i < inst->nargs; i++) {
        args[2 * i] = primal(l, inst->args[i]);
        args[2 * i + 1] = diff(l, inst->args[i]);
    }
    place_rule(l, rule, args, results);
    set_primal(l, inst->results[0], results[0] ? results[0] : ad_zero(l->ad, inst->results[0]->type));
    set_diff(l, inst->results[0], results[1]);
    return true;
}

/* ---- pure operations */

static Val *copy_pure(Lin *l, Inst *inst) {
    bool attributes = op_has(inst->op, OP_ATTRIBUTES);
    Val *args[8];
    for (int i = 0; i < inst->nargs && i < 8; i++) args[i] = primal(l, inst->args[i]);
    if (!attributes) return op_again(l, inst, args);
    return clone_with(&l->b, inst, args)->results[0];
}

/* Does the differential of a struct begin with that of its base? */
static bool begins_with(Lin *l, const Type *whole, const Type *part) {
    if (whole->kind != TYPE_record || part->kind != TYPE_record) return false;
    const RecordDiff *outer = ir_record_diff(l->m, whole), *inner = ir_record_diff(l->m, part);
    if (outer->opaque || inner->opaque || !outer->field_map || !inner->field_map) return false;
    if (type_record(part)->nfields > type_record(whole)->nfields) return false;
    for (int i = 0; i < type_record(part)->nfields; i++)
        if (outer->field_map[i] != inner->field_map[i]) return false;
    return true;
}

/* An address that was moved: its shadow is moved likewise. */
static Val *moved_shadow(Lin *l, const Inst *inst) {
    const Type *type = inst->results[0]->type->args[0];
    Val *base = diff(l, inst->args[inst->op == OP_select]);
    if (!base) return NULL;
    if (inst->op == OP_offset) return build_offset(&l->b, base, primal(l, inst->args[1]));
    if (inst->op == OP_select) {
        Val *other = diff(l, inst->args[2]);
        return other && other->type == base->type ? build_select(&l->b, primal(l, inst->args[0]), base, other)
                                                  : NULL;
    }
    const Type *from = inst->args[0]->type->args[0], *dtype = ad_differential(l->ad, type);
    if (!dtype || !begins_with(l, from, type)) return NULL;
    return build_bitcast(&l->b, base, type_pointer(l->m->types, dtype));
}

/* The address in the shadow that corresponds to an address. */
static Val *shadow_address(Lin *l, const Inst *inst) {
    Val *base = diff(l, inst->args[0]);
    if (!base) return NULL;
    const Type *type = inst->args[0]->type->args[0];
    bool dual = !(base->flags & VAL_DIFF);
    if (inst->op == OP_elem) {
        if (!dual && !ad_differential(l->ad, type)) return NULL;
        return build_elem(&l->b, base, primal(l, inst->args[1]), inst_has(inst, INST_UNCHECKED));
    }
    const RecordDiff *rule = ir_record_diff(l->m, type);
    int field = rule->field_map ? rule->field_map[inst->index] : -1;
    if (dual) field = ad_counterpart_field(l->ad, type, base->type->args[0], inst->index);
    return field < 0 || base->type->args[0]->kind != TYPE_record ? NULL : build_field(&l->b, base, field);
}

static Val *dselect(Lin *l, Val *condition, Val *a, Val *b, const Type *type) {
    if (!a && !b) return NULL;
    return build_select(&l->b, condition, a ? a : ad_zero(l->ad, type), b ? b : ad_zero(l->ad, type));
}

static Val *differential(Lin *l, const Inst *inst) {
    Val *a[3] = {0}, *d[3] = {0};
    for (int i = 0; i < inst->nargs && i < 3; i++) {
        a[i] = primal(l, inst->args[i]);
        d[i] = diff(l, inst->args[i]);
    }
    return build_differential(&l->b, (Op)inst->op, a, d, l->p[inst->results[0]->id]);
}

/* Logarithms, quotients by exponentials, and products with those. */
static bool lin_factors(Lin *l, Inst *inst) {
    Tangents known = {&l->b, l->p, l->d, .forward = l->mode == AD_fwd};
    if (!ad_has_factors(&known, inst)) return false;
    Val *y = copy_pure(l, inst);
    set_primal(l, inst->results[0], y);
    set_diff(l, inst->results[0], ad_factors_differential(&known, inst, y));
    return true;
}

/* ---- pure operations of any kind */

static void lin_pure(Lin *l, Inst *inst) {
    Val *y = inst->results[0];
    if (op_has(inst->op, OP_PART)) {
        set_primal(l, y, copy_pure(l, inst));
        l->d[y->id] = shadow_address(l, inst);
        return;
    }
    if (op_has(inst->op, OP_MOVES) && y->type->kind == TYPE_pointer && ad_is_active_address(&l->a, y)) {
        set_primal(l, y, copy_pure(l, inst));
        l->d[y->id] = moved_shadow(l, inst);
        return;
    }
    if (is_active(l, y) && lin_factors(l, inst)) return;
    if (is_active(l, y) && !op_info[inst->op].has_partials && inst->op != OP_select &&
        inst->op != OP_convert && apply_op_rule(l, inst))
        return;
    set_primal(l, y, copy_pure(l, inst));
    if (inst->op == OP_detach) return;
    if (inst->op == OP_select) {
        Val *a = diff(l, inst->args[1]), *b = diff(l, inst->args[2]);
        if (!type_is_float(y->type)) { /* counterparts follow */
            const Type *type = l->refs.at[y->id].type;
            if (is_paired(l, y))
                l->d[y->id] =
                    build_select(&l->b, primal(l, inst->args[0]), counterpart(l, inst->args[1], type),
                                 counterpart(l, inst->args[2], type));
        } else set_diff(l, y, dselect(l, primal(l, inst->args[0]), a, b, y->type));
        return;
    }
    if (!is_active(l, y)) return;
    if (inst->op == OP_convert) {
        Val *d = diff(l, inst->args[0]);
        if (d && type_is_float(inst->args[0]->type)) set_diff(l, y, build_convert(&l->b, d, y->type));
    } else set_diff(l, y, differential(l, inst));
}

/* ---- memory: the same act on the shadow */

static Val **primal_operands(Lin *l, const Inst *inst) {
    Val **args = arena_array(l->ad->arena, Val *, inst->nargs ? inst->nargs : 1);
    for (int i = 0; i < inst->nargs; i++) args[i] = primal(l, inst->args[i]);
    return args;
}

static Inst *lin_primal_inst(Lin *l, Inst *inst) {
    Inst *copy = clone_with(&l->b, inst, primal_operands(l, inst));
    for (int i = 0; i < inst->nresults; i++) set_primal(l, inst->results[i], copy->results[i]);
    return copy;
}

static void lin_var(Lin *l, Inst *inst) {
    lin_primal_inst(l, inst);
    Val *y = inst->results[0];
    if (l->refs.at[y->id].state == REF_paired) /* counterparts are primal values */
        l->d[y->id] = build_var(&l->b, l->refs.at[y->id].type, ad_diff_name(l->ad, y->name), false);
    if (!is_active(l, y)) return;
    Val *shadow;
    if (inst->op == OP_var)
        shadow = build_var(&l->b, ad_differential(l->ad, inst->type), ad_diff_name(l->ad, y->name), false);
    else {
        Inst *tape = build_inst(&l->b, OP_tape_open, NULL, 0, 0, 0);
        shadow = inst_add_result(tape, y->type, ad_diff_name(l->ad, y->name));
    }
    shadow->flags |= VAL_DIFF;
    shadow->inst->tag = TAG_diff;
    l->d[y->id] = shadow;
}

/* In reverse mode it is the transpose that knows of zeros which are not just bits. */
static void zero_shadow(Lin *l, Val *shadow) {
    if (l->mode == AD_fwd) ad_zero_object(l->ad, &l->b, shadow);
    else build_zero(&l->b, shadow);
}

/* The shadow of memory that is read or written. What lies behind a plain address has none, even if the
 * address itself has a counterpart: only functions with derivatives of their own know what to do with
 * that. */
static Val *shadow_at(Lin *l, Val *address) {
    return address->type->kind == TYPE_pointer && !ad_is_object(address) ? NULL : diff(l, address);
}

static void lin_copy(Lin *l, Inst *inst) {
    lin_primal_inst(l, inst);
    Val *to = shadow_at(l, inst->args[0]), *from = shadow_at(l, inst->args[1]);
    if (!to) return;
    if (from && !inst_has(inst, INST_NO_DIFF)) {
        if (inst->op == OP_copy) build_copy(&l->b, to, from);
        else build_inst(&l->b, OP_acc, (Val *[]){to, from}, 2, 0, 0);
    } else if (inst->op == OP_copy) zero_shadow(l, to);
}

static void lin_memory(Lin *l, Inst *inst) {
    switch ((Op)inst->op) {
    case OP_var:
    case OP_tape_open: lin_var(l, inst); return;
    case OP_copy:
    case OP_acc: lin_copy(l, inst); return;
    default: break;
    }
    lin_primal_inst(l, inst);
    Val *shadow = inst->nargs ? shadow_at(l, inst->args[0]) : NULL;
    if (!shadow) return;
    switch ((Op)inst->op) {
    case OP_load:
        if (type_is_float(inst->results[0]->type)) set_diff(l, inst->results[0], build_load(&l->b, shadow));
        else if (is_paired(l, inst->results[0])) l->d[inst->results[0]->id] = build_load(&l->b, shadow);
        return;
    case OP_store:
        if (type_is_float(inst->args[1]->type)) build_store(&l->b, shadow, diff_or_zero(l, inst->args[1]));
        else if (is_paired(l, inst->args[0]))
            build_store(&l->b, shadow, counterpart(l, inst->args[1], shadow->type->args[0]));
        return;
    case OP_zero: zero_shadow(l, shadow); return;
    case OP_tape_close: build_inst(&l->b, OP_tape_close, &shadow, 1, 0, 0); return;
    default:
        if (!op_has(inst->op, OP_TAPE)) return; /* printf and the like */
    }
    if (!type_is_float(ir_on_stack(inst))) return;
    Val *args[3] = {shadow, NULL, NULL};
    for (int i = 1; i < inst->nargs; i++)
        args[i] =
            type_is_float(inst->args[i]->type) ? diff_or_zero(l, inst->args[i]) : primal(l, inst->args[i]);
    Inst *act = clone_with(&l->b, inst, args);
    if (inst->op == OP_tape_pop || inst->op == OP_tape_load) set_diff(l, inst->results[0], act->results[0]);
}

/* ---- calls */

/* The shadows of what a call writes without derivative are zero afterwards. */
static void zero_written(Lin *l, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        const Param *param = &inst->callee->params[i];
        if ((param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in && diff(l, inst->args[i]))
            zero_shadow(l, diff(l, inst->args[i]));
    }
}

static Inst *primal_call(Lin *l, const Inst *inst, Func *callee) {
    Inst *call = build_call(&l->b, callee, primal_operands(l, inst), inst->nargs);
    call->flags = inst->flags;
    for (int i = 0; i < inst->nresults; i++) set_primal(l, inst->results[i], call->results[i]);
    return call;
}

/* Shadow of an array that is passed: one of zeros if it has none. */
static Val *shadow_arg(Lin *l, const Leaf *leaf, Val *old) {
    Val *d = diff(l, old);
    if (d || !leaf->by_ref) return d ? d : ad_zero(l->ad, leaf->dtype);
    Val *zeros = build_var(&l->b, leaf->dtype, NULL, false);
    zeros->flags |= VAL_DIFF;
    zeros->inst->tag = TAG_diff;
    return zeros;
}

static Val *dual_arg(Lin *l, const Leaf *leaf, Val *old) {
    Val *dual = diff(l, old);
    if (!dual && ad_is_own_number(&l->refs, leaf, old)) return primal(l, old);
    if (dual || !leaf->by_ref) return dual ? dual : ad_zero(l->ad, leaf->dtype);
    return build_var(&l->b, leaf->dtype, NULL, false);
}

/* How far the ways to two parts of what is passed are the same; -1: they are in different parameters. */
static int shared_path(const Leaf *a, const Leaf *b) {
    int n = 0;
    if (a->param != b->param) return -1;
    while (n < a->npath && n < b->npath && a->path[n] == b->path[n]) n++;
    return n;
}

/* A plain number beside references, such as the shape of a tensor, may be its own counterpart. It is a
 * constant if the references nearest to it are. */
static bool is_among_constants(const Leaves *leaves, int number, const bool *constants) {
    int nearest = -2;
    bool all = false;
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (!leaf->dual || leaf->in < 0 || ad_is_number(leaf)) continue;
        int near = shared_path(leaf, &leaves->at[number]);
        if (near > nearest) all = true;
        if (near >= nearest) all &= constants[i];
        if (near > nearest) nearest = near;
    }
    return all;
}

/* What the call differentiates: where references are constants, a copy of the function in which they are. */
static AdFunc *settled_callee(Lin *l, AdFunc *callee, const Inst *inst) {
    const Leaves *leaves = &callee->leaves;
    bool *constants = arena_array(l->ad->arena, bool, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (!leaf->dual || leaf->in < 0 || ad_is_own_number(&l->refs, leaf, inst->args[leaf->in])) continue;
        constants[i] = ad_ref_of(&l->refs, inst->args[leaf->in]).state == REF_plain;
    }
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->dual && leaf->in >= 0 && ad_is_own_number(&l->refs, leaf, inst->args[leaf->in]))
            constants[i] = is_among_constants(leaves, i, constants);
    }
    return ad_with_constants(l->ad, callee, constants);
}

/* Do the references that are passed have counterparts? plain: none of them, and none has to. */
static RefState references(Lin *l, AdFunc *callee, const Inst *inst) {
    Ref all = {0};
    for (int i = 0; i < callee->leaves.count; i++) {
        const Leaf *leaf = &callee->leaves.at[i];
        if (!leaf->dual || leaf->in < 0 || ad_is_own_number(&l->refs, leaf, inst->args[leaf->in])) continue;
        Ref ref = ad_ref_of(&l->refs, inst->args[leaf->in]);
        if (ref.state == REF_paired && ad_is_number(leaf)) continue;
        if (ref.state == REF_paired) ref.type = NULL; /* it fits by construction */
        all = ad_merge_refs(all, ref);
    }
    return all.state;
}

static bool passes_pointers(const AdFunc *callee) {
    for (int i = 0; i < callee->leaves.count; i++)
        if (callee->leaves.at[i].dual && callee->leaves.at[i].type->kind == TYPE_pointer) return true;
    return false;
}

/* A call that passes only plain references: without derivative, unless arguments have one. Those reach a
 * derivative with null in place of the counterparts, where buffers drop what is written; a pointer would
 * not. */
static bool stops_at_references(Lin *l, const CallPlan *plan, const Inst *inst) {
    bool active = ad_reads_active(&l->a, inst);
    RefState state = references(l, plan->callee, inst);
    bool lost = state == REF_lost || (state == REF_plain && active && passes_pointers(plan->callee));
    DiagId what = lost ? DIAG_no_counterpart : DIAG_kept_counterpart;
    if (lost || state == REF_kept) diag_report(l->m->diags, what, l->b.loc);
    return state == REF_plain && !active;
}

/* What stands for the differential of an argument where only counterparts are asked for. */
static Val *no_differential(Lin *l, const Leaf *leaf) {
    return leaf->by_ref ? build_var(&l->b, leaf->dtype, NULL, false) : ad_zero(l->ad, leaf->dtype);
}

typedef struct CallArgs {
    Lin *l;
    const AdFunc *callee;
    const Inst *inst;
    bool null_zero;         /* a differential that is zero may be NULL */
    bool counterparts_only; /* there are no differentials */
} CallArgs;

static Val *call_arg(void *user, const Place *place) {
    const CallArgs *x = user;
    const Leaf *leaf = &x->callee->leaves.at[place->leaf];
    Val *old = x->inst->args[leaf->in];
    if (place->role == AS_primal) return primal(x->l, old);
    if (place->role == AS_counterpart) return dual_arg(x->l, leaf, old);
    if (x->counterparts_only) return no_differential(x->l, leaf);
    return x->null_zero && !leaf->by_ref ? diff(x->l, old) : shadow_arg(x->l, leaf, old);
}

static void set_result(Lin *l, const AdFunc *callee, const Place *place, const Inst *inst, Val *result) {
    const Val *old = inst->results[callee->leaves.at[place->leaf].out];
    if (place->role == AS_primal) set_primal(l, old, result);
    else set_diff(l, old, result);
}

static void set_results(Lin *l, const AdFunc *callee, const Places *places, const Inst *inst,
                        Val *const *results) {
    for (int i = 0; i < places->count; i++) set_result(l, callee, &places->at[i], inst, results[i]);
}

static void lin_rule_call(Lin *l, const CallPlan *plan, const Inst *inst) {
    Func *fwd = ad_fwd(l->ad, plan->callee);
    CallArgs x = {.l = l, .callee = plan->callee, .inst = inst, .null_zero = true};
    Val **results = arena_array(l->ad->arena, Val *, fwd->nresults ? fwd->nresults : 1);
    place_rule(l, fwd, ad_arguments(l->ad, &plan->callee->fwd, call_arg, &x), results);
    for (int i = 0; i < fwd->nresults; i++)
        if (!results[i]) results[i] = ad_zero(l->ad, fwd->results[i]);
    set_results(l, plan->callee, &plan->callee->fwd.results, inst, results);
}

static void lin_fwd_call(Lin *l, const CallPlan *plan, const Inst *inst) {
    ad_fwd(l->ad, plan->callee);
    CallArgs x = {.l = l, .callee = plan->callee, .inst = inst};
    Inst *call = ad_call(l->ad, &l->b, &plan->callee->fwd, call_arg, &x);
    call->tag = TAG_mixed;
    set_results(l, plan->callee, &plan->callee->fwd.results, inst, call->results);
}

/* In place of a function its forward pass: the same arguments and results, and memory for arrays of the
 * state. */
static Inst *pass_call(Lin *l, const CallPlan *plan, const Inst *inst) {
    const Leaves *leaves = &plan->callee->leaves, *more = &plan->pass->leaves;
    Val **args = arena_array(l->ad->arena, Val *, plan->pass->flat->nparams + 1);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].in >= 0)
            args[more->at[ad_leaf_of_pass(plan, i)].in] = primal(l, inst->args[leaves->at[i].in]);
    for (int i = 0; i < more->count; i++)
        if (ad_is_state(plan, i) && more->at[i].in >= 0)
            args[more->at[i].in] =
                build_var(&l->b, more->at[i].type, name_from(l->ad->m->names, "state"), false);
    Inst *call = build_call(&l->b, plan->pass->flat, args, plan->pass->flat->nparams);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].out >= 0)
            set_primal(l, inst->results[leaves->at[i].out],
                       call->results[more->at[ad_leaf_of_pass(plan, i)].out]);
    return call;
}

/* In place of a function its forward derivative, without differentials: its results, and the counterparts of
 * references among them. */
static Inst *counterpart_call(Lin *l, const CallPlan *plan, const Inst *inst) {
    CallArgs x = {.l = l, .callee = plan->callee, .inst = inst, .counterparts_only = true};
    ad_fwd(l->ad, plan->callee);
    const Made *fwd = &plan->callee->fwd;
    Inst *call = ad_call(l->ad, &l->b, fwd, call_arg, &x);
    for (int i = 0; i < fwd->results.count; i++)
        if (fwd->results.at[i].role != AS_differential)
            set_result(l, plan->callee, &fwd->results.at[i], inst, call->results[i]);
    return call;
}

/* The function itself; its pass will give the counterparts as well. */
static Inst *derived_call(Lin *l, const CallPlan *plan, const Inst *inst) {
    const Leaves *leaves = &plan->callee->leaves;
    Inst *call = primal_call(l, inst, ad_primal(l->ad, plan->callee));
    for (int i = 0; i < leaves->count; i++) {
        if (!ad_has_role(&leaves->at[i], AS_counterpart, true)) continue;
        const Val *old = inst->results[leaves->at[i].out];
        l->d[old->id] = inst_add_result(call, leaves->at[i].dtype, ad_diff_name(l->ad, old->name));
    }
    return call;
}

static Inst *first_half(Lin *l, const CallPlan *plan, const Inst *inst) {
    if (plan->pass) return pass_call(l, plan, inst);
    if (plan->kind != CALL_custom) return derived_call(l, plan, inst);
    bool gives = ad_gives_references(&plan->callee->leaves) && ad_knows_counterparts(plan);
    return gives ? counterpart_call(l, plan, inst) : primal_call(l, inst, plan->callee->flat);
}

static Val **primal_args(Lin *l, const CallNote *note, const Inst *inst) {
    const CallPlan *plan = &note->plan;
    const Leaves *leaves = &(plan->pass ? plan->pass : plan->callee)->leaves;
    Val **args = arena_array(l->ad->arena, Val *, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].in >= 0)
            args[i] =
                plan->pass ? note->primal->args[leaves->at[i].in] : primal(l, inst->args[leaves->at[i].in]);
    return args;
}

/* Reverse mode: the primal call, and beside it what is linear in the differentials. */
static void lin_split_call(Lin *l, const CallPlan *plan, Inst *inst) {
    AdFunc *callee = plan->callee;
    CallNote *note = arena_new(l->ad->arena, CallNote);
    *note = (CallNote){.plan = *plan};
    note->duals = arena_array(l->ad->arena, Val *, callee->leaves.count + 1);
    for (int i = 0; i < callee->leaves.count; i++)
        if (ad_has_role(&callee->leaves.at[i], AS_counterpart, false))
            note->duals[i] = dual_arg(l, &callee->leaves.at[i], inst->args[callee->leaves.at[i].in]);
    note->primal = first_half(l, plan, inst);
    note->args = primal_args(l, note, inst);
    if (!callee->tangent.func) ad_declare(l->ad, callee, SHAPE_tangent, (Contents){0}, &callee->tangent);
    CallArgs x = {.l = l, .callee = callee, .inst = inst};
    Inst *tangent = ad_call(l->ad, &l->b, &callee->tangent, call_arg, &x);
    tangent->tag = TAG_diff;
    map_put(l->ad->arena, l->calls, PTR_KEY(tangent), note);
    for (int i = 0; i < tangent->nresults; i++) tangent->results[i]->flags |= VAL_DIFF;
    set_results(l, callee, &callee->tangent.results, inst, tangent->results);
}

/* The derivative stops here. It is not zero where something active goes in, nor, maybe, where it reads what
 * has a gradient. */
static void report_custom_again(Lin *l, const CallPlan *plan, const Inst *inst) {
    const Func *custom = plan->callee->source;
    if (!ad_is_unmarked_custom(l->ad, l->f, plan)) return;
    if (!ad_reads_active(&l->a, inst) && !ad_has(l->ad, plan->callee, AD_reads)) return;
    diag_report(l->m->diags, DIAG_custom_again, custom->loc, custom->name->text);
    map_put(l->ad->arena, &l->ad->customs, PTR_KEY(custom), l->ad); /* told */
}

/* The shadow of an object is there in the reverse only, and what a function gives back is known before. */
static bool gives_local(Lin *l, const CallPlan *plan, const Inst *inst) {
    if (l->mode == AD_fwd || !plan->callee || !ad_gives_references(&plan->callee->leaves)) return false;
    for (int i = 0; i < plan->callee->leaves.count; i++) {
        const Leaf *leaf = &plan->callee->leaves.at[i];
        const Val *dual = leaf->dual && leaf->in >= 0 ? diff(l, inst->args[leaf->in]) : NULL;
        const Val *root = dual && dual->type->kind == TYPE_pointer ? ir_root((Val *)(uintptr_t)dual) : NULL;
        if (root && (root->flags & VAL_DIFF)) return true;
    }
    return false;
}

static void lin_call(Lin *l, Inst *inst) {
    CallPlan plan = ad_plan_call(l->ad, inst, l->mode);
    if (plan.kind == CALL_derived) plan.callee = settled_callee(l, plan.callee, inst);
    bool refused = gives_local(l, &plan, inst);
    if (refused && !l->escapes) diag_report(l->m->diags, DIAG_no_counterpart, inst->loc);
    if (!inst_has(inst, INST_NO_DIFF)) report_custom_again(l, &plan, inst);
    if (refused || !ad_call_is_live(l->ad, &l->a, inst, &plan) || stops_at_references(l, &plan, inst)) {
        bool derived = plan.kind == CALL_derived;
        primal_call(l, inst, derived ? ad_primal(l->ad, plan.callee) : plan.callee->flat);
        zero_written(l, inst);
        return;
    }
    if (plan.kind == CALL_counterparts) counterpart_call(l, &plan, inst);
    else if (plan.kind == CALL_rule) lin_rule_call(l, &plan, inst);
    else if (l->mode == AD_fwd) lin_fwd_call(l, &plan, inst);
    else lin_split_call(l, &plan, inst);
}

/* ---- control flow */

static void lin_region(Lin *l, Region *from);

typedef VEC(int) IntVec;

/* Results that have a differential: active scalars; counterparts of references on all ways. */
static bool carries(const Lin *l, const Val *v) { return is_active(l, v) && type_is_float(v->type); }

/* Which results of control flow come with something: references with counterparts, whichever way was taken;
 * numbers with differentials. */
typedef struct Carried {
    IntVec paired, moving;
} Carried;

static Carried carried_by(Lin *l, const Inst *inst) {
    Carried x = {0};
    for (int i = 0; i < inst->nresults; i++) {
        Val *v = inst->results[i];
        if (carries(l, v)) vec_push(l->ad->arena, &x.moving, i);
        if (!type_is_float(v->type) && is_paired(l, v)) vec_push(l->ad->arena, &x.paired, i);
    }
    return x;
}

static const Type *ref_type(const Lin *l, const Val *old) { return l->refs.at[old->id].type; }

/* Values for the results of `owner`: primal ones, then counterparts, then differentials. */
static ValVec with_pairs(Lin *l, const Inst *owner, const Carried *x, Val *const *values, int count) {
    ValVec all = {0};
    for (int i = 0; i < count; i++) vec_push(l->ad->arena, &all, primal(l, values[i]));
    for (int i = 0; i < x->paired.count; i++) {
        int k = x->paired.at[i];
        vec_push(l->ad->arena, &all, counterpart(l, values[k], ref_type(l, owner->results[k])));
    }
    for (int i = 0; i < x->moving.count; i++)
        vec_push(l->ad->arena, &all, diff_or_zero(l, values[x->moving.at[i]]));
    return all;
}

static void yield_pairs(Lin *l, const Inst *yield, const Inst *owner, const Carried *x) {
    ValVec all = with_pairs(l, owner, x, yield->args, yield->nargs);
    build_yield(&l->b, all.at, all.count);
}

static bool contains_diff(const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next)
        if (inst->tag != TAG_primal) return true;
    return false;
}

static void tag_control(Inst *inst, int ndiff) {
    bool mixed = ndiff > 0;
    for (int i = 0; i < inst->nregions; i++) mixed |= contains_diff(inst->regions[i]);
    inst->tag = mixed ? TAG_mixed : TAG_primal;
}

static void add_results(Lin *l, Inst *copy, const Inst *inst, const Carried *x) {
    for (int i = 0; i < inst->nresults; i++) {
        const Val *old = inst->results[i];
        set_primal(l, old, inst_add_result(copy, old->type, old->name));
    }
    for (int i = 0; i < x->paired.count; i++) {
        const Val *old = inst->results[x->paired.at[i]];
        l->d[old->id] = inst_add_result(copy, ref_type(l, old), ad_diff_name(l->ad, old->name));
    }
    for (int i = 0; i < x->moving.count; i++) {
        const Val *old = inst->results[x->moving.at[i]];
        l->d[old->id] = inst_add_result(copy, old->type, ad_diff_name(l->ad, old->name));
        l->d[old->id]->flags |= VAL_DIFF;
    }
    tag_control(copy, x->moving.count);
}

static void lin_branches(Lin *l, Inst *inst) {
    Carried x = carried_by(l, inst);
    Val *condition = primal(l, inst->args[0]);
    Inst *copy = build_inst(&l->b, (Op)inst->op, &condition, 1, 0, inst->nregions);
    inst_copy_cases(inst, copy);
    Builder outer = l->b;
    for (int k = 0; k < inst->nregions; k++) {
        l->b = build_at_end(copy->regions[k]);
        lin_region(l, inst->regions[k]);
        yield_pairs(l, inst->regions[k]->last, inst, &x);
    }
    l->b = outer;
    add_results(l, copy, inst, &x);
}

/* Values from outside that a region names are those of the copy. */
static void map_operands(Lin *l, CloneMap *map, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++) {
            Val *old = inst->args[i];
            if (!val_is_const(old) && l->p[old->id] && !map_has(&map->vals, PTR_KEY(old)))
                clone_map_val(map, old, l->p[old->id]);
        }
        for (int i = 0; i < inst->nregions; i++) map_operands(l, map, inst->regions[i]);
    }
}

/* A condition is primal code; only its parameters follow the shape of the loop. */
static void copy_condition(Lin *l, const Region *from, Region *to) {
    CloneMap map = {.module = l->m, .func = l->into};
    for (int i = 0; i < from->nparams; i++) clone_map_val(&map, from->params[i], to->params[i]);
    map_operands(l, &map, from);
    clone_region_into(&map, from, to);
}

/* Of the condition, or of the body, whose parameters are those that its copy will read. */
static void loop_params(Lin *l, const Inst *loop, int k, Region *to, const Carried *x) {
    const Region *from = loop->regions[k];
    for (int i = 0; i < from->nparams; i++) {
        Val *param = region_add_param(to, from->params[i]->type, from->params[i]->name);
        if (k) set_primal(l, from->params[i], param);
    }
    for (int i = 0; i < x->paired.count; i++) {
        const Val *old = from->params[x->paired.at[i]];
        const Type *type = ref_type(l, loop->results[x->paired.at[i]]);
        Val *param = region_add_param(to, type, ad_diff_name(l->ad, old->name));
        if (k) l->d[old->id] = param;
    }
    for (int i = 0; i < x->moving.count; i++) {
        const Val *old = from->params[x->moving.at[i]];
        Val *param = region_add_param(to, old->type, ad_diff_name(l->ad, old->name));
        param->flags |= VAL_DIFF;
        if (k) l->d[old->id] = param;
    }
}

static void lin_loop(Lin *l, Inst *loop) {
    Carried x = carried_by(l, loop);
    ValVec args = with_pairs(l, loop, &x, loop->args, loop->nargs);
    Inst *copy = build_inst(&l->b, OP_loop, args.at, args.count, 0, 2);
    copy->hints = loop->hints;
    for (int k = 0; k < 2; k++) loop_params(l, loop, k, copy->regions[k], &x);
    copy_condition(l, loop->regions[0], copy->regions[0]);
    Builder outer = l->b;
    l->b = build_at_end(copy->regions[1]);
    lin_region(l, loop->regions[1]);
    yield_pairs(l, loop->regions[1]->last, loop, &x);
    l->b = outer;
    add_results(l, copy, loop, &x);
}

/* Of a reference that is returned. A function that was given none has none to give. */
static Val *given_counterpart(Lin *l, Val *old, const Leaf *leaf) {
    if (!diff(l, old) && ad_is_own_number(&l->refs, leaf, old)) return primal(l, old);
    RefState state = type_is_float(old->type) ? REF_plain : ad_ref_of(&l->refs, old).state;
    bool takes = false;
    for (int i = 0; i < l->f->leaves.count; i++)
        takes |= ad_has_role(&l->f->leaves.at[i], AS_counterpart, false);
    if (state == REF_lost || (state == REF_plain && takes && old->type->kind == TYPE_buffer))
        diag_report(l->m->diags, DIAG_no_counterpart, l->b.loc ? l->b.loc : l->f->flat->loc);
    return counterpart(l, old, leaf->dtype);
}

static Val *returned(Lin *l, const Inst *inst, const Place *place) {
    const Leaf *leaf = &l->f->leaves.at[place->leaf];
    Val *old = inst->args[leaf->out];
    if (place->role == AS_primal) return primal(l, old);
    return place->role == AS_counterpart ? given_counterpart(l, old, leaf) : diff_or_zero(l, old);
}

static void lin_return(Lin *l, const Inst *inst) {
    ValVec values = {0};
    for (int i = 0; i < l->results->count; i++)
        vec_push(l->ad->arena, &values, returned(l, inst, &l->results->at[i]));
    build_return(&l->b, values.at, values.count);
}

static void lin_inst(Lin *l, Inst *inst) {
    l->b.loc = inst->loc;
    Inst *before = l->b.region->last;
    switch ((Op)inst->op) {
    case OP_if:
    case OP_switch: lin_branches(l, inst); break;
    case OP_loop: lin_loop(l, inst); break;
    case OP_call: lin_call(l, inst); break;
    case OP_return: lin_return(l, inst); return;
    case OP_yield: return; /* by the owner */
    default:
        if (op_has(inst->op, OP_PURE) && inst->nresults == 1) lin_pure(l, inst);
        else lin_memory(l, inst);
    }
    tag_from(l, before);
}

static void lin_region(Lin *l, Region *from) {
    for (Inst *inst = from->first; inst; inst = inst->next) lin_inst(l, inst);
}

/* ---- entries */

void ad_declare_fwd(Ad *ad, AdFunc *f) {
    if (!f->fwd.func) ad_declare(ad, f, SHAPE_fwd, (Contents){0}, &f->fwd);
}

static void bind_params(Lin *l, const Made *into) {
    for (int i = 0; i < into->params.count; i++) {
        const Place *place = &into->params.at[i];
        const Val *old = l->f->flat->body->params[l->f->leaves.at[place->leaf].in];
        Val *param = into->func->body->params[i];
        *(place->role == AS_primal ? &l->p[old->id] : &l->d[old->id]) = param;
        if (place->role == AS_differential) param->flags |= VAL_DIFF;
    }
}

void ad_linearize(Ad *ad, AdFunc *f, AdMode mode, const Made *into, Map *calls) {
    uint32_t n = f->flat->nvals + 1;
    Lin l = {.ad = ad,
             .m = ad->m,
             .f = f,
             .mode = mode,
             .a = ad_activity(ad, f, mode),
             .into = into->func,
             .results = &into->results,
             .calls = calls};
    l.into->flags |= f->flat->flags & FUNC_PRECISE;
    l.refs = ad_references(ad, f, mode);
    l.p = arena_array(ad->arena, Val *, n);
    l.d = arena_array(ad->arena, Val *, n);
    l.b = build_at_end(func_begin(l.into));
    bind_params(&l, into);
    l.escapes = ad_addresses_escape(ad, f, &l.a);
    lin_region(&l, f->flat->body);
}
