/* Choose: references that branches and loops choose between are chosen by number.
 *
 * A reverse pass may need a reference that was chosen on the way, and keeps it, like any value: but out of a
 * tape or a context it comes without its counterpart, so that this pass could not be differentiated again. So
 * what a branch or loop hands on is which of the references was chosen, and where one is used it is selected
 * by that number:
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
 * What an instruction with regions gives comes through others inside of it; all of them hand on numbers, if
 * everything that they choose between (the sources) is made outside, where it can be selected. Those inside
 * whose values stay inside come later, for themselves. Of an address in a variable (a place) it is enough
 * that the variable is there before: indices that are computed inside are handed on beside the number, and so
 * is how far an address has been moved on since it was chosen, `p = p + 1`. A place in what was chosen, `p =
 * &q->b`, is one of the places in all that q was chosen from: q comes first, so there are several rounds. A
 * local array of references hands them on, too: it becomes one of numbers, if all that is put into it was
 * made before it. If its elements are structs, each of their references has an array of numbers of its own.
 * What stood there before is of no use to anyone then, and goes when the code is cleaned up. */
#include "autodiff/ad.h"

#include <string.h>

/* An instruction that hands a choice on: a branch that gives it, a loop that carries it, a select. */
typedef struct Member {
    Inst *inst;
    int index;
} Member;

typedef struct Array Array;

typedef struct Copied {
    Inst *copy;
    Array *from;
} Copied;

/* A local array, or a field of its elements, that hands on what is stored in it. */
struct Array {
    Val *var, **numbers; /* by part */
    const int *fields;   /* from the variable to it */
    int nfields;
    Array *next; /* of the same variable */
    VEC(Inst *) loads, stores;
    VEC(Copied) copies; /* into it, with what is around it */
};

typedef struct Choose {
    Ad *ad;
    const AdFunc *f;
    const Type *type, *index_type; /* of numbers, and of indices beside them */
    int *uses;                     /* by id, as it was before the first branch */
    uint32_t nuses;                /* ids that are known to it */
    Map done;                      /* results that are handed on by number */
    Map arrays;                    /* Val of a var -> Array, the first of them */
    Map escaped;                   /* Val of a var that something else is done with */
    bool changed;
    bool handed, waits; /* in this round: something was changed so; a choice is to follow */
    /* of the choice at hand */
    const Inst *root; /* outermost of its members; or an array: the first of them */
    VEC(Member) members;
    VEC(Array *) handing; /* arrays that are members */
    ValVec sources;
    Map of;          /* Val that a member gives -> its parts: the number; indices; by how much it was moved */
    int nindices;    /* of the source that has most of them */
    bool moves;      /* what was chosen is moved on */
    Map inside;      /* Val -> how often members use it */
    Map asked;       /* values: whether one may have a counterpart */
    bool fit, pairs; /* all sources are made outside of the root, or before it; some may have counterparts */
} Choose;

/* ---- what has a counterpart, or must be found again in the reverse: a variable */

static bool is_dual_param(const Choose *x, const Val *v) {
    const Leaves *leaves = &x->f->leaves;
    for (int i = 0; v->region == x->f->flat->body && i < leaves->count; i++)
        if (leaves->at[i].in == v->index) return leaves->at[i].dual;
    return false;
}

static bool may_have_counterpart(Choose *x, Val *v);

/* One that a branch gives, or a loop carries: it does as it begins. */
static bool may_give_counterpart(Choose *x, const Inst *inst, int index) {
    if (inst->op == OP_loop) return may_have_counterpart(x, inst_operand(inst, index));
    for (int i = 0; i < inst->nregions; i++) {
        const Inst *end = inst->regions[i]->last;
        if (end->op == OP_yield && may_have_counterpart(x, inst_operand(end, index))) return true;
    }
    return false;
}

