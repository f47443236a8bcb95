/* Statements: a walk over the regions of a function. Values that regions yield are variables that are assigned. */
#include "emit/clike/clike.h"

static void region(Printer *p, const Region *region, Frame frame);

/* ---- assignment of several variables at once */

typedef struct Move {
    const char *to, *from;
    bool done, kept; /* kept: `from` is a variable made for this */
} Move;

static bool is_read_by_others(const Move *moves, int count, int index) {
    for (int i = 0; i < count; i++)
        if (i != index && !moves[i].done && clike_mentions(moves[i].from, moves[index].to)) return true;
    return false;
}

/* Makes those moves that disturb no other; were there any? */
static bool move_some(Printer *p, Move *moves, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (moves[i].done || is_read_by_others(moves, count, i)) continue;
        clike_line(p, "%s = %s;", moves[i].to, moves[i].from);
        any = moves[i].done = true;
    }
    return any;
}

/* A circle: what one of them will be is kept aside. */
static bool break_circle(Printer *p, Move *moves, int count, const Type *const *types) {
    for (int i = 0; i < count; i++) {
        if (moves[i].done || moves[i].kept) continue;
        const char *kept = clike_local(p, clike_format(p, "next_%s", moves[i].to));
        clike_line(p, "%s = %s;", clike_declare_value(p, types[i], kept), moves[i].from);
        moves[i].from = kept;
        return moves[i].kept = true;
    }
    return false;
}

/* The arguments of `inst` go to the variables; those that nobody reads have no text. */
static void assign(Printer *p, const Inst *inst, const Value *to) {
    Move *moves = arena_array(&p->arena, Move, inst->nargs + 1);
    const Type **types = arena_array(&p->arena, const Type *, inst->nargs + 1);
    int count = 0;
    for (int i = 0; i < inst->nargs; i++) {
        if (!to[i].text) continue;
        Value from = clike_operand(p, inst, i);
        const Type *type = inst->args[i]->type;
        const char *text =
            type->kind == TYPE_pointer ? clike_pointer(p, from, type->args[0], false) : from.text;
        if (strcmp(text, to[i].text) == 0) continue;
        types[count] = type;
        moves[count++] = (Move){.to = to[i].text, .from = text};
    }
    do
        while (move_some(p, moves, count)) {}
    while (break_circle(p, moves, count, types));
}

/* ---- variables for results */

static Value variable(Printer *p, const Val *v, const char *initial) {
    const char *name = clike_name_value(p, v);
    clike_line(p, initial ? "%s = %s;" : "%s;", clike_declare_value(p, v->type, name), initial);
    return clike_value(name, LEVEL_primary);
}

static Value *declare_results(Printer *p, const Inst *inst) {
    Value *values = arena_array(&p->arena, Value, inst->nresults + 1);
    for (int i = 0; i < inst->nresults; i++) {
        const Val *v = inst->results[i];
        if (p->at->uses[v->id] == 0) continue;
        values[i] = p->at->values[v->id] = variable(p, v, NULL);
    }
    return values;
}

/* ---- text that is looked at before it is kept */

typedef struct Draft {
    Text text, *outer;
} Draft;

static void draft_begin(Printer *p, Draft *draft) {
    *draft = (Draft){{.arena = &p->arena}, p->out};
    p->out = &draft->text;
    p->indent++;
}

static void draft_end(Printer *p, Draft *draft) {
    p->out = draft->outer;
    p->indent--;
}

static void draft_print(Printer *p, const Draft *draft) {
    if (draft->text.len) text_add(p->out, text_str(&draft->text));
}

static void print_label(Printer *p, const char *label) {
    if (label) clike_line(p, "%s:;", label);
}

static const char *negated(Printer *p, Value condition) {
    return clike_format(p, "!%s", clike_in(p, condition, LEVEL_unary));
}

/* ---- if, switch, block */

static void print_if(Printer *p, const Inst *inst) {
    Value condition = clike_operand(p, inst, 0), *results = declare_results(p, inst);
    Draft arms[2];
    for (int i = 0; i < 2; i++) {
        draft_begin(p, &arms[i]);
        region(p, inst->regions[i], (Frame){.owner = inst, .results = results});
        draft_end(p, &arms[i]);
    }
    if (arms[0].text.len == 0 && arms[1].text.len == 0) return;
    if (arms[0].text.len == 0) {
        clike_line(p, "if (%s) {", negated(p, condition));
        draft_print(p, &arms[1]);
    } else {
        clike_line(p, "if (%s) {", condition.text);
        draft_print(p, &arms[0]);
        if (arms[1].text.len) {
            clike_line(p, "} else {");
            draft_print(p, &arms[1]);
        }
    }
    clike_line(p, "}");
}

