/* How languages with pointers (C, CUDA) say what touches memory and the machine: variables, calls, atomic
 * operations, tapes. An object is handed on by its address; what the language leaves open is done by
 * helpers. */
#include "emit/clike/clike.h"

/* ---- calls */

/* With one that the IR does not know before them, or NULL. */
static const char *call_text(Printer *p, const Inst *inst, const char *first) {
    const Func *callee = inst->callee;
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s(%s", clike_func_name(p, callee), first ? first : "");
    for (int i = 0; i < inst->nargs; i++) {
        const Param *param = &callee->params[i];
        bool by_address = (param->flags & PARAM_BY_ADDRESS) != 0;
        const Type *type = inst->args[i]->type;
        Value value =
            by_address && param->dir == DIR_in ? clike_read_operand(p, inst, i) : clike_operand(p, inst, i);
        const char *arg =
            type->kind == TYPE_pointer
                ? clike_pointer(p, value, type->args[0], by_address && clike_is_const_param(param))
            : param->flags & PARAM_APART ? clike_parts_of_buffer(p, value)
                                         : value.text;
        text_printf(&text, "%s%s", i || first ? ", " : "", arg);
    }
    text_char(&text, ')');
    return text.at;
}

static void print_call(Printer *p, const Inst *inst) {
    if (clike_is_tried(p, inst->callee)) {
        clike_line(p, "if (!%s)", call_text(p, inst, "false"));
        clike_line(p, "    %s;", call_text(p, inst, "true"));
        return;
    }
    clike_set_results(p, inst, call_text(p, inst, clike_takes_thread(p, inst->callee) ? "thread" : NULL));
}

/* ---- variables and atomic operations */

typedef struct Reads {
    const Val *of;
    bool any;
} Reads;

static void find_read(void *user, Inst *inst) {
    Reads *reads = user;
    const Type *type = inst->op == OP_bitcast ? inst->results[0]->type : NULL;
    if (type && type->kind == TYPE_pointer && clike_is_nothing(type->args[0])) return;
    for (int i = inst->op == OP_store ? 1 : 0; i < inst->nargs; i++)
        reads->any |= ir_resolve(inst->args[i]) == reads->of;
}

/* Compilers warn of variables that are only written. */
static bool is_only_written(const Func *func, const Val *v) {
    Reads reads = {v, false};
    region_walk(func->body, find_read, &reads);
    return !reads.any;
}

/* What vectors read and write of it lies in one line of the cache then, not in two. */
static const char *alignment(Printer *p, const Type *type, int64_t size) {
    enum { ROW = 64 };
    bool is_aligned = type->kind == TYPE_array && size >= ROW && clike_has_vectors(p);
    return is_aligned ? clike_format(p, "%s ", clike_helper(p, "SLOPE_ALIGNED")) : "";
}

static void print_var(Printer *p, const Inst *inst) {
    const Val *v = inst->results[0];
    if (p->at->uses[v->id] == 0) return;
    if (clike_is_nothing(inst->type)) {
        p->at->values[v->id] = clike_nowhere(p, inst->type);
        return;
    }
    if (clike_begin_large(p, inst)) return;
    int64_t size = type_layout(inst->type, LAYOUT_scalar).size, most = p->dialect->most_local;
    if (most && size > most)
        clike_fail(p, inst->loc, "this target has no variables of %lld bytes: a thread has %lld",
                   (long long)size, (long long)most);
    bool scalar = type_is_scalar(inst->type) || inst->type->kind == TYPE_pointer;
    bool zeroed =
        !inst_has(inst, INST_RAW) || size <= 64; /* a small one costs nothing, and no compiler warns */
    const char *name = clike_name_value(p, v);
    if (p->at->crosses && p->at->crosses[v->id]) {
        name = clike_spread(p, inst->type, name, false);
        if (zeroed) clike_line(p, "memset(&%s, 0, sizeof %s);", name, name);
    } else {
        const char *declaration =
            clike_format(p, "%s%s", alignment(p, inst->type, size), clike_declare(p, inst->type, name));
        if (zeroed) clike_line(p, "%s = %s;", declaration, scalar ? "0" : clike_zeros(p, inst->type));
        else clike_line(p, "%s;", declaration);
        if (scalar && is_only_written(p->at->func, v)) clike_line(p, "(void)%s;", name);
        clike_own_array(p, inst, name);
    }
    Value value = clike_value(name, LEVEL_primary);
    value.is_place = true;
    p->at->values[v->id] = value;
}

/* No two threads run this code at a time. */
bool clike_is_plain_sum(const Printer *p, const Inst *inst) {
    return p->options->alone && p->dialect->thread_local_ && inst->op == OP_atomic &&
           inst->index == ATOMIC_add;
}

/* As a statement, which compilers see through before they make functions a part of others: only then do they
 * know that buffers are apart (outlined.c). */
static bool print_plain_sum(Printer *p, const Inst *inst, const Type *type) {
    bool is_number = type->kind == TYPE_float || type->kind == TYPE_double;
    if (!clike_is_plain_sum(p, inst) || p->at->uses[inst->results[0]->id] > 0 || !is_number) return false;
    Value address = clike_operand(p, inst, 0);
    if (address.raw) return false;
    Value more = clike_operand(p, inst, 1);
    const char *place = clike_place(p, address, type);
    const char *before = clike_masked_load(p, inst, clike_value(place, LEVEL_primary)).text;
    if (before == place) clike_line(p, "%s += %s;", place, more.text);
    else clike_line(p, "%s = %s + %s;", place, before, clike_in(p, more, LEVEL_product));
    return true;
}

static const char *atomic_function(Printer *p, const Inst *inst, const Type *type) {
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor", "exchange"};
    if (clike_is_plain_sum(p, inst))
        return clike_helper(p, clike_format(p, "slope_sum_%s", clike_word(p, type)));
    const char *what = inst->op == OP_atomic ? names[inst->index] : "cas";
    if (!p->dialect->warp_sums || strcmp(what, "add") != 0 || p->at->uses[inst->results[0]->id] > 0)
        return clike_atomic(p, what, type);
    clike_helper(p, "slope_warp_sum");
    bool in_group = p->sums.any && type->kind == p->sums.kind;
    return in_group ? clike_helper(p, "slope_atomic_group_sum") : clike_atomic(p, "sum", type);
}

static void print_atomic_call(Printer *p, const Inst *inst, const Type *type) {
    const char *pointer = clike_pointer(p, clike_operand(p, inst, 0), type, false);
    const char *text =
        clike_format(p, "%s(%s, %s", atomic_function(p, inst, type), pointer, clike_operand(p, inst, 1).text);
    if (inst->op == OP_atomic_cas) text = clike_format(p, "%s, %s", text, clike_operand(p, inst, 2).text);
    clike_set_statement(p, inst, clike_format(p, "%s)", text));
}

static void print_atomic(Printer *p, const Inst *inst) {
    const Type *type = inst->results[0]->type;
    if (type_bits(type) < p->dialect->atomic_bits)
        clike_fail(p, inst->loc, "this target has no atomic operations on %s", clike_word(p, type));
    bool is_wanted = p->at->uses[inst->results[0]->id] > 0;
    if (!is_wanted && clike_leads_nowhere(inst)) return;
    if (clike_sum(p, inst)) return;
    bool is_tested = !is_wanted && clike_begin_tested(p, inst);
    if (!print_plain_sum(p, inst, type)) print_atomic_call(p, inst, type);
    if (is_tested) clike_end_tested(p);
    clike_end_row(p, inst);
}

/* A tape of known size is a local variable. (No memset: gcc would not take it apart.) */
static void open_local_tape(Printer *p, const Inst *inst, const TapeRoom *room) {
    const char *name = clike_name_value(p, inst->results[0]);
    clike_helper(p, "SlopeTape");
    clike_line(p, "SlopeTape %s = %s;", name, clike_helper(p, "SLOPE_ZERO"));
    clike_line(p, "(void)%s; /* maybe nothing is kept */", name);
    for (int kind = 0; kind < TAPE_KINDS; kind++) {
        const Type *type = type_basic(p->module->types, (TypeKind)(TYPE_bool + kind));
        if (!room->exact[kind]) continue;
        const char *kept = clike_local(p, clike_format(p, "%s_kept", clike_word(p, type)));
        clike_line(p, "%s %s[%lld];", clike_type(p, type), kept, (long long)room->exact[kind]);
        clike_own_tape(p, inst, kept);
        clike_line(p, "%s.stacks[%d].data = %s, %s.stacks[%d].room = INT64_MAX; /* it cannot grow */", name,
                   kind, kept, name, kind);
    }
    p->at->values[inst->results[0]->id] = clike_value(clike_format(p, "&%s", name), LEVEL_unary);
}

static bool closes(const void *tape, const Inst *inst) {
    return inst->op == OP_tape_close && inst_operand(inst, 0) == tape;
}

/* Without memory of the thread's own that functions share, a tape is a variable of who opens and closes
 * it. */
static bool is_variable(const Printer *p, const Inst *inst) {
    return !p->dialect->thread_local_ && region_find(inst->func->body, closes, inst->results[0]);
}

static void open_variable_tape(Printer *p, const Inst *inst) {
    const char *name = clike_name_value(p, inst->results[0]);
    clike_line(p, "SlopeTape %s;", name);
    clike_line(p, "%s(&%s, thread);", clike_helper(p, "slope_tape_begin"), name);
    p->at->values[inst->results[0]->id] = clike_value(clike_format(p, "&%s", name), LEVEL_unary);
}

static void open_tape(Printer *p, const Inst *inst) {
    const TapeRoom *room = reach_local_tape(&p->reached, inst->results[0]);
    if (room) open_local_tape(p, inst, room);
    else if (is_variable(p, inst)) open_variable_tape(p, inst);
    else
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s)", clike_helper(p, "slope_tape_open"),
                                         p->dialect->thread_local_ ? "" : "thread"));
}

