/* Is a function well-formed? One walk over it, linear in its size.
 *
 * A value may be used in the region that defines it, after its definition, and in the regions nested there.
 * The walk keeps a table from ids to the values in scope: a definition enters its value, the end of a region
 * takes its values out again. So an operand is checked by one look into the table, which also finds operands
 * of another function, operands that were removed, and two values with one id.
 *
 * The first thing found wrong is reported, with the name of the function and the instruction. */
#include "ir.h"

typedef struct Verifier {
    Arena *arena;
    const Func *func;
    const Val **scope; /* by id; NULL: not in scope */
    bool *taken;       /* by id: some value has it */
    Map open;          /* loop or block around -> its region that is being checked */
    const Inst *inst;  /* at work; NULL: the function as a whole */
    const char *wrong; /* what, once something is */
} Verifier;

static bool fail(Verifier *v, const char *format, ...) PRINTF_LIKE(2, 3);
static bool fail(Verifier *v, const char *format, ...) {
    if (v->wrong) return false;
    Text text = {.arena = v->arena};
    va_list args;
    va_start(args, format);
    text_printf(&text, "function %s: ", v->func->name->text);
    text_vprintf(&text, format, args);
    va_end(args);
    if (v->inst) {
        text_add(&text, STR("\n  in: "));
        ir_print_inst(&text, v->inst);
    }
    v->wrong = text.at;
    return false;
}

static const char *show(Verifier *v, const Type *type) {
    return type ? type_text(v->arena, type) : "no type";
}

/* ---- types */

static bool is_value_type(const Type *type) {
    if (type_is_scalar(type)) return true;
    if (type->kind == TYPE_vector)
        return (type_is_scalar(type->args[0]) || type->args[0]->kind == TYPE_pointer) &&
               type_count(type) >= 1;
    return type->kind == TYPE_pointer || type->kind == TYPE_buffer || type->kind == TYPE_tape;
}

static const Type *arg_type(const Inst *inst, int index) { return inst->args[index]->type; }
static const Type *result_type(const Inst *inst) { return inst->results[0]->type; }
static bool is_kind(const Type *type, TypeKind kind) { return type->kind == kind; }
static bool is_elem(const Type *type, TypeKind kind) { return type_element(type)->kind == kind; }
static bool is_shaped(const Type *type) { return type_is_scalar(type) || type->kind == TYPE_vector; }
static bool same_lanes(const Type *a, const Type *b) {
    return a->kind == b->kind || (type_is_scalar(a) && type_is_scalar(b)) ? type_count(a) == type_count(b)
                                                                          : false;
}

static bool expect(Verifier *v, bool holds, const char *what) { return holds || fail(v, "%s", what); }

static bool fail_type(Verifier *v, const Type *found, const Type *wanted, const char *what) {
    return fail(v, "%s has type %s, not %s", what, show(v, found), show(v, wanted));
}

/* What goes somewhere; the address may be known better than it has to be. */
static bool expect_type(Verifier *v, const Type *found, const Type *wanted, const char *what) {
    return found == wanted || type_leads_into(found, wanted) || fail_type(v, found, wanted, what);
}

/* What comes from somewhere; less may be known of the address. */
static bool expect_from(Verifier *v, const Type *found, const Type *wanted, const char *what) {
    return found == wanted || type_leads_into(wanted, found) || fail_type(v, found, wanted, what);
}

static bool check_elementwise_result(Verifier *v, const Inst *inst) {
    const Type *first = arg_type(inst, 0), *result = result_type(inst);
    if (op_has(inst->op, OP_COMPARES))
        return expect(v, is_elem(result, TYPE_bool) && (same_lanes(result, first) || !is_shaped(first)),
                      "a comparison gives bool in the shape of its operands");
    if (inst->op == OP_countbits || inst->op == OP_firstbithigh || inst->op == OP_firstbitlow)
        return expect(v, is_elem(result, TYPE_uint) && same_lanes(result, first), "the result must be uint");
    if (inst->op == OP_convert)
        return expect(v, is_shaped(result) && same_lanes(result, first), "a conversion keeps the shape");
    return expect_from(v, result, first, "the result");
}

