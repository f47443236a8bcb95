/* Statements: a walk over the regions of a function. Values that regions yield are variables that are
 * assigned. */
#include "emit/clike/clike.h"

/* ---- assignment of several variables at once */

typedef struct Move {
    const char *to, *from;
    Loc loc;         /* of what is computed */
    bool done, kept; /* kept: `from` is a variable made for this */
} Move;

static bool is_read_by_others(const Move *moves, int count, int index) {
    for (int i = 0; i < count; i++)
        if (i != index && !moves[i].done && clike_mentions(moves[i].from, moves[index].to)) return true;
    return false;
}

/* Makes those moves that disturb no other; were there any? */
static bool move_some(Printer *p, Move *moves, int count) {
    Loc here = p->at->loc;
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (moves[i].done || is_read_by_others(moves, count, i)) continue;
        if (moves[i].loc) p->at->loc = moves[i].loc;
        clike_line(p, "%s;", clike_assignment(p, moves[i].to, moves[i].from));
        any = moves[i].done = true;
        p->at->loc = here;
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
void clike_assign(Printer *p, const Inst *inst, const Value *to) {
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
        const Val *v = ir_resolve(inst->args[i]);
        moves[count++] =
            (Move){.to = to[i].text, .from = text, .loc = v->kind == VAL_inst ? v->inst->loc : 0};
    }
    do
        while (move_some(p, moves, count)) {}
    while (break_circle(p, moves, count, types));
}

/* ---- variables for results */

static Value variable(Printer *p, const Val *v, const char *initial) {
    const char *name = clike_name_value(p, v);
    if (p->at->crosses && p->at->crosses[v->id]) {
        name = clike_spread(p, v->type, name, true);
        if (initial) clike_line(p, "%s = %s;", name, clike_short(p, initial));
        return clike_value(name, LEVEL_primary);
    }
    const char *declaration = clike_declare_value(p, v->type, name);
    if (initial) clike_line(p, "%s = %s;", declaration, clike_short(p, initial));
    else clike_line(p, "%s;", declaration);
    return clike_value(name, LEVEL_primary);
}

/* Variables, and what they have held so far. */
typedef struct Results {
    Value *values;
    const Val **held;
} Results;

static Results declare_results(Printer *p, const Inst *inst) {
    Results results = {arena_array(&p->arena, Value, inst->nresults + 1),
                       arena_array(&p->arena, const Val *, inst->nresults + 1)};
    for (int i = 0; i < inst->nresults; i++) {
        const Val *v = inst->results[i];
        if (p->at->uses[v->id] == 0) continue;
        const Value *joined = inst->op == OP_block ? NULL : clike_joined(p, inst, i, &results.held[i]);
        results.values[i] = p->at->values[v->id] = joined ? *joined : variable(p, v, NULL);
        if (!joined) results.held[i] = NULL;
    }
    return results;
}

/* ---- text that is looked at before it is kept */

typedef struct Draft {
    Text text, *outer;
    Loc loc;
} Draft;

static void draft_begin(Printer *p, Draft *draft) {
    *draft = (Draft){{.arena = &p->arena}, p->out, p->at->loc};
    p->out = &draft->text;
    p->indent++;
}

static void draft_end(Printer *p, Draft *draft) {
    p->out = draft->outer;
    p->at->loc = draft->loc;
    p->indent--;
}

static void draft_print(Printer *p, const Draft *draft) {
    if (draft->text.len) text_add(p->out, text_str(&draft->text));
}

/* Where a jump goes to: behind a statement; without goto, what is to be left is named before it begins. */
static void label_before(Printer *p, const char *label) {
    if (label && !p->dialect->language->has_goto) clike_line(p, "%s:", label);
}

static void label_after(Printer *p, const char *label) {
    if (label && p->dialect->language->has_goto) clike_line(p, "%s:;", label);
}

/* A statement that can be left. */
static void print_leavable(Printer *p, const Draft *draft, const char *label) {
    bool has_goto = p->dialect->language->has_goto;
    label_before(p, label);
    clike_line(p, has_goto ? "{" : "do {");
    draft_print(p, draft);
    clike_line(p, has_goto ? "}" : "} while (false);");
    label_after(p, label);
}

