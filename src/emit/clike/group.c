/* Kernels whose threads wait for each other, where one thread of the machine runs a whole group. Barriers cut the kernel into phases, and
 * a loop over the threads runs each phase for all of them before the next begins:
 *
 *     for (local = 0; local < 64; local++) { scratch[local] = value; }
 *     while (slope_agree(...)) {
 *         for (local = 0; local < 64; local++) { ... }     what was before the barrier in the loop
 *         for (local = 0; local < 64; local++) { ... }     what was behind it
 *     }
 *
 * A statement with a barrier inside is done by all threads together: its condition must be the same for all, and none may have returned
 * where others wait; both are tested. What a thread knows in one phase and needs in another is in an array with an element for
 * each thread. */
#include "emit/clike/clike.h"

static bool is_wait(const Inst *inst) { return inst->op == OP_barrier && inst->index == 1; }

static void find_wait(void *user, Inst *inst) {
    bool *found = user;
    *found |= is_wait(inst);
}

static bool is_cut(const Inst *inst) {
    bool found = false;
    for (int i = 0; i < inst->nregions; i++) region_walk(inst->regions[i], find_wait, &found);
    return found;
}

bool clike_is_cut(const Printer *p, const Func *func) {
    const int *size = func->group_size;
    bool waits = (clike_needs(p, func) & NEEDS_FIBER) != 0;
    return waits && size[0] * size[1] * size[2] > 1 && !(p->file->target->capabilities & TARGET_BARRIERS);
}

/* ---- what is refused */

typedef struct Refusal {
    Printer *p;
    const Func *func;
} Refusal;

static void refuse_inst(void *user, Inst *inst) {
    Refusal *refusal = user;
    Printer *p = refusal->p;
    bool jumps = inst->op == OP_break || inst->op == OP_continue;
    bool is_end =
        inst->op == OP_break && inst->target->op == OP_block && inst->parent == inst->target->regions[0];
    if (jumps && is_cut(inst->target) && !is_end)
        clike_fail(p, inst->loc,
                   "this target has no jump out of a statement in which threads wait for each other");
    if (inst->op == OP_call && (clike_needs(p, inst->callee) & NEEDS_FIBER))
        clike_fail(p, inst->loc,
                   "this target has no barriers in functions that are called, only in what is inlined");
    if (inst->op == OP_switch && is_cut(inst))
        clike_fail(p, inst->loc, "this target has no barriers inside 'switch'");
    if (inst->op == OP_loop) {
        bool in_condition = false;
        region_walk(inst->regions[0], find_wait, &in_condition);
        if (in_condition) clike_fail(p, inst->loc, "this target has no barriers in the condition of a loop");
    }
    if (inst->op == OP_return && inst->parent != refusal->func->body) p->at->leaves_early = true;
}

/* ---- what is needed in several phases */

typedef struct Phases {
    FuncState *at;
    int *phase; /* by Val.id */
    int now;
} Phases;

/* What is said again in every phase: parts of memory (what is out of range leads to memory that all threads have in common), and what
 * is the same in all of them. */
static bool is_said_again(const Val *v) {
    if (v->kind != VAL_inst) return false;
    const Inst *inst = v->inst;
    if (inst->op == OP_load) return ir_space(inst->args[0]->type) == SPACE_uniform;
    return inst->op == OP_field || inst->op == OP_elem || inst->op == OP_buffer_elem ||
           inst->op == OP_buffer_bytes || inst->op == OP_global || inst->op == OP_thread_id;
}

static void note_use(Phases *phases, Val *const *args, int count) {
    for (int i = 0; i < count; i++) {
        const Val *v = ir_resolve(args[i]);
        if (val_is_const(v) || !phases->phase[v->id] || phases->phase[v->id] == phases->now) continue;
        if (is_said_again(v)) {
            phases->at->again[v->id] = true;
            note_use(phases, v->inst->args, v->inst->nargs);
        } else phases->at->crosses[v->id] = true;
    }
}