static bool check_elementwise(Verifier *v, const Inst *inst) {
    const Type *first = arg_type(inst, 0), *element = type_element(first);
    bool equality = inst->op == OP_eq || inst->op == OP_ne, pointers = is_kind(first, TYPE_pointer);
    if (!is_shaped(first) && !(equality && pointers)) return fail(v, "operands must be scalars or vectors");
    for (int i = 1; i < inst->nargs; i++) {
        bool own_type = i == 1 && (inst->op == OP_shl || inst->op == OP_shr || inst->op == OP_ldexp);
        bool both = pointers && ir_target(arg_type(inst, i)) == ir_target(first);
        if (!own_type && !both && !expect_type(v, arg_type(inst, i), first, "an operand")) return false;
        bool integer = type_is_integer(type_element(arg_type(inst, i)));
        if (own_type && !(integer && same_lanes(arg_type(inst, i), first)))
            return fail(v, "the count must be an integer in the shape of the first operand");
    }
    if (op_has(inst->op, OP_FLOATS) && !type_is_float(element)) return fail(v, "operands must be floats");
    if (op_has(inst->op, OP_INTEGERS) && !type_is_integer(element))
        return fail(v, "operands must be integers");
    if (op_has(inst->op, OP_BITS) && !type_is_integer(element) && !is_kind(element, TYPE_bool))
        return fail(v, "operands must be integers or bool");
    return check_elementwise_result(v, inst);
}

static bool check_select(Verifier *v, const Inst *inst) {
    const Type *condition = arg_type(inst, 0), *result = result_type(inst);
    bool by_lane =
        is_kind(condition, TYPE_vector) && is_elem(condition, TYPE_bool) && same_lanes(condition, result);
    if (!is_kind(condition, TYPE_bool) && !by_lane)
        return fail(v, "the condition must be bool, or a bool vector with the lanes of the result");
    return expect_type(v, arg_type(inst, 1), result, "the second operand") &&
           expect_type(v, arg_type(inst, 2), result, "the third operand");
}

static bool has_same_size(const Type *a, const Type *b) {
    return type_layout(a, LAYOUT_scalar).size == type_layout(b, LAYOUT_scalar).size;
}

static bool check_vector(Verifier *v, const Inst *inst) {
    const Type *result = result_type(inst), *first = arg_type(inst, 0);
    bool makes = inst->op == OP_vec || inst->op == OP_splat || inst->op == OP_shuffle;
    if (makes && !is_kind(result, TYPE_vector)) return fail(v, "the result must be a vector");
    if (!makes && !is_kind(first, TYPE_vector)) return fail(v, "the first operand must be a vector");
    if (inst->op == OP_vec) {
        if (inst->nargs != type_count(result)) return fail(v, "one operand per lane is needed");
        for (int i = 0; i < inst->nargs; i++)
            if (!expect_type(v, arg_type(inst, i), type_element(result), "a lane")) return false;
        return true;
    }
    if (inst->op == OP_splat) return expect_type(v, first, type_element(result), "the operand");
    if (inst->op == OP_shuffle) {
        if (type_count(result) > 4) return fail(v, "too many lanes");
        for (int i = 0; i < type_count(result); i++)
            if (inst->lanes[i] >= type_count(first)) return fail(v, "lane %d does not exist", inst->lanes[i]);
        return expect_type(v, type_element(result), type_element(first), "an element of the result");
    }
    if (!type_is_integer(arg_type(inst, 1))) return fail(v, "the index must be an integer");
    if (inst->op == OP_extract) return expect_from(v, result, type_element(first), "the result");
    return expect_type(v, arg_type(inst, 2), type_element(first), "the new lane") &&
           expect_from(v, result, first, "the result");
}

/* ---- memory */

static bool is_address(Verifier *v, const Inst *inst, int index) {
    return ir_target(arg_type(inst, index)) || fail(v, "operand %d must be an address", index + 1);
}

static bool is_integer_arg(Verifier *v, const Inst *inst, int index) {
    bool has_lanes = is_kind(arg_type(inst, index), TYPE_vector);
    const Type *type = has_lanes ? type_element(arg_type(inst, index)) : arg_type(inst, index);
    return type_is_integer(type) || fail(v, "operand %d must be an integer", index + 1);
}

