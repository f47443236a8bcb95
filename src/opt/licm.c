/* Loop-invariant code motion: what a loop computes anew in each iteration, from operands that do not change
 * in it, is computed once before it.
 *
 * Operations never fault, so that computing one whose result is not needed is safe. So is its derivative:
 * what a loop without iterations would have used gets an adjoint of zero, and autodiff sees to it that this
 * stays zero. What leaves constructs inside the body must be cheap and no floating arithmetic at all
 * (addresses, integers). Loads move from the condition and the top of the body, if they read memory that
 * nobody else reaches and the loop does not write. From the condition, which is asked once at least, other
 * loads move as well if the loop writes nothing that others reach: for (p = start[i]; p < start[i + 1]; p++)
 * ...
 *
 * On a GPU, what a kernel reads from buffers that programs only read moves, too, if the loop does nothing
 * else to memory that others reach than add to it: buffers of different uniforms are taken to be different
 * memory, as in late.c. Compilers would read it again after each sum. It is in registers then, so that there
 * is a limit, and doubles, which take two, stay.
 *
 * Of what differentiation doubles, it is the factor from outside of the loop: (x + x) * y, and twice x * y,
 * are x * (y + y). Doubling is exact.
 *
 * Inner loops come first, so that code can move out of several. */
#include "opt.h"

enum { MOST_HELD = 32 }; /* numbers that are read from buffers before a loop, in a kernel */

typedef struct Licm {
    Func *func;
    Arena *scratch;
    Memory memory;
    Inst *loop;  /* at work */
    Map written; /* keys of private objects that the loop writes */
    Map doubled; /* Val -> twice of it, before the loop */
    int *uses;   /* by Val.id, in a kernel for a GPU; else NULL */
    bool alters; /* the loop does something else than adding to memory that others reach */
    bool writes; /* it does something to that, or may */
    int held;
    bool changed;
} Licm;

/* Regions know how deep they are. */
static intptr_t depth_of(const Region *region) { return (intptr_t)region->note; }

static bool is_from_outside(const Licm *l, const Val *v) {
    if (v->kind == VAL_const) return true;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    return depth_of(region) <= depth_of(l->loop->parent);
}

static bool has_outside_operands(const Licm *l, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (!is_from_outside(l, inst->args[i])) return false;
    return true;
}

/* ---- what the loop writes */

static void note_written(Licm *l, const Val *address) {
    Object object = opt_memory_object(&l->memory, address);
    if (object.key) map_put(l->scratch, &l->written, PTR_KEY(object.key), l->loop);
}

/* Is it more than a sum? */
static bool alters_others(const Licm *l, const Inst *inst) {
    if (opt_is_sum(l->uses, inst)) return false;
    if (op_has(inst->op, OP_EFFECT | OP_CALLS)) return true;
    for (int i = 0; i < inst->nargs && op_has(inst->op, OP_WRITES); i++) {
        Role role = ir_role(inst, i);
        if (role != ROLE_value && role != ROLE_read && !opt_is_of_thread(inst->args[i])) return true;
    }
    return false;
}

static bool writes_others(Licm *l, const Inst *inst) {
    return op_has(inst->op, OP_EFFECT | OP_CALLS) ||
           (op_has(inst->op, OP_WRITES) && !opt_memory_object(&l->memory, inst->args[0]).is_private);
}