/* The operator `==` or `!=` that it consists of; NULL: something else. */
static const char *find_equality(Value condition) {
    int depth = 0;
    const char *found = NULL;
    if (condition.level != LEVEL_comparison || strchr(condition.text, '"')) return NULL;
    for (const char *at = condition.text; *at; at++) {
        depth += (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
        if (depth == 0 && (strncmp(at, " == ", 4) == 0 || strncmp(at, " != ", 4) == 0)) found = at + 1;
    }
    return found;
}

static const char *negated(Printer *p, Value condition) {
    const char *equality = find_equality(condition);
    if (equality)
        return clike_format(p, "%.*s%c%s", (int)(equality - condition.text), condition.text,
                            *equality == '=' ? '!' : '=', equality + 1);
    return clike_format(p, "!%s", clike_in(p, condition, LEVEL_unary));
}

/* ---- if, switch, block */

static bool comes_to_end(const Region *r) { return r->last && r->last->op == OP_yield; }

static void print_region(Printer *p, const Region *r, Frame frame);

/* A region between braces; has it made any text? */
static bool print_arm(Printer *p, const Inst *inst, int index, Results results) {
    bool is_switch = inst->op == OP_switch;
    int before = p->out->len;
    Loc loc = p->at->loc;
    p->indent++;
    print_region(
        p, inst->regions[index],
        (Frame){.owner = inst, .results = results.values, .held = results.held, .is_switch = is_switch});
    if (is_switch && comes_to_end(inst->regions[index])) clike_line(p, "break;");
    p->indent--;
    p->at->loc = loc;
    return p->out->len > before;
}

/* Without what turns out to be empty; that is taken back, not written elsewhere first, since the regions may
 * be deep. */
static void print_if(Printer *p, const Inst *inst) {
    Value condition = clike_operand(p, inst, 0);
    Results results = declare_results(p, inst);
    int start = p->out->len;
    const Inst *tiled = p->at->tile.loop;
    const char *together = inst_has(inst, INST_LIKELY) ? clike_find_tile(p, inst) : NULL;
    if (together) {
        const Value both[] = {condition, clike_value(together, LEVEL_primary)};
        condition = clike_infix(p, both, "&&", LEVEL_logic);
    }
    if (inst_has(inst, INST_LIKELY) && !p->dialect->language->has_places_only)
        clike_line(p, "if (%s(%s)) {", clike_helper(p, "SLOPE_LIKELY"), condition.text);
    else clike_line(p, "if (%s) {", condition.text);
    bool then = print_arm(p, inst, 0, results);
    p->at->tile.loop = tiled;
    int middle = then ? p->out->len : start;
    text_cut(p->out, middle);
    if (then) clike_line(p, "} else {");
    else clike_line(p, "if (%s) {", negated(p, condition));
    if (!print_arm(p, inst, 1, results)) text_cut(p->out, middle);
    if (p->out->len > start) clike_line(p, "}");
}

/* ---- a && b, where b is computed only if a holds */

static Logic find_logic(const Printer *p, const Inst *inst);

/* What is used once, by what follows, needs no statement, unless it is long. */
static bool is_expression(const Printer *p, const Region *r) {
    if (!comes_to_end(r)) return false;
    for (const Inst *inst = r->first; inst != r->last; inst = inst->next) {
        if (inst->nresults != 1) return false;
        bool is_plain = inst->op == OP_load || op_has(inst->op, OP_PURE);
        uint32_t id = inst->results[0]->id;
        if (p->at->uses[id] != 1 || p->at->user[id]->parent != r) return false;
        if (!is_plain && !find_logic(p, inst).asked) return false;
    }
    return true;
}

/* ... where b can be an expression. */
static Logic find_logic(const Printer *p, const Inst *inst) {
    Logic logic = clike_logic(inst), none = {0};
    if (!logic.asked || inst_has(inst, INST_LIKELY) || p->at->crosses || !p->at->uses[inst->results[0]->id])
        return none;
    return is_expression(p, logic.asked) ? logic : none;
}

static void print_logic(Printer *p, const Inst *inst, Logic logic) {
    Draft draft;
    Value both[2] = {clike_operand(p, inst, 0)};
    clike_consume(p, inst);
    Pending outside = p->at->pending; /* is not written down in there */
    p->at->pending = (Pending){0};
    draft_begin(p, &draft);
    for (const Inst *at = logic.asked->first; at != logic.asked->last; at = at->next)
        clike_instruction(p, at);
    both[1] = clike_operand(p, logic.asked->last, 0);
    clike_consume(p, logic.asked->last);
    draft_end(p, &draft);
    p->at->pending = outside;
    bool is_short = draft.text.len == 0, turned = is_short ? logic.when == logic.known : !logic.when;
    Value condition = both[0];
    if (turned)
        both[0] =
            clike_value(negated(p, condition), find_equality(condition) ? LEVEL_comparison : LEVEL_unary);
    if (is_short) {
        Value value = clike_infix(p, both, logic.known ? "||" : "&&", LEVEL_logic);
        value.reads = condition.reads || both[1].reads;
        clike_set(p, inst, value);
        return;
    }
    clike_flush(p);
    Value result = variable(p, inst->results[0], NULL);
    p->at->values[inst->results[0]->id] = result;
    clike_line(p, "if (%s) {", both[0].text);
    draft_print(p, &draft);
    p->indent++;
    clike_line(p, "%s = %s;", result.text, both[1].text);
    p->indent--;
    clike_line(p, "} else {");
    clike_line(p, "    %s = %s;", result.text, logic.known ? "true" : "false");
    clike_line(p, "}");
}

/* With what is done in each case; without results: the thread goes to the region of that number. */
static void print_cases(Printer *p, const Inst *inst, Value value, const Results *results, int first) {
    const Type *type = inst->args[0]->type;
    clike_line(p, type->kind == TYPE_bool ? "switch ((int)(%s)) {" : "switch (%s) {", value.text);
    for (int i = 0; i <= inst->ncases; i++) {
        bool is_rest = i == inst->ncases;
        for (int k = 0; !is_rest && k < inst->cases[i].nvalues; k++) {
            Val *label = ir_const_int(p->module, type, inst->cases[i].values[k]);
            label->name = clike_case_of(inst->cases[i].of, label->integer);
            const char *text =
                type->kind == TYPE_bool ? label->integer ? "1" : "0" : clike_constant(p, label);
            clike_line(p, "case %s:%s", text, k + 1 == inst->cases[i].nvalues ? " {" : "");
        }
        if (!is_rest && !inst->cases[i].nvalues) continue;
        if (is_rest) clike_line(p, "default: {");
        if (results) print_arm(p, inst, i, *results);
        else clike_line(p, "    gone[local] = %d;\n        break;", first + i);
        clike_line(p, "}");
    }
    clike_line(p, "}");
}

static void print_switch(Printer *p, const Inst *inst) {
    Value value = clike_operand(p, inst, 0);
    Results results = declare_results(p, inst);
    print_cases(p, inst, value, &results, 0);
}

void clike_choose(Printer *p, const Inst *inst, int first) {
    print_cases(p, inst, clike_operand(p, inst, 0), NULL, first);
}

static void print_block(Printer *p, const Inst *inst) {
    Draft draft;
    const char *label = NULL;
    Frame frame = {.owner = inst,
                   .results = declare_results(p, inst).values,
                   .is_loop = !p->dialect->language->has_goto,
                   .end = &label};
    draft_begin(p, &draft);
    print_region(p, inst->regions[0], frame);
    draft_end(p, &draft);
    print_leavable(p, &draft, label);
}

/* ---- loop */

static bool is_carried_used(const Printer *p, const Inst *inst, int index) {
    const int *uses = p->at->uses;
    if (uses[inst->results[index]->id]) return true;
    for (int i = 0; i < inst->nregions; i++)
        if (uses[inst->regions[i]->params[index]->id]) return true;
    return false;
}

/* The value that a loop counts with, which is nothing else's: `for` declares it, and says how it goes on. */
typedef struct Counter {
    int index;               /* of the carried value; -1: there is none */
    const Inst *step;        /* computes the next */
    const char *name;        /* of the variable */
    const char *declaration; /* with the first value */
    bool alone;              /* the condition does nothing but compare it */
    bool is_short;           /* rounds read another variable; by 1 (masked.c) */
} Counter;

/* Which carried value does the condition compare first? */
static int compared_index(const Inst *loop, bool *alone) {
    const Region *head = loop->regions[0];
    if (!comes_to_end(head)) return -1;
    const Val *v = ir_resolve(head->last->args[0]);
    while (v->kind == VAL_inst && v->inst->parent == head && (v->inst->op == OP_if || v->inst->op == OP_and))
        v = ir_resolve(v->inst->args[0]);
    const Inst *test = v->kind == VAL_inst && v->inst->parent == head ? v->inst : NULL;
    *alone = test == head->first && test && test->next == head->last;
    for (int i = 0; test && i < test->nargs && test->nargs == 2; i++) {
        const Val *counter = ir_resolve(test->args[i]);
        if (counter->kind == VAL_param && counter->region == head) return counter->index;
    }
    return -1;
}

static Counter find_counter(const Printer *p, const Inst *loop) {
    const Inst *end = loop->regions[1]->last;
    int64_t by;
    Counter none = {.index = -1};
    if (loop->nregions > 2 || p->at->crosses || end->op != OP_yield || loop_has_continue(loop)) return none;
    Counter counter = none;
    counter.index = compared_index(loop, &counter.alone);
    if (counter.index < 0 || p->at->uses[loop->results[counter.index]->id]) return none;
    const Val *next = ir_resolve(end->args[counter.index]), *now = loop->regions[1]->params[counter.index];
    counter.step = next->kind == VAL_inst ? next->inst : NULL;
    bool counts = counter.step && (counter.step->op == OP_add || counter.step->op == OP_sub) &&
                  ir_resolve(counter.step->args[0]) == now &&
                  val_is_int(ir_resolve(counter.step->args[1]), &by);
    return counts && by > 0 ? counter : none;
}

typedef struct Exits {
    FuncState *at;
    const Inst *loop;
    int index;
} Exits;

static void forget_use(void *user, Inst *inst) {
    const Exits *exits = user;
    if (inst->op != OP_break || inst->target != exits->loop) return;
    const Val *v = ir_resolve(inst->args[exits->index]);
    if (!val_is_const(v)) exits->at->uses[v->id]--;
}

/* Where the loop is left, nobody hands on its counter. */
static void forget_exits(Printer *p, const Inst *loop, const Counter *counter) {
    Exits exits = {p->at, loop, counter->index};
    region_walk(loop->regions[1], forget_use, &exits);
    p->at->user[counter->step->results[0]->id] = loop->regions[1]->last;
}

/* A parameter that nothing but this loop reads, once, and changes under the same name: the loop goes on with
 * it. */
static bool is_taken_over(const Printer *p, const Inst *loop, int index, const Val *named) {
    const Val *v = ir_resolve(loop->args[index]);
    if (!v->name || v->name != named->name) return false;
    if (v->kind != VAL_param || v->region != p->at->func->body || p->at->uses[v->id] != 1 || p->at->crosses)
        return false;
    for (const Frame *frame = p->at->frame; frame; frame = frame->up)
        if (frame->is_loop) return false;
    return !(p->at->func->params[v->index].flags & PARAM_BY_ADDRESS) && v->type->kind != TYPE_pointer;
}

static void shorten_counter(Printer *p, const Inst *loop, Counter *counter) {
    const char *name = clike_short_counter(p, loop, counter->name);
    if (!name) return;
    counter->is_short = true;
    counter->name = name;
    counter->declaration = clike_format(p, "int32_t %s = 0", name);
}

/* One variable per carried value, which is also the result. */
static Value *declare_carried(Printer *p, const Inst *inst, Counter *counter) {
    Value *values = arena_array(&p->arena, Value, inst->nargs + 1);
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst->results[i], *param = inst->regions[0]->params[i];
        if (!is_carried_used(p, inst, i) || clike_counts_along(p, inst, i)) continue;
        Value initial = clike_operand(p, inst, i);
        const Type *type = v->type;
        const char *text =
            type->kind == TYPE_pointer ? clike_pointer(p, initial, type->args[0], false) : initial.text;
        bool is_crossing = p->at->crosses && p->at->crosses[v->id];
        const Val *named = v->name || is_crossing ? v : param;
        if (i == counter->index) {
            counter->name = clike_name_value(p, named);
            counter->declaration =
                clike_format(p, "%s = %s", clike_declare_value(p, type, counter->name), clike_short(p, text));
            values[i] = clike_value(counter->name, LEVEL_primary);
            shorten_counter(p, inst, counter);
        } else if (is_taken_over(p, inst, i, named)) values[i] = initial;
        else values[i] = variable(p, named, text);
        p->at->values[v->id] = values[i];
        for (int k = 0; k < inst->nregions; k++) p->at->values[inst->regions[k]->params[i]->id] = values[i];
    }
    return values;
}