static bool points_to(Verifier *v, const Inst *inst, const Type *target) {
    const Type *result = result_type(inst);
    if (!ir_target(result)) return fail(v, "the result must be an address");
    for (int i = 0; i < inst->nargs; i++)
        if (is_kind(arg_type(inst, i), TYPE_vector) &&
            !(is_kind(result, TYPE_vector) && type_count(result) == type_count(arg_type(inst, i))))
            return fail(v, "the result must be an address for each lane");
    return expect_type(v, ir_target(result), target, "what the result points to");
}

static bool check_field(Verifier *v, const Inst *inst) {
    if (!is_address(v, inst, 0)) return false;
    const Type *target = ir_target(arg_type(inst, 0));
    if (!is_kind(target, TYPE_record)) return fail(v, "the address must be that of a record");
    const Record *record = type_record(target);
    if (inst->index < 0 || inst->index >= record->nfields)
        return fail(v, "there is no field %d", inst->index);
    return points_to(v, inst, record->fields[inst->index].type);
}

static bool check_elem(Verifier *v, const Inst *inst) {
    if (!is_address(v, inst, 0) || !is_integer_arg(v, inst, 1)) return false;
    const Type *target = ir_target(arg_type(inst, 0));
    if (!is_kind(target, TYPE_array) && !is_kind(target, TYPE_vector))
        return fail(v, "the address must be that of an array or vector");
    return points_to(v, inst, type_element(target));
}

static bool check_load_store(Verifier *v, const Inst *inst) {
    if (!is_address(v, inst, 0)) return false;
    const Type *target = ir_target(arg_type(inst, 0));
    if (!is_kind(arg_type(inst, 0), TYPE_pointer)) return fail(v, "only gather takes several addresses");
    if (!is_value_type(target)) return fail(v, "%s is not the type of a value", show(v, target));
    if (inst->op == OP_load) return expect_from(v, result_type(inst), target, "the result");
    return expect_type(v, arg_type(inst, 1), target, "the value");
}

/* Of lanes: what is at the address is a scalar, or a vector with as many. */
static bool check_gather(Verifier *v, const Inst *inst) {
    if (!is_address(v, inst, 0)) return false;
    const Type *address = arg_type(inst, 0), *target = ir_target(address);
    const Type *mask = arg_type(inst, inst->nargs - 1);
    const Type *value = inst->op == OP_gather ? result_type(inst) : arg_type(inst, 1);
    if (!is_kind(mask, TYPE_vector) || !is_elem(mask, TYPE_bool))
        return fail(v, "the mask must be a bool vector");
    if (!is_kind(value, TYPE_vector) || type_count(value) != type_count(mask))
        return fail(v, "the value must have the lanes of the mask");
    if (is_kind(address, TYPE_vector) && type_count(address) != type_count(mask))
        return fail(v, "an address for each lane is needed");
    if (is_kind(target, TYPE_vector) && type_count(target) != type_count(mask))
        return fail(v, "a vector in memory must have the lanes of the mask");
    if (inst->op == OP_gather && type_is_scalar(target) && !is_kind(address, TYPE_vector))
        return fail(v, "one scalar is loaded");
    return expect_type(v, type_element(target), type_element(value), "what is at the address");
}

static bool check_copy(Verifier *v, const Inst *inst) {
    for (int i = 0; i < 2; i++)
        if (!is_kind(arg_type(inst, i), TYPE_pointer)) return fail(v, "operand %d must be an address", i + 1);
    return expect_type(v, ir_target(arg_type(inst, 1)), ir_target(arg_type(inst, 0)),
                       "what is at the source");
}

static bool check_apart(Verifier *v, const Inst *inst) {
    ApartMark apart = inst->apart;
    bool is_known = apart.which > 0 && apart.which <= apart.count;
    return expect(v, apart.nest == 0 || is_known, "it is of no buffer that is apart from others");
}