/* Of what was asked about before, all that leads there was, too. */
static bool may_have_counterpart(Choose *x, Val *v) {
    if (val_is_const(v) || map_has(&x->asked, PTR_KEY(v))) return false;
    map_put(x->ad->arena, &x->asked, PTR_KEY(v), v);
    if (v->type->kind == TYPE_pointer && ad_is_object(v)) return true;
    if (v->kind == VAL_param && v->region->owner) return may_give_counterpart(x, v->region->owner, v->index);
    if (v->kind == VAL_param) return is_dual_param(x, v);
    if (v->inst->nregions) return may_give_counterpart(x, v->inst, v->index);
    if (v->inst->op == OP_select)
        return may_have_counterpart(x, inst_operand(v->inst, 1)) ||
               may_have_counterpart(x, inst_operand(v->inst, 2));
    if (v->inst->op == OP_call) return ad_gives_references(&ad_func(x->ad, v->inst->callee)->leaves);
    Val *memory = v->inst->op == OP_load ? ad_root(inst_operand(v->inst, 0)) : NULL;
    bool is_reference = v->type->kind == TYPE_buffer || v->type->kind == TYPE_pointer;
    return memory && (memory->kind == VAL_param ? is_dual_param(x, memory) : is_reference);
}

/* ---- what belongs together */

static bool is_made_before(const Val *v, const Inst *inst) {
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    const Inst *at = inst;
    while (at && at->parent != region) at = at->parent->owner;
    if (!at || v->kind == VAL_param) return at != NULL;
    const Inst *next = v->inst->next;
    while (next && next != at) next = next->next;
    return next != NULL;
}

static bool is_outside(const Choose *x, const Val *v) {
    if (val_is_const(v)) return true;
    if (x->root->op == OP_var) return is_made_before(v, x->root);
    return !(v->kind == VAL_inst && v->inst == x->root) && !inst_contains(x->root, v);
}

static bool is_local(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_var; }

/* The variable that it is an element or a field of; NULL: it is none, or found in another way. */
static Val *variable_of(Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_elem || address->inst->op == OP_field))
        address = inst_operand(address->inst, 0);
    return is_local(address) ? address : NULL;
}

/* The fields that lead there, into `fields` unless that is NULL: how many. */
static int fields_of(const Val *address, int *fields) {
    int count = 0;
    if (is_local(address)) return 0;
    count = fields_of(inst_operand(address->inst, 0), fields);
    if (address->inst->op != OP_field) return count;
    if (fields) fields[count] = address->inst->index;
    return count + 1;
}

static Array *find_array(const Choose *x, const Val *var, const int *fields, int nfields) {
    Array *array = map_get(&x->arrays, PTR_KEY(var));
    for (; array; array = array->next)
        if (array->nfields == nfields && !memcmp(array->fields, fields, (size_t)nfields * sizeof *fields))
            break;
    return array;
}

/* The local array that it comes out of; NULL: none. */
static Array *array_of(const Choose *x, const Val *v) {
    if (v->kind != VAL_inst || v->inst->op != OP_load) return NULL;
    Val *address = inst_operand(v->inst, 0), *var = variable_of(address);
    if (!var) return NULL;
    int *fields = arena_array(x->ad->arena, int, fields_of(address, NULL) + 1);
    return find_array(x, var, fields, fields_of(address, fields));
}