/* What counts along is the same number, maybe of another type. */
static void name_along(Printer *p, const Inst *loop, const Counter *counter) {
    for (int i = 0; i < loop->nargs; i++) {
        if (!clike_counts_along(p, loop, i)) continue;
        const char *type = clike_type(p, loop->args[i]->type);
        Value value = clike_value(clike_format(p, "(%s)%s", type, counter->name), LEVEL_unary);
        for (int k = 0; k < loop->nregions; k++) p->at->values[loop->regions[k]->params[i]->id] = value;
    }
}

/* How the counter goes on. */
static const char *step_text(Printer *p, const Counter *counter) {
    if (counter->is_short) return clike_format(p, "%s++", counter->name);
    return clike_assignment(p, counter->name, p->dialect->language->compute(p, counter->step).text);
}

/* Can it be said where a loop begins? */
static bool is_plain(const Draft *draft, Value condition) {
    return draft->text.len == 0 && condition.text && strcmp(condition.text, "true") != 0;
}

static void print_condition(Printer *p, const Draft *draft, Value condition, const Counter *counter) {
    bool always = condition.text && strcmp(condition.text, "true") == 0;
    if (is_plain(draft, condition)) {
        if (counter->name)
            clike_line(p, "for (%s; %s; %s) {", counter->declaration, condition.text, step_text(p, counter));
        else clike_line(p, "while (%s) {", condition.text);
        return;
    }
    clike_line(p, "for (;;) {");
    draft_print(p, draft);
    if (!condition.text || always) return;
    p->indent++;
    clike_line(p, "if (%s) break;", negated(p, condition));
    p->indent--;
}