static void note_plain(void *user, Inst *inst) {
    Phases *phases = user;
    note_use(phases, inst->args, inst->nargs);
    for (int i = 0; i < inst->nresults; i++) phases->phase[inst->results[i]->id] = phases->now;
    for (int i = 0; i < inst->nregions; i++)
        for (int k = 0; k < inst->regions[i]->nparams; k++)
            phases->phase[inst->regions[i]->params[k]->id] = phases->now;
}

static void number(Phases *phases, const Region *region);

/* All threads do it together: whatever it takes and gives is between phases. */
static void number_cut(Phases *phases, Inst *inst) {
    phases->now++;
    note_plain(phases, inst);
    for (int i = 0; i < inst->nregions; i++) {
        phases->now++;
        number(phases, inst->regions[i]);
    }
    phases->now++;
}

static void number(Phases *phases, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (is_wait(inst)) phases->now++;
        else if (is_cut(inst)) number_cut(phases, inst);
        else {
            note_plain(phases, inst);
            for (int i = 0; i < inst->nregions; i++) region_walk(inst->regions[i], note_plain, phases);
        }
    }
}

/* ---- variables with an element for each thread */

const char *clike_spread(Printer *p, const Type *type, const char *name, bool as_value) {
    const char *whole = clike_format(p, "%s[%d]", name, p->at->threads);
    text_printf(&p->at->spread, "    static SLOPE_THREAD_LOCAL %s;\n",
                as_value ? clike_declare_value(p, type, whole) : clike_declare(p, type, whole));
    return clike_format(p, "%s[local]", name);
}

/* ---- phases */

static bool has_statics(const Printer *p) { return clike_needs(p, p->at->func) & NEEDS_STATICS; }

static void begin_threads(Printer *p) {
    clike_line(p, "for (uint32_t local = 0; local < %du; local++) {", p->at->threads);
    if (has_statics(p)) clike_line(p, "    %s = local;", clike_helper(p, "slope_local"));
}

static void start_statics(Printer *p) {
    begin_threads(p);
    clike_line(p, "    %s;", clike_start_thread(p, p->at->func, "&threads[local]"));
    clike_line(p, "}");
}

static void run_phase(Printer *p, const Text *body) {
    FuncState *at = p->at;
    if (body->len == 0) return;
    begin_threads(p);
    if (clike_mentions(body->at, "thread")) clike_line(p, "    const SlopeThread *thread = &threads[local];");
    if (at->leaves_early) clike_line(p, "    if (done[local]) continue;");
    if (at->phase_end) clike_line(p, "    {");
    text_add(p->out, text_str(body));
    if (at->phase_end) clike_line(p, "    }\n    %s:;", at->phase_end);
    clike_line(p, "}");
    at->phase_end = NULL;
}

typedef struct Phase {
    Text body, *outer;
    bool open;
} Phase;

static void begin(Printer *p, Phase *phase) {
    if (phase->open) return;
    *phase = (Phase){{.arena = &p->arena}, p->out, true};
    p->out = &phase->body;
    p->indent++;
}

static void end(Printer *p, Phase *phase) {
    if (!phase->open) return;
    clike_flush(p);
    p->out = phase->outer;
    p->indent--;
    phase->open = false;
    run_phase(p, &phase->body);
}

/* Those that have returned never come. */
static void print_wait(Printer *p) {
    if (p->at->leaves_early) clike_line(p, "%s(done, %du);", clike_helper(p, "slope_meet"), p->at->threads);
}

static void print_cut(Printer *p, const Inst *inst);

static bool is_end_of_block(const Region *region, const Inst *inst) {
    return inst->op == OP_break && inst->target == region->owner && region->owner->op == OP_block;
}

static void print_region(Printer *p, const Region *region, Frame frame) {
    Phase phase = {0};
    frame.up = p->at->frame;
    p->at->frame = &frame;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (is_wait(inst) || is_cut(inst)) end(p, &phase);
        if (is_wait(inst)) print_wait(p);
        if (is_wait(inst)) continue;
        if (is_cut(inst)) {
            print_cut(p, inst);
            continue;
        }
        begin(p, &phase);
        if (is_end_of_block(region, inst)) clike_assign(p, inst, frame.results);
        else clike_instruction(p, inst);
    }
    end(p, &phase);
    p->at->frame = frame.up;
}

/* ---- statements of all threads together */