/* The instruction of the root, or inside of it, or behind it, that hands it on; NULL: it is a source. */
static Inst *handed_on_by(const Choose *x, const Val *v) {
    if (is_outside(x, v)) return NULL;
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

/* ---- places */

static bool is_step(const Val *v) {
    return v->kind == VAL_inst &&
           (v->inst->op == OP_field || v->inst->op == OP_elem || v->inst->op == OP_offset);
}

/* What was chosen, and then moved on; NULL: it is something else. */
static Val *moved_from(const Choose *x, Val *v) {
    if (is_outside(x, v) || !is_step(v)) return NULL;
    Val *base = v;
    while (!is_outside(x, base) && base->kind == VAL_inst && base->inst->op == OP_offset)
        base = inst_operand(base->inst, 0);
    bool is_chosen = !is_outside(x, base) && (handed_on_by(x, base) || array_of(x, base));
    return is_chosen && base != v ? base : NULL;
}

/* An index on the way to a place, if it is computed inside; else NULL. */
static Val *inner_index(const Choose *x, const Val *step) {
    Val *index = step->inst->op == OP_field ? NULL : inst_operand(step->inst, 1);
    return index && !is_outside(x, index) ? index : NULL;
}

/* The indices that are computed inside, into `indices` unless that is NULL: how many; -1: it is no place in
 * something outside. */
static int indices_of(const Choose *x, const Val *place, Val **indices) {
    if (is_outside(x, place)) return 0;
    if (!is_step(place)) return -1;
    int count = indices_of(x, inst_operand(place->inst, 0), indices);
    Val *index = inner_index(x, place);
    if (count < 0 || !index) return count;
    if (indices) indices[count] = index;
    return count + 1;
}

/* Are they the same but for indices that are computed inside? */
static bool is_same_place(const Choose *x, const Val *a, const Val *b) {
    if (val_is_same(a, b)) return true;
    if (is_outside(x, a) || is_outside(x, b) || a->inst->op != b->inst->op ||
        a->inst->index != b->inst->index)
        return false;
    bool alike = a->inst->op == OP_field || (inner_index(x, a) && inner_index(x, b)) ||
                 val_is_same(inst_operand(a->inst, 1), inst_operand(b->inst, 1));
    return alike && is_same_place(x, inst_operand(a->inst, 0), inst_operand(b->inst, 0));
}

/* What the steps inside start from. */
static Val *start_of(const Choose *x, Val *v) {
    while (!is_outside(x, v) && is_step(v)) v = inst_operand(v->inst, 0);
    return v;
}

static void add_source(Choose *x, Val *v) {
    int count = indices_of(x, v, NULL);
    x->fit &= count >= 0;
    x->waits |= count < 0 && (handed_on_by(x, start_of(x, v)) || array_of(x, start_of(x, v)));
    if (!x->fit) return;
    x->pairs |= may_have_counterpart(x, v);
    if (count > x->nindices) x->nindices = count;
    for (int i = 0; i < x->sources.count; i++)
        if (is_same_place(x, x->sources.at[i], v)) return;
    vec_push(x->ad->arena, &x->sources, v);
}

static void add_array(Choose *x, Array *array) {
    const Val *var = array->var;
    if (map_has(&x->of, PTR_KEY(array))) return;
    map_put(x->ad->arena, &x->of, PTR_KEY(array), NULL);
    vec_push(x->ad->arena, &x->handing, array);
    x->fit &= !map_has(&x->escaped, PTR_KEY(var)) &&
              (var->inst == x->root || is_made_before(x->root->results[0], var->inst));
}

static void add(Choose *x, Val *v) {
    Val *base = moved_from(x, v);
    x->moves |= base != NULL;
    if (base) v = base;
    Inst *inst = handed_on_by(x, v);
    Array *array = x->root->op == OP_var && !is_outside(x, v) ? array_of(x, v) : NULL;
    if (array) add_array(x, array);
    else if (!inst) add_source(x, v);
    if (!inst) return;
    const Val *result = inst->results[v->index];
    if (map_has(&x->of, PTR_KEY(result))) return;
    map_put(x->ad->arena, &x->of, PTR_KEY(result), NULL);
    vec_push(x->ad->arena, &x->members, ((Member){.inst = inst, .index = v->index}));
}

typedef struct Arm {
    const Inst *select;
    int index; /* of its operands */
} Arm;

static Val *arm_instead(void *user, Builder *b, Val *v) {
    const Arm *arm = user;
    (void)b;
    return v == arm->select->results[0] ? inst_operand(arm->select, arm->index) : NULL;
}

/* A place in one of two is one of two places. */
static Val *spread(const Choose *x, Val *v) {
    const Val *start = start_of(x, v);
    bool is_either = start != v && !is_outside(x, start) && start->kind == VAL_inst &&
                     start->inst->op == OP_select && start->type->kind == TYPE_pointer;
    if (!is_either || moved_from(x, v)) return v;
    Builder b = build_after(v->inst);
    Val *one = build_place_again(&b, v, arm_instead, &(Arm){start->inst, 1});
    Val *other = build_place_again(&b, v, arm_instead, &(Arm){start->inst, 2});
    return build_select(&b, inst_operand(start->inst, 0), one, other);
}

static void add_choice(Choose *x, Val **choice) {
    Val *v = *choice = spread(x, ir_resolve(*choice));
    uintptr_t before = (uintptr_t)map_get(&x->inside, PTR_KEY(v));
    map_put(x->ad->arena, &x->inside, PTR_KEY(v), (void *)(before + 1));
    add(x, v);
}

static void begin(Choose *x, const Inst *root) {
    x->root = root;
    x->members.count = x->handing.count = x->sources.count = 0;
    x->of = x->inside = x->asked = (Map){0};
    x->nindices = 0;
    x->fit = true;
    x->pairs = x->moves = false;
}

static void collect(Choose *x) {
    int member = 0, array = 0;
    while (x->fit && (member < x->members.count || array < x->handing.count)) {
        if (member < x->members.count) {
            const Member *m = &x->members.at[member++];
            for (int k = 0; k < choices_of(m->inst); k++) add_choice(x, choice(m, k));
        } else {
            const Array *a = x->handing.at[array++];
            for (int i = 0; i < a->stores.count; i++) add_choice(x, &a->stores.at[i]->args[1]);
            for (int i = 0; i < a->copies.count; i++) add_array(x, a->copies.at[i].from);
        }
    }
}

/* ---- numbers in place of references */

static int nparts(const Choose *x) { return 1 + x->nindices + x->moves; }

static const Type *part_type(const Choose *x, int part) { return part == 0 ? x->type : x->index_type; }

static Val **make_parts(Choose *x, const Val *v) {
    Val **parts = arena_array(x->ad->arena, Val *, nparts(x));
    map_put(x->ad->arena, &x->of, PTR_KEY(v), parts);
    return parts;
}

static Val **parts_of_source(Choose *x, Val *v) {
    Val **parts = make_parts(x, v), **indices = arena_array(x->ad->arena, Val *, nparts(x));
    int count = indices_of(x, v, indices), number = 0;
    while (!is_same_place(x, x->sources.at[number], v)) number++;
    parts[0] = ir_const_int(x->ad->m, x->type, number);
    for (int i = 1; i < nparts(x); i++) {
        Builder b = v->kind == VAL_inst ? build_after(v->inst) : (Builder){0};
        parts[i] = i <= count ? build_convert(&b, indices[i - 1], x->index_type)
                              : ir_const_int(x->ad->m, x->index_type, 0);
    }
    return parts;
}

static Val **parts_of(Choose *x, Val *v) {
    Val **parts = map_get(&x->of, PTR_KEY(v)), *base = parts ? NULL : moved_from(x, v);
    if (parts) return parts;
    if (!base) return parts_of_source(x, v);
    Val **before = parts_of(x, inst_operand(v->inst, 0));
    Builder b = build_after(v->inst);
    Val *by = build_convert(&b, inst_operand(v->inst, 1), x->index_type);
    int last = nparts(x) - 1;
    parts = make_parts(x, v);
    for (int i = 0; i < last; i++) parts[i] = before[i];
    parts[last] = build_binary(&b, OP_add, before[last], by);
    return parts;
}

/* The parts come out of it, and go into the regions of a loop; what goes in is told when all are there. */
static void make_room(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    Val *result = inst->results[member->index], **parts = make_parts(x, result);
    Builder b = build_before(inst);
    for (int i = 0; i < nparts(x); i++) {
        Inst *gives = inst->op == OP_select ? build_inst(&b, OP_select, inst->args, 3, 0, 0) : inst;
        parts[i] = inst_add_result(gives, part_type(x, i), result->name);
    }
    for (int k = 0; inst->op == OP_loop && k < 2; k++) {
        Val **inner = make_parts(x, inst->regions[k]->params[member->index]);
        for (int i = 0; i < nparts(x); i++)
            inner[i] = region_add_param(inst->regions[k], part_type(x, i), result->name);
    }
}

static void hand_on(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    Val **gives = parts_of(x, inst->results[member->index]);
    for (int k = 0; k < choices_of(inst); k++) {
        Val **parts = parts_of(x, ir_resolve(*choice(member, k)));
        for (int i = 0; i < nparts(x); i++) {
            if (inst->op == OP_select) gives[i]->inst->args[1 + k] = parts[i];
            else inst_add_arg(inst->op == OP_loop && k == 0 ? inst : inst->regions[k]->last, parts[i]);
        }
    }
}

/* ---- references by number */

static Val *place_by_indices(const Choose *x, Builder *b, Val *source, Val **indices, int *used) {
    if (is_outside(x, source)) return source;
    const Inst *step = source->inst;
    Val *base = place_by_indices(x, b, inst_operand(step, 0), indices, used);
    if (step->op == OP_field) return build_field(b, base, step->index);
    Val *index = inner_index(x, source) ? indices[(*used)++] : inst_operand(step, 1);
    return step->op == OP_elem ? build_elem(b, base, index, inst_has(step, INST_UNCHECKED))
                               : build_offset(b, base, index);
}

static Val *source_at(const Choose *x, Builder *b, int number, Val **parts) {
    int used = 0;
    Val *source = place_by_indices(x, b, x->sources.at[number], parts + 1, &used);
    return x->moves && !val_is_const(source) ? build_offset(b, source, parts[nparts(x) - 1]) : source;
}

static void select_by_number(Choose *x, Builder b, Val *v) {
    bool is_used = v->id >= x->nuses || x->uses[v->id] > (int)(uintptr_t)map_get(&x->inside, PTR_KEY(v));
    if (!is_used) return;
    Val **parts = parts_of(x, v), *chosen = source_at(x, &b, x->sources.count - 1, parts);
    for (int i = x->sources.count - 2; i >= 0; i--) {
        Val *is = build_binary(&b, OP_eq, parts[0], ir_const_int(x->ad->m, x->type, i));
        chosen = build_select(&b, is, source_at(x, &b, i, parts), chosen);
    }
    v->forward = chosen;
}

/* What is the same as what it was replaced by would be taken for that. */
static void remove_if_replaced(Inst *inst) {
    if (inst->results[0]->forward) inst_remove(inst);
}

static void select_for(Choose *x, const Member *member) {
    Inst *inst = member->inst;
    Val *result = inst->results[member->index];
    map_put(x->ad->arena, &x->done, PTR_KEY(result), x);
    select_by_number(x, build_after(inst), result);
    if (inst->op == OP_select) remove_if_replaced(inst);
    for (int k = 0; inst->op == OP_loop && k < 2; k++)
        select_by_number(x, build_before(inst->regions[k]->first), inst->regions[k]->params[member->index]);
}

/* ---- arrays of numbers */

static const Type *field_type(const Type *record, int field) {
    return type_record(record)->fields[field].type;
}

static const Type *type_of_parts(const Choose *x, const Type *type, const int *fields, const Type *part) {
    if (type->kind == TYPE_record) return type_of_parts(x, field_type(type, *fields), fields + 1, part);
    if (type->kind != TYPE_array) return part;
    return type_array(x->ad->m->types, type_of_parts(x, type->args[0], fields, part), type_length(type));
}

/* Of an element, or of all the numbers that belong to what is there. */
static Val *address_of_part(Builder *b, const Array *array, const Val *address, int part) {
    if (address == array->var) return array->numbers[part];
    const Inst *step = address->inst;
    Val *of = address_of_part(b, array, inst_operand(step, 0), part);
    return step->op == OP_field ? of
                                : build_elem(b, of, inst_operand(step, 1), inst_has(step, INST_UNCHECKED));
}

static void make_array(Choose *x, Array *array) {
    Inst *var = array->var->inst;
    Builder b = build_before(var);
    array->numbers = arena_array(x->ad->arena, Val *, nparts(x));
    for (int i = 0; i < nparts(x); i++) {
        const Type *type = type_of_parts(x, var->type, array->fields, part_type(x, i));
        array->numbers[i] = build_var(&b, type, array->var->name, i == 0 && inst_has(var, INST_RAW));
    }
    for (int i = 0; i < array->loads.count; i++) {
        Inst *load = array->loads.at[i];
        Builder at = build_before(load);
        Val **parts = make_parts(x, load->results[0]);
        for (int k = 0; k < nparts(x); k++)
            parts[k] = build_load(&at, address_of_part(&at, array, inst_operand(load, 0), k));
    }
}

static void store_numbers(Choose *x, const Array *array) {
    for (int i = 0; i < array->stores.count; i++) {
        Inst *store = array->stores.at[i];
        Val **parts = parts_of(x, inst_operand(store, 1));
        Builder at = build_before(store);
        for (int k = 0; k < nparts(x); k++)
            build_store(&at, address_of_part(&at, array, inst_operand(store, 0), k), parts[k]);
        inst_remove(store);
    }
    for (int i = 0; i < array->copies.count; i++) {
        Inst *copy = array->copies.at[i].copy;
        Builder at = build_before(copy);
        for (int k = 0; k < nparts(x); k++) {
            Val *to = address_of_part(&at, array, inst_operand(copy, 0), k),
                *from = address_of_part(&at, array->copies.at[i].from, inst_operand(copy, 1), k);
            if (to->type->args[0]->kind == TYPE_array) build_copy(&at, to, from);
            else build_store(&at, to, build_load(&at, from));
        }
    }
}

static void select_loaded(Choose *x, const Array *array) {
    for (int i = 0; i < array->loads.count; i++) {
        Inst *load = array->loads.at[i];
        select_by_number(x, build_after(load), load->results[0]);
        remove_if_replaced(load);
    }
    map_put(x->ad->arena, &x->done, PTR_KEY(array), x);
}

/* ---- what is done with local arrays */

static Array *array_at(Choose *x, Val *var, const int *fields, int nfields) {
    Array *array = find_array(x, var, fields, nfields);
    if (array) return array;
    int *own = arena_array(x->ad->arena, int, nfields + 1);
    for (int i = 0; i < nfields; i++) own[i] = fields[i];
    array = arena_new(x->ad->arena, Array);
    *array =
        (Array){.var = var, .fields = own, .nfields = nfields, .next = map_get(&x->arrays, PTR_KEY(var))};
    map_put(x->ad->arena, &x->arrays, PTR_KEY(var), array);
    return array;
}

static void note_access(Choose *x, Inst *inst, Val *address) {
    int *fields = arena_array(x->ad->arena, int, fields_of(address, NULL) + 1);
    int nfields = fields_of(address, fields);
    Array *array = array_at(x, variable_of(address), fields, nfields);
    if (inst->op == OP_load) vec_push(x->ad->arena, &array->loads, inst);
    else vec_push(x->ad->arena, &array->stores, inst);
}

typedef struct Path {
    int *fields;
    int count;
} Path;

static int depth_of(const Type *type) {
    if (type->kind == TYPE_array) return depth_of(type->args[0]);
    int depth = 0;
    for (int i = 0; type->kind == TYPE_record && i < type_record(type)->nfields; i++) {
        int below = depth_of(type_record(type)->fields[i].type) + 1;
        if (below > depth) depth = below;
    }
    return depth;
}

/* With room for all that is in it. */
static Path path_of(const Choose *x, const Val *address, const Type *type) {
    Path path = {arena_array(x->ad->arena, int, fields_of(address, NULL) + depth_of(type) + 1), 0};
    path.count = fields_of(address, path.fields);
    return path;
}

/* Of all that is copied and is no float. */
static void note_copied(Choose *x, Inst *copy, const Type *type, Path to, Path from) {
    if (type->kind == TYPE_array) {
        note_copied(x, copy, type->args[0], to, from);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            to.fields[to.count] = from.fields[from.count] = i;
            note_copied(x, copy, field_type(type, i), (Path){to.fields, to.count + 1},
                        (Path){from.fields, from.count + 1});
        }
    } else if (!type_is_float(type)) {
        Array *into = array_at(x, variable_of(inst_operand(copy, 0)), to.fields, to.count),
              *out_of = array_at(x, variable_of(inst_operand(copy, 1)), from.fields, from.count);
        vec_push(x->ad->arena, &into->copies, ((Copied){copy, out_of}));
    }
}