/* Is the body a statement of its own, which `continue` leaves so that the step follows? */
static bool is_body_left(const Printer *p, const Inst *loop) {
    return loop->nregions > 2 && !p->dialect->language->has_goto && loop_has_continue(loop);
}

/* A loop that may take long looks now and then whether it is to stop: the variable that it counts its rounds
 * with, or NULL. */
static const char *declare_rounds(Printer *p, const Inst *loop) {
    if (!p->file->hosted || !map_has(&p->reached.looks, PTR_KEY(loop))) return NULL;
    const char *name = clike_local(p, "rounds");
    clike_line(p, "unsigned %s = 0;", name);
    return name;
}

typedef struct Rounds {
    Draft head, body, step;
    Value condition;
    const char *end, *next; /* labels, where they are needed */
} Rounds;

/* Some of the rounds leave it out. */
static void print_masked(Printer *p, const Inst *loop, Frame frame, const char *counter) {
    Draft body;
    draft_begin(p, &body);
    print_region(p, loop->regions[1], frame);
    draft_end(p, &body);
    text_add(p->out, text_str(&p->at->masked.before));
    clike_line(p, "if (%s) {", clike_masked_test(p, counter, p->at->masked.last));
    p->indent++;
    clike_masked_bits(p, counter);
    p->indent--;
    text_add(p->out, text_str(&p->at->masked.first));
    draft_print(p, &body);
    clike_line(p, "}");
    text_add(p->out, text_str(&p->at->masked.after));
}