static void find_written(void *user, Inst *inst) {
    Licm *l = user;
    l->writes |= writes_others(l, inst);
    if (l->uses) l->alters |= alters_others(l, inst);
    if (op_has(inst->op, OP_WRITES)) note_written(l, inst->args[0]);
    for (int i = 0; inst->op == OP_call && i < inst->nargs; i++) {
        const Param *param = &inst->callee->params[i];
        if ((param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in) note_written(l, inst->args[i]);
    }
}

static bool reads_far(const Licm *l, const Inst *load) {
    const Val *buffer =
        l->uses && !l->alters && l->held < MOST_HELD ? opt_memory_buffer(load->args[0]) : NULL;
    const Type *type = load->results[0]->type;
    return buffer && type_is_read_only(buffer->type) && type_is_scalar(type) &&
           type_layout(type, LAYOUT_scalar).size <= 4;
}

/* `always`: the load is done in any case. */
static bool reads_unchanged(const Licm *l, const Inst *load, bool always) {
    if (reads_far(l, load)) return true;
    Object object = opt_memory_object(&l->memory, load->args[0]);
    if (object.key && (object.is_private || object.is_constant))
        return map_get(&l->written, PTR_KEY(object.key)) != l->loop;
    return always && !l->writes;
}

/* ---- what is doubled */

/* The factors of twice a product. */
static bool find_factors(const Inst *inst, Val *factors[2]) {
    for (int i = 0; i < 2 && inst->op == OP_mul; i++) {
        factors[0] = val_half(inst->args[i]);
        factors[1] = inst->args[1 - i];
        if (factors[0]) return true;
    }
    const Val *half = inst->nresults == 1 ? val_half(inst->results[0]) : NULL;
    if (!half || half->kind != VAL_inst || half->inst->op != OP_mul) return false;
    factors[0] = inst_operand(half->inst, 0);
    factors[1] = inst_operand(half->inst, 1);
    return true;
}

static Val *twice(Licm *l, Val *v, Loc loc) {
    Val *sum = map_get(&l->doubled, PTR_KEY(v));
    if (sum) return sum;
    Builder b = build_before(l->loop);
    b.loc = loc;
    sum = build_sum(&b, v, v);
    map_put(l->scratch, &l->doubled, PTR_KEY(v), sum);
    return sum;
}

static void double_outside(Licm *l, Inst *inst) {
    Val *factors[2];
    if (!find_factors(inst, factors)) return;
    int outer = is_from_outside(l, factors[0]) ? 0 : 1;
    if (!is_from_outside(l, factors[outer]) || is_from_outside(l, factors[1 - outer])) return;
    if (inst->op == OP_mul && outer == 0) return; /* it has been doubled there */
    inst->op = OP_mul;
    inst->flags &= (uint8_t)~INST_FREE;
    inst->args[0] = factors[1 - outer];
    inst->args[1] = twice(l, factors[outer], inst->loc);
    l->changed = true;
}

/* ---- moving */

/* How much may leave a region; ALWAYS: all, and it is done in any case. */
typedef enum Freedom { CHEAP_ONLY, ALL, ALWAYS } Freedom;

static bool is_float(const Inst *inst) { return type_is_float(type_element(inst->results[0]->type)); }

static bool can_move(const Licm *l, const Inst *inst, Freedom freedom) {
    if (inst->nresults != 1 || !has_outside_operands(l, inst)) return false;
    if (inst->op == OP_load) return freedom != CHEAP_ONLY && reads_unchanged(l, inst, freedom == ALWAYS);
    if (!op_has(inst->op, OP_PURE)) return false;
    return freedom != CHEAP_ONLY || (op_info[inst->op].cost <= 1 && !is_float(inst));
}

static void move_out_of(Licm *l, Region *region, Freedom freedom) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (can_move(l, inst, freedom)) {
            inst_remove(inst);
            inst_insert_before(l->loop, inst);
            l->held += inst->op == OP_load && opt_memory_buffer(inst->args[0]);
            l->changed = true;
        } else {
            double_outside(l, inst);
        }
        for (int i = 0; i < inst->nregions; i++) move_out_of(l, inst->regions[i], CHEAP_ONLY);
    }
}

static void visit_region(Licm *l, Region *region);

static void visit_inst(Licm *l, Inst *inst) {
    for (int i = 0; i < inst->nregions; i++) visit_region(l, inst->regions[i]);
    if (inst->op != OP_loop) return;
    l->loop = inst;
    l->alters = l->writes = false;
    l->doubled = (Map){0};
    inst_walk(inst, find_written, l);
    for (int i = 0; i < inst->nregions; i++) move_out_of(l, inst->regions[i], i == 0 ? ALWAYS : ALL);
}

static void visit_region(Licm *l, Region *region) {
    intptr_t depth = region->owner ? depth_of(region->owner->parent) + 1 : 0;
    region->note = (void *)depth;
    for (Inst *inst = region->first; inst; inst = inst->next) visit_inst(l, inst);
}

bool opt_licm(Func *func) {
    if (!func->body) return false;
    Licm l = {.func = func, .scratch = arena_scratch(func->module->arena)};
    ir_resolve_func(func);
    opt_memory_init(&l.memory, l.scratch, func);
    if (func->module->many_threads && func->group_size[0] > 0)
        l.uses = region_count_uses(l.scratch, func->body);
    visit_region(&l, func->body);
    arena_free(l.scratch);
    return l.changed;
}