static void note_copy(Choose *x, Inst *copy) {
    Val *to = inst_operand(copy, 0), *from = inst_operand(copy, 1);
    const Type *type = to->type->args[0];
    note_copied(x, copy, type, path_of(x, to, type), path_of(x, from, type));
}

static void note_use(void *user, Inst *inst) {
    Choose *x = user;
    bool is_copy =
        inst->op == OP_copy && variable_of(inst_operand(inst, 0)) && variable_of(inst_operand(inst, 1));
    if (is_copy) note_copy(x, inst);
    for (int i = 0; i < inst->nargs && !is_copy; i++) {
        Val *v = inst_operand(inst, i);
        if (v->type->kind != TYPE_pointer || !is_local(ir_root(v))) continue;
        const Type *type = v->type->args[0];
        bool is_one = variable_of(v) && type->kind != TYPE_array && type->kind != TYPE_record;
        bool is_access = i == 0 && (inst->op == OP_load || inst->op == OP_store);
        if (is_one && is_access && !type_is_float(type)) note_access(x, inst, v);
        else if (inst->op != OP_elem && inst->op != OP_field && !(is_one && is_access))
            map_put(x->ad->arena, &x->escaped, PTR_KEY(ir_root(v)), x);
    }
}

/* ---- places that differ in an index */