static void draft_rounds(Printer *p, const Inst *inst, Value *carried, const char *counter, Rounds *rounds) {
    Frame frame = {
        .owner = inst, .results = carried, .is_loop = true, .end = &rounds->end, .next = &rounds->next};
    Frame deciding = frame, stepping = frame;
    deciding.condition = &rounds->condition;
    draft_begin(p, &rounds->head);
    print_region(p, inst->regions[0], deciding);
    draft_end(p, &rounds->head);
    frame.has_step = inst->nregions > 2;
    frame.held = (const Val **)inst->regions[1]->params;
    frame.is_body_left = is_body_left(p, inst);
    draft_begin(p, &rounds->body);
    const char *wish = clike_round_wish(p, inst);
    if (wish) clike_line(p, "%s", wish);
    p->indent += frame.is_body_left;
    clike_begin_tried_round(p);
    if (p->at->masked.loop == inst) print_masked(p, inst, frame, counter);
    else print_region(p, inst->regions[1], frame);
    clike_end_tried_round(p);
    p->indent -= frame.is_body_left;
    draft_end(p, &rounds->body);
    draft_begin(p, &rounds->step);
    if (frame.has_step) print_region(p, inst->regions[2], stepping);
    draft_end(p, &rounds->step);
}

/* What comes after the line that begins it. */
static void print_rounds(Printer *p, const Rounds *rounds, const char *count, const char *step) {
    p->indent++;
    if (count) clike_line(p, "if (++%s %% 1024u == 0) %s();", count, clike_helper(p, "slope_look"));
    if (rounds->next) /* its own scope, so that no jump comes into that of a variable */
        print_leavable(p, &rounds->body, rounds->next);
    else draft_print(p, &rounds->body);
    if (step) clike_line(p, "%s;", step);
    p->indent--;
    draft_print(p, &rounds->step);
    clike_line(p, "}");
}