static void close_tape(Printer *p, const Inst *inst, const char *tape) {
    if (reach_local_tape(&p->reached, inst->args[0])) return;
    clike_line(p, "%s(%s);", clike_helper(p, "slope_tape_close"), tape);
}

static void print_push(Printer *p, const Inst *inst, const char *tape, const char *value) {
    const Type *type = inst->args[1]->type;
    int row = emit_count_row(inst);
    bool is_one_of_many = p->dialect->reserves && row != 1;
    if (is_one_of_many && row) clike_line(p, "%s(%s, %d);", clike_tape(p, "reserve", type), tape, row);
    clike_line(p, "%s(%s, %s);", clike_tape(p, is_one_of_many ? "put" : "push", type), tape, value);
}

static Value kept(Printer *p, const Inst *inst) {
    const char *place = clike_short(p, clike_operand(p, inst, 1).text), *text = clike_masked_place(p, place);
    if (!text)
        text = clike_format(p, "%s(%s, %s)", clike_tape(p, "kept", inst->results[0]->type),
                            clike_operand(p, inst, 0).text, place);
    Value value = clike_value(text, LEVEL_primary);
    value.reads = true;
    return value;
}

static void keep(Printer *p, const Inst *inst, const char *tape, const char *place) {
    const char *value = clike_operand(p, inst, 2).text, *masked = clike_masked_place(p, place);
    if (masked) clike_line(p, "%s = %s;", masked, value);
    else clike_line(p, "%s(%s, %s, %s);", clike_tape(p, "keep", inst->args[2]->type), tape, place, value);
}