static Val *select_index(const Choose *x, Builder *b, Val *condition, Val *one, Val *other) {
    if (val_is_same(one, other)) return one;
    Val *one_index = build_convert(b, one, x->index_type);
    Val *other_index = build_convert(b, other, x->index_type);
    return build_select(b, condition, one_index, other_index);
}

static bool is_moved(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_offset; }

/* Whether a place is to be compared with another by what it was moved from: not if the other was moved on
 * from there, too. */
static bool is_from_before(const Val *one, const Val *other) {
    return is_moved(one) && !(is_moved(other) && val_is_same(inst_operand(other->inst, 0), one));
}

/* The place that is one or the other, if they differ in indices only; else NULL. */
static Val *either_place(const Choose *x, Builder *b, Val *condition, Val *one, Val *other) {
    bool moved = is_from_before(one, other), other_moved = is_from_before(other, one);
    if (val_is_same(one, other)) return one;
    if (moved || other_moved) {
        Val *zero = ir_const_int(x->ad->m, x->index_type, 0),
            *base = either_place(x, b, condition, moved ? inst_operand(one->inst, 0) : one,
                                 other_moved ? inst_operand(other->inst, 0) : other);
        if (!base) return NULL;
        Val *by = moved ? inst_operand(one->inst, 1) : zero,
            *other_by = other_moved ? inst_operand(other->inst, 1) : zero;
        return build_offset(b, base, select_index(x, b, condition, by, other_by));
    }
    if (!is_step(one) || !is_step(other) || one->inst->op != other->inst->op ||
        one->inst->index != other->inst->index)
        return NULL;
    Val *base = either_place(x, b, condition, inst_operand(one->inst, 0), inst_operand(other->inst, 0));
    if (!base || one->inst->op == OP_field) return base ? build_field(b, base, one->inst->index) : NULL;
    Val *index = select_index(x, b, condition, inst_operand(one->inst, 1), inst_operand(other->inst, 1));
    return build_elem(b, base, index,
                      inst_has(one->inst, INST_UNCHECKED) && inst_has(other->inst, INST_UNCHECKED));
}

