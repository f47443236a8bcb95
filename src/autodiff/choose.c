/* Choose: references that branches and loops choose between are chosen by number.
 *
 * A reverse pass may need a reference that was chosen on the way, and keeps it, like any value: but out of a tape or a context it comes without
 * its counterpart, so that this pass could not be differentiated again. So what a branch or loop hands on is which of the
 * references was chosen, and where one is used it is selected by that number:
 *
 *   %c = if %0 -> Buf {              %k = if %0 -> int {
 *     yield %a                         yield 0
 *   } else {                         } else {
 *     yield %b                         yield 1
 *   }                                }
 *                                    %1 = eq %k, 0
 *                                    %c = select %1, %a, %b
 *
 * The reverse pass keeps the number, and selects once more.
 *
 * What an instruction with regions gives comes through others inside of it; all of them hand on numbers, if everything that they choose
 * between (the sources) is made outside, where it can be selected. Those inside whose values stay inside come later, for themselves.
 * What stood there before is of no use to anyone then, and goes when the code is cleaned up. */
#include "autodiff/ad.h"

/* An instruction that hands a choice on: a branch that gives it, a loop that carries it, a select. */
typedef struct Member {
    Inst *inst;
    int index;
} Member;

typedef struct Choose {
    Ad *ad;
    const AdFunc *f;
    const Type *type; /* of numbers */
    int *uses;        /* by id, as it was in the beginning */
    uint32_t nuses;   /* ids that are known to it */
    Map done;         /* results that are handed on by number */
    bool changed;
    /* of the choice at hand */
    const Inst *root; /* outermost of its members */
    VEC(Member) members;
    ValVec sources;
    Map of;          /* Val that a member gives -> its number */
    Map inside;      /* Val -> how often members use it */
    bool fit, pairs; /* all sources are outside of the root; some may have counterparts */
} Choose;

/* ---- what has a counterpart */

static bool is_dual_param(const Choose *x, const Val *v) {
    const Leaves *leaves = &x->f->leaves;
    for (int i = 0; v->region == x->f->flat->body && i < leaves->count; i++)
        if (leaves->at[i].in == v->index) return leaves->at[i].dual;
    return false;
}

static bool may_have_counterpart(const Choose *x, Val *v) {
    if (val_is_const(v)) return false;
    if (v->kind == VAL_param) return is_dual_param(x, v);
    if (v->inst->op == OP_select)
        return may_have_counterpart(x, inst_operand(v->inst, 1)) ||
               may_have_counterpart(x, inst_operand(v->inst, 2));
    if (v->inst->op == OP_call) return ad_gives_references(&ad_func(x->ad, v->inst->callee)->leaves);
    Val *memory = v->inst->op == OP_load ? ad_root(inst_operand(v->inst, 0)) : NULL;
    bool is_reference = v->type->kind == TYPE_buffer || v->type->kind == TYPE_pointer;
    return memory && (memory->kind == VAL_param ? is_dual_param(x, memory) : is_reference);
}

/* ---- what belongs together */

/* The instruction of the root, or inside of it, that hands it on; NULL: it is a source. */
static Inst *handed_on_by(const Choose *x, const Val *v) {
    if (val_is_const(v)) return NULL;
    if (v->kind == VAL_inst && v->inst == x->root) return v->inst;
    if (!inst_contains(x->root, v)) return NULL;
    if (v->kind == VAL_param) return v->region->owner;
    return v->inst->nregions || v->inst->op == OP_select ? v->inst : NULL;
}

/* Those that it hands on: of a branch by region, of a loop the first and the next, of a select both. */
static int choices_of(const Inst *inst) { return inst->nregions ? inst->nregions : 2; }

static Val **choice(const Member *member, int k) {
    const Inst *inst = member->inst;
    if (inst->op == OP_select) return &member->inst->args[1 + k];
    if (inst->op == OP_loop && k == 0) return &inst->args[member->index];
    return &inst->regions[k]->last->args[member->index];
}

static void add_source(Choose *x, Val *v) {
    x->fit &= !inst_contains(x->root, v);
    x->pairs |= may_have_counterpart(x, v);
    for (int i = 0; i < x->sources.count; i++)
        if (val_is_same(x->sources.at[i], v)) return;
    vec_push(x->ad->arena, &x->sources, v);
}

static void add(Choose *x, Val *v) {
    Inst *inst = handed_on_by(x, v);
    if (!inst) {
        add_source(x, v);
        return;
    }
    const Val *result = inst->results[v->index];
    if (map_has(&x->of, PTR_KEY(result))) return;
    map_put(x->ad->arena, &x->of, PTR_KEY(result), NULL);
    vec_push(x->ad->arena, &x->members, ((Member){.inst = inst, .index = v->index}));
}