static void print_loop(Printer *p, const Inst *inst) {
    Counter counter = find_counter(p, inst);
    if (counter.index >= 0) forget_exits(p, inst, &counter);
    const char *masked =
        counter.alone && counter.index >= 0 ? clike_begin_masked(p, inst, counter.index) : NULL;
    Value *carried = declare_carried(p, inst, &counter);
    if (masked) name_along(p, inst, &counter);
    Rounds rounds = {0};
    const char *count = declare_rounds(p, inst), *wish = clike_loop_wish(p, inst);
    const Inst *over_rows = p->at->rows.loop;
    clike_begin_rows(p, inst);
    if (!wish) wish = clike_rows_wish(p, inst);
    if (counter.name) carried[counter.index].text = NULL; /* `for` moves it on, not the end of the body */
    bool tiled = counter.name && counter.alone && clike_name_tile(p, inst);
    bool in_row = tiled && p->at->tile.is_row;
    p->indent += tiled;
    draft_rounds(p, inst, carried, counter.name, &rounds);
    if (masked) {
        rounds.condition.text = clike_format(p, "%s < %s", counter.name, masked);
        clike_masked_again(p);
    }
    p->indent -= tiled;
    bool is_for = counter.name && is_plain(&rounds.head, rounds.condition);
    if (counter.name && (!is_for || tiled)) clike_line(p, "%s;", counter.declaration);
    label_before(p, rounds.end);
    if (wish) clike_line(p, "%s", wish);
    const char *condition = rounds.condition.text, *step = tiled ? step_text(p, &counter) : NULL;
    const char *last = counter.name && !is_for ? step_text(p, &counter) : NULL;
    if (in_row) {
        clike_begin_numbers(p, counter.name, step);
        print_rounds(p, &rounds, count, last);
        clike_next_numbers(p, counter.name, condition, step);
    } else if (tiled) clike_begin_tile(p, counter.name, condition, step);
    else print_condition(p, &rounds.head, rounds.condition, &counter);
    print_rounds(p, &rounds, count, last);
    if (tiled) clike_end_tile(p);
    label_after(p, rounds.end);
    p->at->rows.loop = over_rows;
    p->at->masked.loop = NULL;
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

static void print_jump(Printer *p, const char *label) {
    clike_line(p, p->dialect->language->has_goto ? "goto %s;" : "break %s;", label);
}

/* One thread of a group that this function runs takes no part in what follows. */
static void print_gone(Printer *p, int number) {
    clike_line(p, "gone[local] = %d;", number);
    print_jump(p, label_for(p, &p->at->phase_end, "next"));
}

static void print_break(Printer *p, const Inst *inst) {
    Frame *frame = frame_of(p, inst->target);
    clike_assign(p, inst, frame->results);
    if (frame->gone) print_gone(p, frame->gone);
    else if (frame->is_loop && !frame->is_body_left && is_nearest(p, frame, true)) clike_line(p, "break;");
    else print_jump(p, label_for(p, frame->end, "end"));
}

static void print_continue(Printer *p, const Inst *inst) {
    Frame *frame = frame_of(p, inst->target);
    clike_assign(p, inst, frame->results);
    if (frame->gone) print_gone(p, frame->gone + 1);
    else if (!frame->has_step && is_nearest(p, frame, false)) clike_line(p, "continue;");
    else print_jump(p, label_for(p, frame->next, "next"));
}

static bool is_word(const char *text) {
    while (clike_is_word_char(*text)) text++;
    return !*text;
}

static void print_return(Printer *p, const Inst *inst) {
    const Func *func = p->at->func;
    if (p->at->crosses) {
        if (inst->parent != func->body) print_gone(p, GONE_ENDED);
        return;
    }
    if (p->at->result || inst->nargs == 0) {
        clike_give_large(p);
        if (p->at->result) clike_line(p, "return %s;", p->at->result);
        else if (inst->parent != func->body) clike_line(p, "return;");
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
    bool stays = p->at->large.count == 0 || is_word(text.at);
    if (inst->nargs == 1 && stays) {
        clike_give_large(p);
        clike_line(p, "return %s;", text.at);
        return;
    }
    bool several = inst->nargs > 1;
    const char *name = clike_local(p, several ? "results" : "result");
    if (several) clike_line(p, "const %s %s = {%s};", clike_results_type(p, func), name, text.at);
    else clike_line(p, "%s = %s;", clike_declare_value(p, func->results[0], name), text.at);
    clike_give_large(p);
    clike_line(p, "return %s;", name);
}

static void print_yield(Printer *p, const Inst *inst) {
    Frame *frame = p->at->frame;
    if (frame->condition) *frame->condition = clike_operand(p, inst, 0);
    else if (frame->results) clike_assign(p, inst, frame->results);
}

/* ---- the machine around the program */

static void print_barrier(Printer *p, const Inst *inst) {
    const char *text = inst->index == 1 ? p->dialect->barrier : p->dialect->fence;
    if (text) clike_line(p, "%s", text);
}

static void print_unreachable(Printer *p) {
    if (p->dialect->language->has_places_only) return;
    clike_line(p, "%s();", clike_helper(p, "SLOPE_UNREACHABLE"));
}

/* ---- instructions */

static void effect(Printer *p, const Inst *inst) {
    const Language *language = p->dialect->language;
    clike_consume(p, inst);
    clike_flush(p);
    switch ((Op)inst->op) {
    case OP_store:
    case OP_copy:
    case OP_zero: language->memory(p, inst); break;
    case OP_atomic:
    case OP_atomic_cas: language->atomic(p, inst); break;
    case OP_call: language->call(p, inst); break;
    case OP_printf: language->print(p, inst); break;
    case OP_abort: language->abort(p, inst); break;
    case OP_barrier: print_barrier(p, inst); break;
    case OP_wave: language->wave(p, inst); break;
    case OP_buffer_new: clike_make_buffer(p, inst); break;
    case OP_if: print_if(p, inst); break;
    case OP_switch: print_switch(p, inst); break;
    case OP_loop: print_loop(p, inst); break;
    case OP_block: print_block(p, inst); break;
    case OP_yield: print_yield(p, inst); break;
    case OP_break: print_break(p, inst); break;
    case OP_continue: print_continue(p, inst); break;
    case OP_return: print_return(p, inst); break;
    case OP_unreachable: print_unreachable(p); break;
    default: language->tape(p, inst);
    }
}

/* What a sum finds its place by is the same when its turn comes. */
static void settle_all(Printer *p, const Inst *inst) {
    for (int i = 0; i < inst->nargs && inst->op == OP_buffer_elem; i++)
        if (clike_operand(p, inst, i).reads) clike_settle(p, inst, i);
}

void clike_instruction(Printer *p, const Inst *inst) {
    if (inst->loc) p->at->loc = inst->loc; /* else it is part of what is around it */
    const Language *language = p->dialect->language;
    Value value;
    if (inst->op == OP_var) language->var(p, inst);
    else if (inst->op == OP_load) clike_set(p, inst, clike_masked_load(p, inst, language->load(p, inst)));
    else if (inst->op == OP_tape_load && language->kept && p->dialect->steers_loops &&
             p->at->uses[inst->results[0]->id])
        clike_set(p, inst, clike_masked_load(p, inst, language->kept(p, inst)));
    else if (inst->nresults == 1 && clike_is_summed(p, inst->results[0])) settle_all(p, inst);
    else if (language->address(p, inst, &value)) clike_set(p, inst, value);
    else if (op_has(inst->op, OP_PURE) && inst->nresults == 1) clike_set(p, inst, language->compute(p, inst));
    else {
        Logic logic = find_logic(p, inst);
        if (logic.asked) print_logic(p, inst, logic);
        else effect(p, inst);
    }
}

static void print_region(Printer *p, const Region *r, Frame frame) {
    frame.up = p->at->frame;
    p->at->frame = &frame;
    for (const Inst *inst = r->first; inst; inst = inst->next) clike_instruction(p, inst);
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

static void count_places(void *user, Inst *inst) {
    FuncState *at = user;
    bool is_access = inst->op == OP_tape_load || inst->op == OP_tape_store || inst->op == OP_tape_elem;
    bool is_size = inst->op == OP_tape_grow || inst->op == OP_tape_shrink;
    const Val *place = is_access || is_size ? ir_resolve(inst->args[1]) : NULL;
    if (place && !val_is_const(place)) at->places[place->id]++;
}

static bool is_multiple(const Inst *inst) {
    int64_t factor;
    return inst->op == OP_mul && val_is_int(ir_resolve(inst->args[1]), &factor) && factor > 0;
}

/* From what comes last on: what is a part of a part is one, too. */
static void count_parts(FuncState *at, const Region *region) {
    for (const Inst *inst = region->last; inst; inst = inst->prev) {
        for (int i = 0; i < inst->nregions; i++) count_parts(at, inst->regions[inst->nregions - 1 - i]);
        if (inst->op != OP_add && !is_multiple(inst)) continue;
        int places = at->places[inst->results[0]->id];
        if (places == 0 || places != at->uses[inst->results[0]->id]) continue;
        for (int i = 0; i < 2; i++)
            if (!val_is_const(ir_resolve(inst->args[i]))) at->places[ir_resolve(inst->args[i])->id]++;
    }
}

/* Is there a switch that does nothing where no case fits, as of a tag that no type behind an interface has?
 * To whoever compiles what is printed, what it writes may have been left without a value. */
static bool has_empty_default(const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_switch && inst->regions[inst->ncases]->first->op == OP_yield) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (has_empty_default(inst->regions[i])) return true;
    }
    return false;
}

static void bind_param(Printer *p, int index, const char *name) {
    const Func *func = p->at->func;
    const Param *param = &func->params[index];
    const Val *v = func->body->params[index];
    Value value = clike_value(clike_unique(p, &p->at->names, name), LEVEL_primary);
    bool by_address = (param->flags & PARAM_BY_ADDRESS) != 0, places = p->dialect->language->has_places_only;
    value.is_place = by_address && places;
    value.constant = by_address && !places && clike_is_const_param(param);
    value.steady = (by_address && param->dir == DIR_in) || (param->flags & PARAM_BLOCK);
    p->at->values[v->id] = value;
    if (param->flags & PARAM_APART) clike_join_buffer(p, param, value.text);
    if (clike_returned_param(p, func) == index) {
        bool zeroed = has_empty_default(func->body) && !type_leads_elsewhere(param->type);
        p->at->result = value.text;
        clike_line(p, "%s%s;", clike_declare(p, param->type, value.text), zeroed ? " = {}" : "");
    }
}

/* Compilers warn of parameters that are not used. */
static void print_unused(Printer *p, const Text *body) {
    const Func *func = p->at->func;
    if (func->nparams == 0 || p->dialect->language->has_places_only) return;
    Map words = clike_variables(p, body->at ? body->at : "");
    for (int i = 0; i < func->nparams; i++) {
        const char *name = p->at->values[func->body->params[i]->id].text;
        if (!map_has(&words, PTR_KEY(name_from(p->module->names, name)))) clike_line(p, "(void)%s;", name);
    }
}

/* Others give a float for a half, which may be no half. */
static void round_halves(Printer *p, const Func *func, const char *const *params) {
    if (!(func->flags & FUNC_EXPORT) || p->dialect->language->has_places_only) return;
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        bool is_used = p->at->uses[func->body->params[i]->id] > 0;
        if (param->type->kind != TYPE_half || (param->flags & PARAM_BY_ADDRESS) || !is_used) continue;
        clike_line(p, "%s = %s(%s);", params[i], clike_helper(p, "slope_round_half"), params[i]);
    }
}