/* `c ? p + 1 : p` is p + (c ? 1 : 0): one way, not two. */
static void join_places(void *user, Inst *inst) {
    Choose *x = user;
    if (inst->op != OP_select || inst->results[0]->type->kind != TYPE_pointer) return;
    Builder b = build_before(inst);
    b.loc = inst->loc;
    Val *place = either_place(x, &b, inst_operand(inst, 0), inst_operand(inst, 1), inst_operand(inst, 2));
    if (!place) return;
    inst->results[0]->forward = place;
    inst_remove(inst);
    x->changed = true;
}

/* ---- the order of variables */

static bool holds_references(const Type *type) {
    if (type->kind == TYPE_array) return holds_references(type->args[0]);
    for (int i = 0; type->kind == TYPE_record && i < type_record(type)->nfields; i++)
        if (holds_references(type_record(type)->fields[i].type)) return true;
    return type->kind == TYPE_pointer || type->kind == TYPE_buffer;
}

/* What references lead to is made before what holds references. */
static void move_up_variables(Region *region) {
    Inst *first = NULL;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions; i++) move_up_variables(inst->regions[i]);
        if (inst->op != OP_var) continue;
        bool holds = holds_references(inst->type);
        if (!first && holds) first = inst;
        if (!first || holds) continue;
        inst_remove(inst);
        inst_insert_before(first, inst);
    }
}