static bool check_buffer(Verifier *v, const Inst *inst) {
    const Type *buffer = arg_type(inst, 0);
    if (!is_kind(buffer, TYPE_buffer)) return fail(v, "the first operand must be a buffer");
    bool bytes = buffer->number == BUFFER_bytes || buffer->number == BUFFER_rw_bytes;
    switch ((Op)inst->op) {
    case OP_buffer_length: return expect(v, is_kind(result_type(inst), TYPE_uint), "the result must be uint");
    case OP_buffers_apart:
        return expect(v, is_kind(arg_type(inst, 1), TYPE_buffer), "operand 2 must be a buffer") &&
               expect(v, is_kind(result_type(inst), TYPE_bool), "the result must be bool");
    case OP_buffer_elem:
        return is_integer_arg(v, inst, 1) && expect(v, !bytes, "a byte buffer has no elements") &&
               check_apart(v, inst) && points_to(v, inst, buffer->args[0]);
    case OP_buffer_bytes:
        return is_integer_arg(v, inst, 1) && expect(v, bytes, "the first operand must be a byte buffer") &&
               check_apart(v, inst) && points_to(v, inst, ir_target(result_type(inst)));
    case OP_buffer_counter: return points_to(v, inst, type_basic(v->func->module->types, TYPE_uint));
    default: return expect(v, is_kind(result_type(inst), TYPE_pointer), "the result must be an address");
    }
}

static bool check_atomic(Verifier *v, const Inst *inst) {
    if (!is_address(v, inst, 0)) return false;
    const Type *target = ir_target(arg_type(inst, 0));
    if (!type_is_scalar(target) || !is_kind(arg_type(inst, 0), TYPE_pointer))
        return fail(v, "only scalars are changed atomically");
    for (int i = 1; i < inst->nargs; i++)
        if (!expect_type(v, arg_type(inst, i), target, "an operand")) return false;
    return expect_from(v, result_type(inst), target, "the result");
}

/* A scalar, or a row: one for each lane. */
static bool is_on_tape(const Type *type) {
    return type_is_scalar(type) || (is_kind(type, TYPE_vector) && type_is_scalar(type_element(type)));
}

static bool check_tape_elem(Verifier *v, const Inst *inst) {
    const Type *target = ir_target(result_type(inst));
    return is_integer_arg(v, inst, 1) &&
           expect(v, target && is_on_tape(target), "the result must be its address") &&
           points_to(v, inst, target);
}

static bool check_tape(Verifier *v, const Inst *inst) {
    const Types *types = v->func->module->types;
    const Type *int64 = type_basic(types, TYPE_int64);
    bool indexed = inst->op >= OP_tape_grow && inst->op <= OP_tape_reach;
    if (inst->op == OP_tape_open)
        return expect_type(v, result_type(inst), type_basic(types, TYPE_tape), "the result");
    if (!is_kind(arg_type(inst, 0), TYPE_tape)) return fail(v, "the first operand must be a tape");
    if (inst->op == OP_tape_elem) return check_tape_elem(v, inst);
    if (indexed && !expect_type(v, arg_type(inst, 1), int64, "the second operand")) return false;
    switch ((Op)inst->op) {
    case OP_tape_push: return expect(v, is_on_tape(arg_type(inst, 1)), "only scalars are pushed");
    case OP_tape_store: return expect(v, is_on_tape(arg_type(inst, 2)), "only scalars are stored");
    case OP_tape_pop:
    case OP_tape_load: return expect(v, is_on_tape(result_type(inst)), "the result must be a scalar");
    case OP_tape_grow:
        if (!expect_type(v, result_type(inst), int64, "the result")) return false;
        return expect(v, inst->type && is_on_tape(inst->type), "the element must be a scalar");
    case OP_tape_shrink:
    case OP_tape_reach:
        return expect(v, inst->type && is_on_tape(inst->type), "the element must be a scalar");
    default: return true;
    }
}

static bool check_thread_id(Verifier *v, const Inst *inst) {
    const Type *result = result_type(inst);
    if (inst->index < 0 || inst->index > 6) return fail(v, "there is no thread id %d", inst->index);
    return expect(
        v, is_elem(result, TYPE_uint) && type_count(result) == (inst->index == 3 || inst->index == 6 ? 1 : 3),
        "thread ids are uint3, the index in the group is uint");
}

/* ---- control flow */