static void print_tape(Printer *p, const Inst *inst) {
    const char *tape = inst->nargs ? clike_operand(p, inst, 0).text : NULL;
    const char *second = inst->nargs > 1 ? clike_short(p, clike_operand(p, inst, 1).text) : NULL;
    switch ((Op)inst->op) {
    case OP_tape_open: open_tape(p, inst); break;
    case OP_tape_close: close_tape(p, inst, tape); break;
    case OP_tape_push: print_push(p, inst, tape, second); break;
    case OP_tape_pop:
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s)", clike_tape(p, "pop", inst->results[0]->type), tape));
        break;
    case OP_tape_grow:
        clike_set_statement(
            p, inst,
            clike_format(p, "%s(%s, %s)",
                         clike_tape(p, inst_has(inst, INST_RAW) ? "take" : "grow", inst->type), tape,
                         second));
        break;
    case OP_tape_shrink:
        clike_line(p, "%s(%s, %s);", clike_tape(p, "shrink", inst->type), tape, second);
        break;
    case OP_tape_load: clike_set_statement(p, inst, kept(p, inst).text); break;
    default: keep(p, inst, tape, second);
    }
}

/* ---- waves and the end */

static void print_wave(Printer *p, const Inst *inst) {
    if (p->at->crosses) {
        clike_bring(p, inst);
        return;
    }
    if (!p->dialect->wave && p->at->uses[inst->results[0]->id] == 0) return;
    if (!p->dialect->wave) { /* a thread alone is a wave of one lane */
        const char *own = clike_local(p, "met");
        clike_line(p, "uint64_t %s[3] = {1, 0, %s};", own, clike_operand(p, inst, 0).text);
        clike_set_statement(p, inst, own);
        return;
    }
    const char *value = clike_operand(p, inst, 0).text;
    const char *lanes = clike_operand(p, inst, 1).text;
    clike_set_statement(
        p, inst, clike_format(p, "%s(thread, %s, %s)", clike_helper(p, p->dialect->wave), value, lanes));
}