void clike_body(Printer *p, const Func *func, const char *const *params) {
    const Func *source = func->derivation.of ? func->derivation.of : func;
    FuncState at = {.func = func, .loc = source->loc};
    at.values = arena_array(&p->arena, Value, func->nvals + 1);
    at.uses = arena_array(&p->arena, int, func->nvals + 1);
    at.user = arena_array(&p->arena, const Inst *, func->nvals + 1);
    at.places = arena_array(&p->arena, int, func->nvals + 1);
    p->at = &at;
    at.jumps = loop_find_jumps(&p->arena, func);
    at.adds_triangles = clike_adds_triangles(p, func);
    region_walk(func->body, count_uses, &at);
    clike_find_uses(p);
    region_walk(func->body, count_places, &at);
    count_parts(&at, func->body);
    clike_find_summed(p);
    clike_declare_copies(p, func);
    if (clike_takes_thread(p, func)) clike_unique(p, &at.names, "thread");
    clike_begin_tried(p, func);
    for (int i = 0; i < func->nparams; i++) bind_param(p, i, params[i]);
    const Global *global = clike_computed_global(p, func);
    if (global) {
        at.result = clike_local(p, "value");
        clike_line(p, "%s;", clike_declare(p, global->type, at.result));
    }
    Text body = {.arena = &p->arena}, *outer = p->out;
    p->out = &body;
    round_halves(p, func, params);
    if (clike_is_cut(p, func)) clike_group(p);
    else {
        clike_take_large(p);
        print_region(p, func->body, (Frame){0});
    }
    p->out = outer;
    print_unused(p, &body);
    if (body.len) text_add(p->out, text_str(&body));
    p->at = NULL;
}