static bool check_call(Verifier *v, const Inst *inst) {
    const Func *callee = inst->callee;
    if (!callee) return fail(v, "nothing is called");
    if (inst->nargs != callee->nparams)
        return fail(v, "%d operands for the %d parameters of %s", inst->nargs, callee->nparams,
                    callee->name->text);
    if (inst->nresults != callee->nresults)
        return fail(v, "%s has %d results", callee->name->text, callee->nresults);
    for (int i = 0; i < inst->nargs; i++) {
        const Type *wanted = param_value_type(v->func->module, &callee->params[i]);
        if (!expect_type(v, arg_type(inst, i), wanted, "an argument")) return false;
    }
    for (int i = 0; i < inst->nresults; i++)
        if (!expect_from(v, inst->results[i]->type, callee->results[i], "a result")) return false;
    return true;
}

static bool check_switch(Verifier *v, const Inst *inst) {
    const Type *type = arg_type(inst, 0);
    if (!type_is_integer(type) && !is_kind(type, TYPE_bool))
        return fail(v, "the selector must be an integer or bool");
    return expect(v, inst->nregions == inst->ncases + 1,
                  "one region per case and one for the default are needed");
}

static bool check_loop(Verifier *v, const Inst *inst) {
    bool normal = v->func->flags & FUNC_NORMAL;
    if (inst->nregions != 2 && (normal || inst->nregions != 3)) return fail(v, "wrong number of regions");
    if (inst->nresults != inst->nargs) return fail(v, "as many results as carried values are needed");
    for (int i = 0; i < inst->nargs; i++) {
        if (!expect_type(v, arg_type(inst, i), inst->results[i]->type, "an operand")) return false;
        for (int r = 0; r < inst->nregions; r++) {
            const Region *region = inst->regions[r];
            if (region->nparams != inst->nargs) return fail(v, "region %d lacks carried values", r);
            if (!expect_type(v, region->params[i]->type, inst->results[i]->type, "a carried value"))
                return false;
        }
    }
    return true;
}

static bool check_values(Verifier *v, const Inst *inst, Val *const *wanted, int count) {
    if (inst->nargs != count) return fail(v, "%d operands where %d are needed", inst->nargs, count);
    for (int i = 0; i < count; i++)
        if (!expect_type(v, arg_type(inst, i), wanted[i]->type, "an operand")) return false;
    return true;
}

static bool check_yield(Verifier *v, const Inst *inst) {
    const Inst *owner = inst->parent->owner;
    if (!owner) return fail(v, "a function ends with return, not yield");
    if (owner->op == OP_loop && inst->parent == owner->regions[0])
        return expect(v, inst->nargs == 1 && is_kind(arg_type(inst, 0), TYPE_bool),
                      "a condition yields one bool");
    return check_values(v, inst, owner->results, owner->nresults);
}

static bool check_jump(Verifier *v, const Inst *inst) {
    const Inst *target = inst->target;
    if (v->func->flags & FUNC_NORMAL)
        return fail(v, "%s in a function of normal form", op_info[inst->op].name);
    if (!target || (target->op != OP_loop && (target->op != OP_block || inst->op == OP_continue)))
        return fail(v, "the target is of the wrong kind");
    const Region *region = map_get(&v->open, PTR_KEY(target));
    if (!region) return fail(v, "the target is not around this instruction");
    if (target->op == OP_loop && region != target->regions[1])
        return fail(v, "only the body of a loop can leave it");
    return check_values(v, inst, target->results, target->nresults);
}

static bool check_return(Verifier *v, const Inst *inst) {
    const Func *func = v->func;
    if ((func->flags & FUNC_NORMAL) && inst->parent != func->body)
        return fail(v, "return inside a region in a function of normal form");
    if (inst->nargs != func->nresults)
        return fail(v, "%d operands for %d results", inst->nargs, func->nresults);
    for (int i = 0; i < inst->nargs; i++)
        if (!expect_type(v, arg_type(inst, i), func->results[i], "an operand")) return false;
    return true;
}

static bool check_block(Verifier *v) {
    return expect(v, !(v->func->flags & FUNC_NORMAL), "block in a function of normal form");
}