static bool comes_to_end(const Region *r) { return r->last && r->last->op == OP_yield; }

static void print_arm(Printer *p, const Inst *inst, int index, Value *results) {
    Draft draft;
    draft_begin(p, &draft);
    region(p, inst->regions[index], (Frame){.owner = inst, .results = results, .is_switch = true});
    if (comes_to_end(inst->regions[index])) clike_line(p, "break;");
    draft_end(p, &draft);
    draft_print(p, &draft);
    clike_line(p, "}");
}

static void print_switch(Printer *p, const Inst *inst) {
    Value value = clike_operand(p, inst, 0), *results = declare_results(p, inst);
    const Type *type = inst->args[0]->type;
    clike_line(p, type->kind == TYPE_bool ? "switch ((int)(%s)) {" : "switch (%s) {", value.text);
    for (int i = 0; i < inst->ncases; i++) {
        for (int k = 0; k < inst->cases[i].nvalues; k++) {
            const Val *label = ir_const_int(p->module, type, inst->cases[i].values[k]);
            const char *text =
                type->kind == TYPE_bool ? label->integer ? "1" : "0" : clike_constant(p, label);
            clike_line(p, "case %s:%s", text, k + 1 == inst->cases[i].nvalues ? " {" : "");
        }
        if (inst->cases[i].nvalues) print_arm(p, inst, i, results);
    }
    clike_line(p, "default: {");
    print_arm(p, inst, inst->ncases, results);
    clike_line(p, "}");
}

static void print_block(Printer *p, const Inst *inst) {
    Draft draft;
    const char *label = NULL;
    Frame frame = {.owner = inst, .results = declare_results(p, inst), .end = &label};
    draft_begin(p, &draft);
    region(p, inst->regions[0], frame);
    draft_end(p, &draft);
    clike_line(p, "{");
    draft_print(p, &draft);
    clike_line(p, "}");
    print_label(p, label);
}

/* ---- loop */

static bool is_carried_used(const Printer *p, const Inst *inst, int index) {
    const int *uses = p->at->uses;
    if (uses[inst->results[index]->id]) return true;
    for (int i = 0; i < inst->nregions; i++)
        if (uses[inst->regions[i]->params[index]->id]) return true;
    return false;
}

/* One variable per carried value, which is also the result. */
static Value *declare_carried(Printer *p, const Inst *inst) {
    Value *values = arena_array(&p->arena, Value, inst->nargs + 1);
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst->results[i], *param = inst->regions[0]->params[i];
        if (!is_carried_used(p, inst, i)) continue;
        Value initial = clike_operand(p, inst, i);
        const Type *type = v->type;
        const char *text =
            type->kind == TYPE_pointer ? clike_pointer(p, initial, type->args[0], false) : initial.text;
        values[i] = variable(p, v->name ? v : param, text);
        p->at->values[v->id] = values[i];
        for (int k = 0; k < inst->nregions; k++) p->at->values[inst->regions[k]->params[i]->id] = values[i];
    }
    return values;
}

static void print_condition(Printer *p, const Draft *draft, Value condition) {
    bool always = condition.text && strcmp(condition.text, "true") == 0;
    if (draft->text.len == 0 && condition.text && !always) {
        clike_line(p, "while (%s) {", condition.text);
        return;
    }
    clike_line(p, "for (;;) {");
    draft_print(p, draft);
    if (!condition.text || always) return;
    p->indent++;
    clike_line(p, "if (%s) break;", negated(p, condition));
    p->indent--;
}

static void print_loop(Printer *p, const Inst *inst) {
    Value *carried = declare_carried(p, inst), condition = {0};
    const char *end = NULL, *next = NULL;
    Frame frame = {.owner = inst, .results = carried, .is_loop = true, .end = &end, .next = &next};
    Frame deciding = frame, stepping = frame;
    Draft draft;
    deciding.condition = &condition;
    draft_begin(p, &draft);
    region(p, inst->regions[0], deciding);
    draft_end(p, &draft);
    print_condition(p, &draft, condition);
    frame.has_step = inst->nregions > 2;
    draft_begin(p, &draft);
    region(p, inst->regions[1], frame);
    if (frame.has_step && !next) region(p, inst->regions[2], stepping);
    draft_end(p, &draft);
    if (next) { /* a scope of its own, so that no jump comes into that of a variable */
        clike_line(p, "    {");
        draft_print(p, &draft);
        clike_line(p, "    }");
        print_label(p, next);
        p->indent++;
        if (frame.has_step) region(p, inst->regions[2], stepping);
        p->indent--;
    } else draft_print(p, &draft);
    clike_line(p, "}");
    print_label(p, end);
}