/* ---- all of it */

static void hand_on_numbers(Choose *x) {
    for (int i = 0; i < x->members.count; i++) make_room(x, &x->members.at[i]);
    for (int i = 0; i < x->handing.count; i++) make_array(x, x->handing.at[i]);
    for (int i = 0; i < x->members.count; i++) hand_on(x, &x->members.at[i]);
    for (int i = 0; i < x->handing.count; i++) store_numbers(x, x->handing.at[i]);
    for (int i = 0; i < x->members.count; i++) select_for(x, &x->members.at[i]);
    for (int i = 0; i < x->handing.count; i++) select_loaded(x, x->handing.at[i]);
    x->changed = x->handed = true;
}

static void choose_by_number(Choose *x, Inst *root, int index) {
    if (type_is_float(root->results[index]->type) || map_has(&x->done, PTR_KEY(root->results[index]))) return;
    begin(x, root);
    add(x, root->results[index]);
    collect(x);
    if (x->fit && x->pairs) hand_on_numbers(x);
}

static void choose_in_array(Choose *x, Array *array) {
    if (map_has(&x->done, PTR_KEY(array))) return;
    begin(x, array->var->inst);
    add_array(x, array);
    collect(x);
    if (x->fit && x->pairs) hand_on_numbers(x);
}