static void collect(Choose *x, Inst *root, int index) {
    x->root = root;
    x->members.count = x->sources.count = 0;
    x->of = x->inside = (Map){0};
    x->fit = true;
    x->pairs = false;
    add(x, root->results[index]);
    for (int i = 0; i < x->members.count && x->fit; i++) {
        for (int k = 0; k < choices_of(x->members.at[i].inst); k++) {
            Val *v = ir_resolve(*choice(&x->members.at[i], k));
            uintptr_t before = (uintptr_t)map_get(&x->inside, PTR_KEY(v));
            map_put(x->ad->arena, &x->inside, PTR_KEY(v), (void *)(before + 1));
            add(x, v);
        }
    }
}

/* ---- numbers in place of references */

static Val *number_of(const Choose *x, Val *v) {
    Val *number = map_get(&x->of, PTR_KEY(v));
    for (int i = 0; !number && i < x->sources.count; i++)
        if (val_is_same(x->sources.at[i], v)) return ir_const_int(x->ad->m, x->type, i);
    return number;
}

static void set_number(Choose *x, const Val *v, Val *number) {
    map_put(x->ad->arena, &x->of, PTR_KEY(v), number);
}

/* The number comes out of it, and goes into the regions of a loop; what goes in is told when all are there. */
static void make_room(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    Name name = inst->results[member->index]->name;
    if (inst->op == OP_select) {
        Builder b = build_before(inst);
        inst = build_inst(&b, OP_select, inst->args, 3, 0, 0);
    }
    set_number(x, member->inst->results[member->index], inst_add_result(inst, x->type, name));
    if (inst->op == OP_loop)
        for (int k = 0; k < 2; k++)
            set_number(x, inst->regions[k]->params[member->index],
                       region_add_param(inst->regions[k], x->type, name));
}

static void hand_on(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    for (int k = 0; k < choices_of(inst); k++) {
        Val *number = number_of(x, ir_resolve(*choice(member, k)));
        if (inst->op == OP_select) inst->prev->args[1 + k] = number;
        else inst_add_arg(inst->op == OP_loop && k == 0 ? inst : inst->regions[k]->last, number);
    }
}

/* ---- references by number */

static void select_by_number(Choose *x, Builder b, Val *v) {
    bool is_used = v->id >= x->nuses || x->uses[v->id] > (int)(uintptr_t)map_get(&x->inside, PTR_KEY(v));
    if (!is_used) return;
    Val *chosen = x->sources.at[x->sources.count - 1], *number = number_of(x, v);
    for (int i = x->sources.count - 2; i >= 0; i--) {
        Val *is = build_binary(&b, OP_eq, number, ir_const_int(x->ad->m, x->type, i));
        chosen = build_select(&b, is, x->sources.at[i], chosen);
    }
    v->forward = chosen;
}

static void select_for(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    Val *result = inst->results[member->index];
    map_put(x->ad->arena, &x->done, PTR_KEY(result), x);
    select_by_number(x, build_after(inst), result);
    for (int k = 0; inst->op == OP_loop && k < 2; k++)
        select_by_number(x, build_before(inst->regions[k]->first), inst->regions[k]->params[member->index]);
}

static void choose_by_number(Choose *x, Inst *root, int index) {
    if (type_is_float(root->results[index]->type) || map_has(&x->done, PTR_KEY(root->results[index]))) return;
    collect(x, root, index);
    if (!x->fit || !x->pairs) return;
    for (int i = 0; i < x->members.count; i++) make_room(x, &x->members.at[i]);
    for (int i = 0; i < x->members.count; i++) hand_on(x, &x->members.at[i]);
    for (int i = 0; i < x->members.count; i++) select_for(x, &x->members.at[i]);
    x->changed = true;
}

static void walk(Choose *x, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        int count = inst->nregions ? inst->nresults : 0;
        for (int i = 0; i < count; i++) choose_by_number(x, inst, i);
        for (int i = 0; i < inst->nregions; i++) walk(x, inst->regions[i]);
    }
}

bool ad_choose_by_number(Ad *ad, const AdFunc *f) {
    Choose x = {.ad = ad, .f = f, .type = type_basic(ad->m->types, TYPE_int), .nuses = f->flat->nvals};
    x.uses = region_count_uses(ad->arena, f->flat->body);
    walk(&x, f->flat->body);
    if (x.changed) ir_resolve_func(f->flat);
    return x.changed;
}