/* ---- ways out */

static Frame *frame_of(Printer *p, const Inst *target) {
    Frame *frame = p->at->frame;
    while (frame && frame->owner != target) frame = frame->up;
    if (!frame) clike_fail(p, 0, "a jump leaves a statement that is not around it");
    return frame;
}

/* What stands between here and there that takes the word for itself? */
static bool is_nearest(const Printer *p, const Frame *target, bool for_break) {
    for (const Frame *frame = p->at->frame; frame != target; frame = frame->up)
        if (frame->is_loop || (for_break && frame->is_switch)) return false;
    return true;
}

static const char *label_for(Printer *p, const char **label, const char *word) {
    if (!*label) *label = clike_format(p, "%s_%d", word, ++p->at->labels);
    return *label;
}

static void print_break(Printer *p, const Inst *inst) {
    Frame *frame = frame_of(p, inst->target);
    assign(p, inst, frame->results);
    if (frame->is_loop && is_nearest(p, frame, true)) clike_line(p, "break;");
    else clike_line(p, "goto %s;", label_for(p, frame->end, "end"));
}

static void print_continue(Printer *p, const Inst *inst) {
    Frame *frame = frame_of(p, inst->target);
    assign(p, inst, frame->results);
    if (!frame->has_step && is_nearest(p, frame, false)) clike_line(p, "continue;");
    else clike_line(p, "goto %s;", label_for(p, frame->next, "next"));
}

static void print_return(Printer *p, const Inst *inst) {
    const Func *func = p->at->func;
    if (inst->nargs == 0) {
        if (inst->parent != func->body) clike_line(p, "return;");
        return;
    }
    Text text = {.arena = &p->arena};
    for (int i = 0; i < inst->nargs; i++) {
        Value value = clike_operand(p, inst, i);
        const Type *type = inst->args[i]->type;
        const char *part =
            type->kind == TYPE_pointer ? clike_pointer(p, value, type->args[0], false) : value.text;
        text_printf(&text, "%s%s", i ? ", " : "", part);
    }
    if (inst->nargs == 1) {
        clike_line(p, "return %s;", text.at);
        return;
    }
    const char *name = clike_local(p, "results");
    clike_line(p, "const %s %s = {%s};", clike_results_type(p, func), name, text.at);
    clike_line(p, "return %s;", name);
}

static void print_yield(Printer *p, const Inst *inst) {
    Frame *frame = p->at->frame;
    if (frame->condition) *frame->condition = clike_operand(p, inst, 0);
    else if (frame->results) assign(p, inst, frame->results);
}

/* ---- calls */