static bool check_op(Verifier *v, const Inst *inst) {
    if (op_has(inst->op, OP_ELEMENTWISE)) return check_elementwise(v, inst);
    switch ((Op)inst->op) {
    case OP_any:
    case OP_all:
        return expect(v, is_elem(arg_type(inst, 0), TYPE_bool) && is_kind(result_type(inst), TYPE_bool),
                      "bool in, bool out");
    case OP_select: return check_select(v, inst);
    case OP_bitcast:
        return expect(v, has_same_size(arg_type(inst, 0), result_type(inst)), "the sizes differ");
    case OP_vec:
    case OP_splat:
    case OP_extract:
    case OP_insert:
    case OP_shuffle: return check_vector(v, inst);
    case OP_var: return expect(v, inst->type, "of which type?") && points_to(v, inst, inst->type);
    case OP_global: return expect(v, inst->global, "which global?") && points_to(v, inst, inst->global->type);
    case OP_field: return check_field(v, inst);
    case OP_elem: return check_elem(v, inst);
    case OP_offset:
        return is_address(v, inst, 0) && is_integer_arg(v, inst, 1) &&
               points_to(v, inst, ir_target(arg_type(inst, 0)));
    case OP_load:
    case OP_store: return check_load_store(v, inst);
    case OP_copy:
    case OP_acc: return check_copy(v, inst);
    case OP_gather:
    case OP_scatter: return check_gather(v, inst);
    case OP_zero: return expect(v, is_kind(arg_type(inst, 0), TYPE_pointer), "operand 1 must be an address");
    case OP_buffer_new:
        return is_integer_arg(v, inst, 0) &&
               expect(v, is_kind(result_type(inst), TYPE_buffer), "the result must be a buffer");
    case OP_buffer_length:
    case OP_buffers_apart:
    case OP_buffer_elem:
    case OP_buffer_bytes:
    case OP_buffer_pointer:
    case OP_buffer_counter: return check_buffer(v, inst);
    case OP_atomic:
    case OP_atomic_cas: return check_atomic(v, inst);
    case OP_thread_id: return check_thread_id(v, inst);
    case OP_tape_open:
    case OP_tape_close:
    case OP_tape_push:
    case OP_tape_pop:
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_load:
    case OP_tape_store:
    case OP_tape_reach:
    case OP_tape_elem: return check_tape(v, inst);
    case OP_call: return check_call(v, inst);
    case OP_if: return expect(v, is_kind(arg_type(inst, 0), TYPE_bool), "the condition must be bool");
    case OP_switch: return check_switch(v, inst);
    case OP_loop: return check_loop(v, inst);
    case OP_block: return check_block(v);
    case OP_yield: return check_yield(v, inst);
    case OP_break:
    case OP_continue: return check_jump(v, inst);
    case OP_return: return check_return(v, inst);
    case OP_unreachable:
        return expect(v, !(v->func->flags & FUNC_NORMAL), "unreachable in a function of normal form");
    default: return true; /* barrier, printf, abort; the elementwise ones are done */
    }
}

/* ---- structure */

static bool define(Verifier *v, const Val *val) {
    if (!val->type || !is_value_type(val->type))
        return fail(v, "%s is not the type of a value", show(v, val->type));
    if (val->id == 0 || val->id >= v->func->nvals)
        return fail(v, "the id %u is out of range", (unsigned)val->id);
    if (v->taken[val->id]) return fail(v, "two values have the id %u", (unsigned)val->id);
    if (val->forward) return fail(v, "value %u was replaced and is still there", (unsigned)val->id);
    v->taken[val->id] = true;
    v->scope[val->id] = val;
    return true;
}

static bool check_operand(Verifier *v, const Val *arg) {
    if (!arg) return fail(v, "an operand is missing");
    if (arg->forward) return fail(v, "an operand was replaced");
    if (arg->kind == VAL_const) return expect(v, is_value_type(arg->type), "a constant has no such type");
    bool in_scope = arg->id < v->func->nvals && v->scope[arg->id] == arg;
    return in_scope || fail(v, "operand with id %u is not defined here", (unsigned)arg->id);
}

static bool check_counts(Verifier *v, const Inst *inst) {
    const OpInfo *info = &op_info[inst->op];
    static const int regions[OP_COUNT] = {[OP_if] = 2, [OP_block] = 1};
    if (info->nargs >= 0 && inst->nargs != info->nargs) return fail(v, "%d operands are needed", info->nargs);
    if (info->nresults >= 0 && inst->nresults != info->nresults)
        return fail(v, "%d results are needed", info->nresults);
    bool varies = inst->op == OP_switch || inst->op == OP_loop;
    return varies || inst->nregions == regions[inst->op] ||
           fail(v, "%d regions are needed", regions[inst->op]);
}