static void print_abort(Printer *p, const Inst *inst) {
    clike_line(p, "%s(%s);", clike_helper(p, "SLOPE_ABORT"), clike_string(p, inst->text));
}

/* ---- what is computed from operands alone */

static Value thread_id(Printer *p, const Inst *inst) {
    const char *text = p->dialect->thread_id(p, inst->index);
    return clike_value(text, LEVEL_primary);
}

static Value bitcast(Printer *p, const Inst *inst) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    Value value = clike_operand(p, inst, 0);
    if (from->kind == TYPE_pointer)
        return clike_value(
            clike_format(p, "(%s)(intptr_t)%s", clike_type(p, to),
                         clike_in(p, clike_value(clike_pointer(p, value, from->args[0], true), LEVEL_choice),
                                  LEVEL_unary)),
            LEVEL_unary);
    if (type_is_integer(from) && type_is_integer(to))
        return clike_value(clike_format(p, "(%s)%s", clike_type(p, to), clike_in(p, value, LEVEL_unary)),
                           LEVEL_unary);
    return clike_value(clike_format(p, "%s(%s)", clike_bitcast(p, from, to), value.text), LEVEL_primary);
}

/* ---- sine and cosine of the same number, which take little longer than one of them */

/* The cosine of what this is the sine of, or the other way round; NULL: none is needed here. */
static const Inst *find_partner(const Printer *p, const Inst *inst) {
    const Op wanted = inst->op == OP_sin ? OP_cos : OP_sin;
    for (const Inst *next = inst->next; next; next = next->next)
        if (next->op == wanted && ir_resolve(next->args[0]) == ir_resolve(inst->args[0]) &&
            p->at->uses[next->results[0]->id] > 0)
            return next;
    return NULL;
}