static const char *call_text(Printer *p, const Inst *inst) {
    const Func *callee = inst->callee;
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s(", clike_func_name(p, callee));
    if (clike_takes_thread(p, callee)) text_add(&text, inst->nargs ? STR("thread, ") : STR("thread"));
    for (int i = 0; i < inst->nargs; i++) {
        Value value = clike_operand(p, inst, i);
        const Param *param = &callee->params[i];
        bool by_address = (param->flags & PARAM_BY_ADDRESS) != 0;
        const Type *type = inst->args[i]->type;
        const char *arg = type->kind == TYPE_pointer
                              ? clike_pointer(p, value, type->args[0], by_address && param->dir == DIR_in)
                              : value.text;
        text_printf(&text, "%s%s", i ? ", " : "", arg);
    }
    text_char(&text, ')');
    return text.at;
}

static bool is_any_used(const Printer *p, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (p->at->uses[inst->results[i]->id]) return true;
    return false;
}

static void print_call(Printer *p, const Inst *inst) {
    const char *text = call_text(p, inst);
    if (!is_any_used(p, inst)) {
        clike_line(p, "%s;", text);
    } else if (inst->nresults == 1) {
        clike_set_statement(p, inst, text);
    } else {
        const char *name = clike_local(p, clike_format(p, "from_%s", clike_func_name(p, inst->callee)));
        clike_line(p, "const %s %s = %s;", clike_results_type(p, inst->callee), name, text);
        for (int i = 0; i < inst->nresults; i++)
            p->at->values[inst->results[i]->id] =
                clike_value(clike_format(p, "%s.r%d", name, i), LEVEL_primary);
    }
}

/* ---- the machine around the program */

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

static void print_var(Printer *p, const Inst *inst) {
    const Val *v = inst->results[0];
    if (p->at->uses[v->id] == 0) return;
    if (clike_is_nothing(inst->type)) {
        p->at->values[v->id] = clike_nowhere(p, inst->type);
        return;
    }
    int64_t size = type_layout(inst->type, LAYOUT_scalar).size;
    bool scalar = type_is_scalar(inst->type) || inst->type->kind == TYPE_pointer;
    bool zeroed = !inst->flag || size <= 64; /* a small one costs nothing, and no compiler warns */
    const char *name = clike_name_value(p, v);
    clike_line(p, "%s%s;", clike_declare(p, inst->type, name), !zeroed ? "" : scalar ? " = 0" : " = {0}");
    if (scalar && is_only_written(p->at->func, v)) clike_line(p, "(void)%s;", name);
    Value value = clike_value(name, LEVEL_primary);
    value.is_place = true;
    p->at->values[v->id] = value;
}

static void print_atomic(Printer *p, const Inst *inst) {
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor", "exchange"};
    const Type *type = inst->results[0]->type;
    if (type->kind == TYPE_half || type_bits(type) < p->dialect->atomic_bits)
        clike_fail(p, inst->loc, "this target has no atomic operations on %s", clike_word(p, type));
    const char *pointer = clike_pointer(p, clike_operand(p, inst, 0), type, false);
    const char *what = inst->op == OP_atomic ? names[inst->index] : "cas";
    if (p->dialect->warp_sums && strcmp(what, "add") == 0 && p->at->uses[inst->results[0]->id] == 0) {
        clike_helper(p, "slope_lane");
        what = "sum";
    }
    const char *function = clike_atomic(p, what, type);
    const char *text = clike_format(p, "%s(%s, %s", function, pointer, clike_operand(p, inst, 1).text);
    if (inst->op == OP_atomic_cas) text = clike_format(p, "%s, %s", text, clike_operand(p, inst, 2).text);
    clike_set_statement(p, inst, clike_format(p, "%s)", text));
}

static void print_tape(Printer *p, const Inst *inst) {
    const char *tape = inst->nargs ? clike_operand(p, inst, 0).text : NULL;
    const char *second = inst->nargs > 1 ? clike_operand(p, inst, 1).text : NULL;
    switch ((Op)inst->op) {
    case OP_tape_open:
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s)", clike_helper(p, "slope_tape_open"),
                                         p->dialect->thread_local_ ? "" : "thread"));
        break;
    case OP_tape_close: clike_line(p, "%s(%s);", clike_helper(p, "slope_tape_close"), tape); break;
    case OP_tape_push:
        clike_line(p, "%s(%s, %s);", clike_tape(p, "push", inst->args[1]->type), tape, second);
        break;
    case OP_tape_pop:
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s)", clike_tape(p, "pop", inst->results[0]->type), tape));
        break;
    case OP_tape_grow:
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s, %s)",
                                         clike_tape(p, inst->flag ? "take" : "grow", inst->type), tape,
                                         second));
        break;
    case OP_tape_shrink:
        clike_line(p, "%s(%s, %s);", clike_tape(p, "shrink", inst->type), tape, second);
        break;
    case OP_tape_load:
        clike_set_statement(
            p, inst,
            clike_format(p, "%s(%s, %s)", clike_tape(p, "kept", inst->results[0]->type), tape, second));
        break;
    default:
        clike_line(p, "%s(%s, %s, %s);", clike_tape(p, "keep", inst->args[2]->type), tape, second,
                   clike_operand(p, inst, 2).text);
    }
}

static Value thread_id(Printer *p, const Inst *inst) {
    const char *text = p->dialect->thread_id(p, inst->index);
    if (!text) clike_fail(p, inst->loc, "this target does not know how large a dispatch is");
    return clike_value(text, LEVEL_primary);
}

static void print_barrier(Printer *p, const Inst *inst) {
    const char *text = inst->index == 1 ? p->dialect->barrier : p->dialect->fence;
    if (text) clike_line(p, "%s", text);
}

static void print_wave(Printer *p, const Inst *inst) {
    const char *value = clike_operand(p, inst, 0).text;
    clike_set_statement(p, inst, clike_format(p, "%s(thread, %s)", clike_helper(p, "slope_wave"), value));
}