static const char *agreement(Printer *p) {
    return clike_format(p, "%s(choice, %s, %du)", clike_helper(p, "slope_agree"),
                        p->at->leaves_early ? "done" : "NULL", p->at->threads);
}

static void print_choice(Printer *p, Value condition) {
    clike_line(p, "choice[local] = %s;", condition.text);
}

static Value *spread_values(Printer *p, const Inst *inst) {
    Value *values = arena_array(&p->arena, Value, inst->nresults + 1);
    for (int i = 0; i < inst->nresults; i++) {
        const Val *v = inst->results[i];
        values[i] = clike_value(clike_spread(p, v->type, clike_name_value(p, v), true), LEVEL_primary);
        p->at->values[v->id] = values[i];
        for (int k = 0; k < inst->nregions && inst->op == OP_loop; k++)
            p->at->values[inst->regions[k]->params[i]->id] = values[i];
    }
    return values;
}

static void cut_if(Printer *p, const Inst *inst) {
    Value *results = spread_values(p, inst);
    Phase phase = {0};
    begin(p, &phase);
    print_choice(p, clike_operand(p, inst, 0));
    end(p, &phase);
    clike_line(p, "if (%s) {", agreement(p));
    p->indent++;
    print_region(p, inst->regions[0], (Frame){.owner = inst, .results = results});
    p->indent--;
    clike_line(p, "} else {");
    p->indent++;
    print_region(p, inst->regions[1], (Frame){.owner = inst, .results = results});
    p->indent--;
    clike_line(p, "}");
}

static void cut_loop(Printer *p, const Inst *inst) {
    Value condition = {0};
    Phase phase = {0};
    begin(p, &phase);
    Value *carried = spread_values(p, inst);
    clike_assign(p, inst, carried);
    end(p, &phase);
    Frame frame = {.owner = inst, .results = carried}, deciding = frame;
    deciding.condition = &condition;
    clike_line(p, "for (;;) {");
    p->indent++;
    begin(p, &phase);
    clike_region(p, inst->regions[0], deciding);
    print_choice(p, condition);
    end(p, &phase);
    clike_line(p, "if (!%s) break;", agreement(p));
    for (int i = 1; i < inst->nregions; i++) print_region(p, inst->regions[i], frame);
    p->indent--;
    clike_line(p, "}");
}

static void print_cut(Printer *p, const Inst *inst) {
    p->at->loc = inst->loc ? inst->loc : p->at->loc;
    if (inst->op == OP_if) cut_if(p, inst);
    else if (inst->op == OP_loop) cut_loop(p, inst);
    else print_region(p, inst->regions[0], (Frame){.owner = inst, .results = spread_values(p, inst)});
}

void clike_group(Printer *p) {
    FuncState *at = p->at;
    const Func *func = at->func;
    Phases phases = {.at = at, .phase = arena_array(&p->arena, int, func->nvals + 1), .now = 1};
    Refusal refusal = {p, func};
    static const char *const own[] = {"local", "threads", "done", "choice"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) clike_unique(p, &at->names, own[i]);
    at->threads = func->group_size[0] * func->group_size[1] * func->group_size[2];
    at->crosses = arena_array(&p->arena, bool, func->nvals + 1);
    at->again = arena_array(&p->arena, bool, func->nvals + 1);
    at->spread.arena = &p->arena;
    region_walk(func->body, refuse_inst, &refusal);
    number(&phases, func->body);
    clike_take_large(p);
    Text body = {.arena = &p->arena}, *outer = p->out;
    clike_helper(p, "SLOPE_THREAD_LOCAL");
    p->out = &body;
    if (has_statics(p)) start_statics(p);
    print_region(p, func->body, (Frame){0});
    if (has_statics(p)) clike_line(p, "slope_local = 0;");
    p->out = outer;
    if (at->leaves_early) clike_line(p, "bool done[%d] = {false};", at->threads);
    if (clike_mentions(body.at ? body.at : "", "choice")) clike_line(p, "bool choice[%d];", at->threads);
    if (at->spread.len) text_add(p->out, text_str(&at->spread));
    if (body.len) text_add(p->out, text_str(&body));
    clike_give_large(p);
}
