/* Slang: memory. There are no addresses: what the IR has an address of is a place, `a.b[i]`, which is written
 * out wherever it is used, so its indices must stay what they are. Objects in byte buffers are read and
 * written whole, at an offset. */
#include "emit/clike/slang.h"

/* An index, in a form that can be said any number of times. */
static const char *index_text(Printer *p, const Inst *inst) {
    clike_settle(p, inst, 1);
    return clike_operand(p, inst, 1).text;
}

static Value place(Value whole, const char *text) {
    whole.text = text;
    whole.level = LEVEL_primary;
    whole.is_place = true;
    return whole;
}

/* ---- byte buffers: `text` is the buffer, `offset` where in it */

static Value at_offset(Printer *p, Value whole, const char *more) {
    whole.offset = strcmp(more, "0") == 0 ? whole.offset : clike_format(p, "%s + %s", whole.offset, more);
    return whole;
}

static Value buffer_bytes(Printer *p, const Inst *inst) {
    const char *offset = index_text(p, inst);
    clike_settle(p, inst, 0);
    Value value = place(clike_operand(p, inst, 0), clike_operand(p, inst, 0).text);
    value.raw = true;
    value.offset = clike_in(p, clike_value(offset, clike_operand(p, inst, 1).level), LEVEL_sum);
    return value;
}

/* ---- parts */

static Value field(Printer *p, const Inst *inst) {
    const Type *record = inst->args[0]->type->args[0];
    Value whole = clike_operand(p, inst, 0);
    if (whole.raw)
        return at_offset(
            p, whole,
            clike_format(p, "%lld", (long long)type_field_offset(record, inst->index, LAYOUT_scalar)));
    return place(whole, clike_format(p, "%s.%s", whole.text, clike_field(p, record, inst->index)));
}

static Value element(Printer *p, const Inst *inst) {
    const Type *type = inst->args[0]->type->args[0];
    int64_t known;
    const char *index = index_text(p, inst);
    Value whole = clike_operand(p, inst, 0);
    if (whole.raw)
        return at_offset(
            p, whole,
            clike_format(p, "uint(%s) * %lldu", index, (long long)type_element_stride(type, LAYOUT_scalar)));
    bool is_known = val_is_int(ir_resolve(inst->args[1]), &known) && known >= 0;
    if (is_known && type->kind == TYPE_vector && known < type_count(type))
        return place(whole, clike_format(p, "%s.%c", whole.text, "xyzw"[known]));
    if (is_known) index = clike_format(p, "%lld", (long long)known);
    return place(whole, clike_format(p, "%s[%s]", whole.text, index));
}

static Value buffer_element(Printer *p, const Inst *inst) {
    const char *index = index_text(p, inst);
    clike_settle(p, inst, 0);
    Value buffer = clike_operand(p, inst, 0);
    const char *text = clike_in(p, buffer, LEVEL_primary);
    bool is_constant = inst->args[0]->type->number == BUFFER_constant;
    return place((Value){0}, is_constant ? text : clike_format(p, "%s[%s]", text, index));
}

static Value global(Printer *p, const Inst *inst) {
    const Global *g = inst->global;
    bool is_made_here = clike_computed_global(p, p->at->func) == g;
    Value value = place((Value){0}, is_made_here ? p->at->result : clike_global_name(p, g));
    value.steady = (g->kind == GLOBAL_const || g->kind == GLOBAL_uniform) && !is_made_here;
    return value;
}

bool slang_address(Printer *p, const Inst *inst, Value *result) {
    switch ((Op)inst->op) {
    case OP_global: *result = global(p, inst); return true;
    case OP_field: *result = field(p, inst); return true;
    case OP_elem: *result = element(p, inst); return true;
    case OP_buffer_elem: *result = buffer_element(p, inst); return true;
    case OP_buffer_bytes: *result = buffer_bytes(p, inst); return true;
    default: return false;
    }
}

/* ---- accesses */

static const char *whole_text(Printer *p, Value address, const Type *type) {
    if (!address.raw) return address.text;
    return clike_format(p, "%s.Load<%s>(%s)", address.text, clike_type(p, type), address.offset);
}

bool slang_is_block(const Inst *inst) {
    if (inst->op != OP_load || inst->results[0]->type->kind != TYPE_pointer) return false;
    const Val *from = ir_root(inst->args[0]);
    return from->kind == VAL_inst && from->inst->op == OP_global && from->inst->global->is_block &&
           from->inst->global->type->kind == TYPE_array;
}