static void print_abort(Printer *p, const Inst *inst) {
    clike_line(p, "%s(%s);", clike_helper(p, "SLOPE_ABORT"), clike_string(p, inst->text));
}

/* ---- instructions */

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

static bool has_vector(const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_vector) return true;
    return inst->results[0]->type->kind == TYPE_vector;
}

/* What is computed from operands alone. */
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
    if (inst->op == OP_bitcast) value = bitcast(p, inst);
    else if (inst->op == OP_thread_id) value = thread_id(p, inst);
    else if (inst->op == OP_buffer_length)
        value = clike_value(clike_format(p, "%s(%s.count)", clike_helper(p, "slope_length"),
                                         clike_in(p, args[0], LEVEL_primary)),
                            LEVEL_primary);
    else if (inst->op == OP_select && inst->args[0]->type->kind != TYPE_vector)
        value = clike_scalar_op(p, OP_select, NULL, NULL, args, inst);
    else if (has_vector(inst)) value = clike_vector_op(p, inst, args);
    else value = clike_scalar_op(p, (Op)inst->op, inst->args[0]->type, inst->results[0]->type, args, inst);
    value.reads |= reads;
    return value;
}

static void effect(Printer *p, const Inst *inst) {
    clike_consume(p, inst);
    clike_flush(p);
    clike_print_line(p, inst->loc);
    switch ((Op)inst->op) {
    case OP_store:
    case OP_copy:
    case OP_zero:
    case OP_acc: clike_memory(p, inst); break;
    case OP_atomic:
    case OP_atomic_cas: print_atomic(p, inst); break;
    case OP_call: print_call(p, inst); break;
    case OP_printf: clike_printf(p, inst); break;
    case OP_abort: print_abort(p, inst); break;
    case OP_barrier: print_barrier(p, inst); break;
    case OP_wave: print_wave(p, inst); break;
    case OP_if: print_if(p, inst); break;
    case OP_switch: print_switch(p, inst); break;
    case OP_loop: print_loop(p, inst); break;
    case OP_block: print_block(p, inst); break;
    case OP_yield: print_yield(p, inst); break;
    case OP_break: print_break(p, inst); break;
    case OP_continue: print_continue(p, inst); break;
    case OP_return: print_return(p, inst); break;
    case OP_unreachable: clike_line(p, "%s();", clike_helper(p, "SLOPE_UNREACHABLE")); break;
    default: print_tape(p, inst);
    }
}

static void instruction(Printer *p, const Inst *inst) {
    Value value;
    if (inst->op == OP_var) print_var(p, inst);
    else if (inst->op == OP_load) clike_set(p, inst, clike_load(p, inst));
    else if (clike_address(p, inst, &value)) clike_set(p, inst, value);
    else if (op_has(inst->op, OP_PURE) && inst->nresults == 1) clike_set(p, inst, compute(p, inst));
    else effect(p, inst);
}

static void region(Printer *p, const Region *r, Frame frame) {
    frame.up = p->at->frame;
    p->at->frame = &frame;
    for (const Inst *inst = r->first; inst; inst = inst->next) instruction(p, inst);
    p->at->frame = frame.up;
}

/* ---- functions */

static void count_uses(void *user, Inst *inst) {
    FuncState *at = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        if (val_is_const(v)) continue;
        at->uses[v->id]++;
        at->user[v->id] = inst;
    }
}

void clike_body(Printer *p, const Func *func, const char *const *params) {
    FuncState at = {.func = func};
    at.values = arena_array(&p->arena, Value, func->nvals + 1);
    at.uses = arena_array(&p->arena, int, func->nvals + 1);
    at.user = arena_array(&p->arena, const Inst *, func->nvals + 1);
    p->at = &at;
    region_walk(func->body, count_uses, &at);
    if (clike_takes_thread(p, func)) clike_unique(p, &at.names, "thread");
    for (int i = 0; i < func->nparams; i++) {
        const Val *v = func->body->params[i];
        Value value = clike_value(clike_unique(p, &at.names, params[i]), LEVEL_primary);
        bool by_address = (func->params[i].flags & PARAM_BY_ADDRESS) != 0;
        value.constant = by_address && clike_is_const_param(&func->params[i]);
        value.steady = by_address && func->params[i].dir == DIR_in;
        at.values[v->id] = value;
        if (at.uses[v->id] == 0) clike_line(p, "(void)%s;", value.text);
    }
    region(p, func->body, (Frame){0});
    p->at = NULL;
}