static void walk_arrays(Choose *x, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        Array *array = inst->op == OP_var ? map_get(&x->arrays, PTR_KEY(inst->results[0])) : NULL;
        for (; array; array = array->next) choose_in_array(x, array);
        for (int i = 0; i < inst->nregions; i++) walk_arrays(x, inst->regions[i]);
    }
}

static void walk(Choose *x, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        int count = inst->nregions ? inst->nresults : 0;
        for (int i = 0; i < count; i++) choose_by_number(x, inst, i);
        for (int i = 0; i < inst->nregions; i++) walk(x, inst->regions[i]);
    }
}

static void count_uses(Choose *x) {
    Func *flat = x->f->flat;
    if (x->changed) ir_resolve_func(flat);
    x->uses = region_count_uses(x->ad->arena, flat->body);
    x->nuses = flat->nvals;
}

/* True: some of the rest may be chosen by number now. */
static bool choose_once(Choose *x) {
    Region *body = x->f->flat->body;
    x->handed = x->waits = false;
    count_uses(x);
    x->arrays = x->escaped = (Map){0};
    region_walk(body, note_use, x);
    walk_arrays(x, body);
    if (x->handed) count_uses(x);
    walk(x, body);
    return x->handed && x->waits;
}

bool ad_choose_by_number(Ad *ad, const AdFunc *f) {
    enum { MOST_ROUNDS = 16 };
    Choose x = {.ad = ad,
                .f = f,
                .type = type_basic(ad->m->types, TYPE_int),
                .index_type = type_basic(ad->m->types, TYPE_int64)};
    int round = 0;
    region_walk(f->flat->body, join_places, &x);
    move_up_variables(f->flat->body);
    while (round < MOST_ROUNDS && choose_once(&x)) round++;
    if (x.changed) ir_resolve_func(f->flat);
    return x.changed;
}