static bool compute_both(Printer *p, const Inst *inst, Value arg, Value *result) {
    const Type *type = inst->results[0]->type;
    const bool is_sine = inst->op == OP_sin;
    if (!p->dialect->sine_and_cosine || p->options->level < 2 || (inst->op != OP_sin && inst->op != OP_cos))
        return false;
    const char *mine = map_get(&p->at->computed, PTR_KEY(inst));
    if (mine) map_put(&p->arena, &p->at->computed, PTR_KEY(inst), NULL); /* it may be printed again */
    const Inst *partner =
        mine || (type->kind != TYPE_float && type->kind != TYPE_double) ? NULL : find_partner(p, inst);
    if (partner) {
        const char *other = clike_name_value(p, partner->results[0]);
        mine = clike_name_value(p, inst->results[0]);
        clike_line(p, "%s %s, %s;", clike_type(p, type), is_sine ? mine : other, is_sine ? other : mine);
        clike_line(p, "%s%s(%s, &%s, &%s);", p->dialect->sine_and_cosine, type->kind == TYPE_float ? "f" : "",
                   arg.text, is_sine ? mine : other, is_sine ? other : mine);
        map_put(&p->arena, &p->at->computed, PTR_KEY(partner), (void *)(uintptr_t)other);
    }
    if (!mine) return false;
    *result = clike_value(mine, LEVEL_primary);
    result->named = true;
    return true;
}

static bool has_vector(const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_vector) return true;
    return inst->results[0]->type->kind == TYPE_vector;
}

static Value buffers_apart(Printer *p, const Value *buffers) {
    const char *a = clike_in(p, buffers[0], LEVEL_primary), *b = clike_in(p, buffers[1], LEVEL_primary);
    return clike_value(
        clike_format(p, "%s(%s.data, %s.count * sizeof *%s.data, %s.data, %s.count * sizeof *%s.data)",
                     clike_helper(p, "slope_apart"), a, a, a, b, b, b),
        LEVEL_primary);
}

static Value compute(Printer *p, const Inst *inst) {
    Value args[4] = {0}, value;
    bool reads = false;
    for (int i = 0; i < inst->nargs; i++) {
        Value arg = clike_operand(p, inst, i);
        const Type *type = inst->args[i]->type;
        if (i < 4) args[i] = arg;
        if (i < 4 && type->kind == TYPE_pointer && inst->op != OP_bitcast)
            args[i] = clike_value(clike_pointer(p, arg, type->args[0], false), LEVEL_unary);
        reads |= arg.reads;
    }
    if (compute_both(p, inst, args[0], &value)) return value;
    if (inst->op == OP_bitcast) value = bitcast(p, inst);
    else if (inst->op == OP_thread_id) value = thread_id(p, inst);
    else if (inst->op == OP_buffer_length)
        value = clike_value(clike_format(p, "%s(%s.count)", clike_helper(p, "slope_length"),
                                         clike_in(p, args[0], LEVEL_primary)),
                            LEVEL_primary);
    else if (inst->op == OP_buffers_apart) value = buffers_apart(p, args);
    else if (inst->op == OP_select && inst->args[0]->type->kind != TYPE_vector)
        value = clike_scalar_op(p, OP_select, NULL, NULL, args, inst);
    else if (has_vector(inst)) value = clike_vector_op(p, inst, args);
    else value = clike_scalar_op(p, (Op)inst->op, inst->args[0]->type, inst->results[0]->type, args, inst);
    value.reads |= reads;
    return value;
}

/* ---- the language */

const Language clike_with_pointers = {
    .declare = clike_declare_pointers,
    .declare_value = clike_declare_pointers_value,
    .declare_param = clike_declare_pointer_param,
    .define_record = clike_define_c_record,
    .check_record = clike_check_c_record,
    .constant = clike_c_constant,
    .compute = compute,
    .address = clike_address,
    .load = clike_load,
    .memory = clike_memory,
    .var = print_var,
    .call = print_call,
    .atomic = print_atomic,
    .kept = kept,
    .tape = print_tape,
    .wave = print_wave,
    .abort = print_abort,
    .print = clike_printf,
    .has_goto = true,
    .no_params = "void",
};