static bool check_region(Verifier *v, const Region *region, const Inst *owner);

static bool check_inst(Verifier *v, const Inst *inst) {
    v->inst = inst;
    if (inst->op >= OP_COUNT) return fail(v, "no such operation");
    if (inst->func != v->func) return fail(v, "it says that it belongs to another function");
    if (!check_counts(v, inst)) return false;
    if (inst->flags & ~ir_flags_of(inst->op)) return fail(v, "it has a flag of other operations");
    for (int i = 0; i < inst->nargs; i++)
        if (!check_operand(v, inst->args[i])) return false;
    for (int i = 0; i < inst->nresults; i++) {
        const Val *result = inst->results[i];
        if (result->kind != VAL_inst || result->inst != inst || result->index != i)
            return fail(v, "result %d does not know its place", i);
        if (!result->type || !is_value_type(result->type)) return fail(v, "result %d has no value type", i);
    }
    if (!check_op(v, inst)) return false;
    if (!ir_has_right_space(inst)) return fail(v, "the result leads to other memory than its type says");
    for (int i = 0; i < inst->nregions; i++)
        if (!check_region(v, inst->regions[i], inst)) return false;
    v->inst = inst;
    for (int i = 0; i < inst->nresults; i++)
        if (!define(v, inst->results[i])) return false;
    return true;
}

static bool check_links(Verifier *v, const Region *region, const Inst *inst) {
    if (inst->parent != region || (inst == region->first) != !inst->prev ||
        (inst->prev && inst->prev->next != inst) || (inst == region->last) != !inst->next)
        return fail(v, "the list of instructions is broken");
    bool ends = op_has(inst->op, OP_ENDS);
    if (ends && inst->next) return fail(v, "something follows the end of a region");
    return ends || inst->next || fail(v, "the region does not end");
}

static void leave_scope(Verifier *v, const Region *region) {
    for (int i = 0; i < region->nparams; i++) v->scope[region->params[i]->id] = NULL;
    for (const Inst *inst = region->first; inst; inst = inst->next)
        for (int i = 0; i < inst->nresults; i++) v->scope[inst->results[i]->id] = NULL;
}

static bool check_region(Verifier *v, const Region *region, const Inst *owner) {
    if (region->owner != owner || region->func != v->func) return fail(v, "a region does not know its owner");
    if (owner && owner->op != OP_loop && region->nparams) return fail(v, "this region has no parameters");
    for (int i = 0; i < region->nparams; i++) {
        const Val *param = region->params[i];
        if (param->kind != VAL_param || param->region != region || param->index != i)
            return fail(v, "parameter %d of a region does not know its place", i);
        if (!define(v, param)) return false;
    }
    if (!region->first) return fail(v, "a region is empty");
    bool can_be_left = owner && (owner->op == OP_loop || owner->op == OP_block);
    if (can_be_left) map_put(v->arena, &v->open, PTR_KEY(owner), region->first->parent);
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        v->inst = inst;
        if (!check_links(v, region, inst) || !check_inst(v, inst)) return false;
    }
    if (can_be_left) map_put(v->arena, &v->open, PTR_KEY(owner), NULL);
    leave_scope(v, region);
    return true;
}

static bool check_signature(Verifier *v) {
    const Func *func = v->func;
    if (func->body->nparams != func->nparams)
        return fail(v, "%d parameters, but the body has %d", func->nparams, func->body->nparams);
    for (int i = 0; i < func->nparams; i++) {
        const Type *wanted = param_value_type(func->module, &func->params[i]);
        if (!expect_type(v, func->body->params[i]->type, wanted, "a parameter")) return false;
    }
    return true;
}

const char *ir_verify(Arena *arena, const Func *func) {
    Verifier v = {.arena = arena, .func = func};
    if (!func->body) return NULL;
    v.scope = arena_array(arena, const Val *, func->nvals);
    v.taken = arena_array(arena, bool, func->nvals);
    if (!check_signature(&v) || !check_region(&v, func->body, NULL)) return v.wrong;
    v.inst = NULL;
    if ((func->flags & FUNC_NORMAL) && func->body->last->op == OP_yield)
        fail(&v, "the body must end with return");
    return v.wrong;
}