Value slang_load(Printer *p, const Inst *inst) {
    Value address = clike_operand(p, inst, 0);
    if (slang_is_block(inst)) return address;
    Value value = clike_value(whole_text(p, address, inst->results[0]->type), LEVEL_primary);
    value.reads = !address.steady;
    return value;
}

static void assign(Printer *p, Value address, const Type *type, const char *value) {
    if (address.raw)
        clike_line(p, "%s.Store<%s>(%s, %s);", address.text, clike_type(p, type), address.offset, value);
    else clike_line(p, "%s;", clike_assignment(p, address.text, value));
}

void slang_memory(Printer *p, const Inst *inst) {
    const Type *type = inst->args[0]->type->args[0];
    Value to = clike_operand(p, inst, 0);
    if (clike_is_nothing(type)) return;
    switch ((Op)inst->op) {
    case OP_store: assign(p, to, type, clike_operand(p, inst, 1).text); break;
    case OP_copy: assign(p, to, type, whole_text(p, clike_operand(p, inst, 1), type)); break;
    default: assign(p, to, type, slang_zero(p, type));
    }
}

void slang_var(Printer *p, const Inst *inst) {
    const Val *v = inst->results[0];
    if (p->at->uses[v->id] == 0) return;
    const char *name = clike_name_value(p, v);
    p->at->values[v->id] = place((Value){0}, name);
    if (clike_is_nothing(inst->type)) return;
    bool zeroed =
        !inst_has(inst, INST_RAW) && !type_leads_elsewhere(inst->type); /* such a value cannot be zero */
    bool plain = type_is_scalar(inst->type) || inst->type->kind == TYPE_vector;
    clike_line(p, "%s%s%s;", clike_declare(p, inst->type, name), zeroed ? " = " : "",
               !zeroed ? ""
               : plain ? slang_zero(p, inst->type)
                       : "{}");
}

/* ---- calls */

static const char *argument(Printer *p, const Inst *inst, int index) {
    Value value = clike_operand(p, inst, index);
    const Param *param = &inst->callee->params[index];
    if (!(param->flags & PARAM_BY_ADDRESS)) return value.text;
    if (value.raw && param->dir != DIR_in)
        clike_fail(p, inst->loc, "a part of a byte buffer cannot be handed on to be written");
    return whole_text(p, value, param->type);
}

static const char *call_text(Printer *p, const Inst *inst) {
    Text text = {.arena = &p->arena};
    bool any = false;
    text_printf(&text, "%s(", clike_func_name(p, inst->callee));
    for (int i = 0; i < inst->nargs; i++) {
        if (!slang_declare_param(p, &inst->callee->params[i], "")) continue;
        text_printf(&text, "%s%s", any ? ", " : "", argument(p, inst, i));
        any = true;
    }
    text_char(&text, ')');
    return text.at;
}

void slang_call(Printer *p, const Inst *inst) {
    const char *text = call_text(p, inst);
    int returned = clike_returned_param(p, inst->callee);
    if (returned >= 0) assign(p, clike_operand(p, inst, returned), inst->callee->params[returned].type, text);
    else clike_set_results(p, inst, text);
}

/* ---- atomic operations */

void slang_atomic(Printer *p, const Inst *inst) {
    static const char *const names[] = {"Add", "Min", "Max", "And", "Or", "Xor", "Exchange"};
    const Val *before = inst->results[0];
    const char *what = inst->op == OP_atomic ? names[inst->index] : "CompareExchange";
    Value address = clike_operand(p, inst, 0);
    Text text = {.arena = &p->arena};
    text_printf(&text, address.raw ? "%s.Interlocked%s(%s" : "%.0sInterlocked%s(%s", address.text, what,
                address.raw ? address.offset : address.text);
    for (int i = 1; i < inst->nargs; i++) text_printf(&text, ", %s", clike_operand(p, inst, i).text);
    bool wanted = p->at->uses[before->id] > 0 || inst->op == OP_atomic_cas || inst->index == ATOMIC_exchange;
    if (wanted) {
        const char *name = clike_name_value(p, before);
        clike_line(p, "%s;", clike_declare(p, before->type, name));
        text_printf(&text, ", %s", name);
        p->at->values[before->id] = clike_value(name, LEVEL_primary);
    }
    clike_line(p, "%s);", text.at);
}
