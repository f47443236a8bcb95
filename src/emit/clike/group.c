/* Kernels whose threads wait for each other, where one thread of the machine runs a whole group. Barriers cut
 * the kernel into phases, and a loop over the threads runs each phase for all of them before the next begins:
 *
 *     for (local = 0; local < 64; local++) { scratch[local] = value; }
 *     while (slope_agree(...)) {
 *         for (local = 0; local < 64; local++) { ... }     what was before the barrier in the loop
 *         for (local = 0; local < 64; local++) { ... }     what was behind it
 *     }
 *
 * A statement with a barrier inside is done by all threads together: its condition must be the same for all,
 * and none may have returned where others wait; both are tested. If some may leave it by a jump, or if it is
 * a `switch`, threads part in it: each has a number that says what it waits for (`gone`), and takes no part
 * in phases until the end of that statement, or of the round, takes it back.
 *
 * Threads also wait for those of their wave, wherever these are: who comes to such a place, or to a barrier
 * of such a kernel, has its number (a site) until all of its wave wait or have ended. Then those go on that
 * the runtime would choose (runtime/fiber.c), as soon as their site is printed: loops around it have another
 * round for that, and the kernel as a whole is such a loop.
 *
 * What a thread knows in one phase and needs in another is in an array with an element for each thread. */
#include "emit/clike/clike.h"

static bool is_wait(const Inst *inst) { return inst->op == OP_barrier && inst->index == 1; }

static bool is_stop(const Inst *inst) { return is_wait(inst) || inst->op == OP_wave; }

static void find_cut(void *user, Inst *inst) {
    Printer *p = user;
    if (!is_stop(inst)) return;
    for (const Inst *around = inst->parent->owner; around && !map_has(&p->at->cut, PTR_KEY(around));
         around = around->parent->owner)
        map_put(&p->arena, &p->at->cut, PTR_KEY(around), p);
}

static bool is_cut(const FuncState *at, const Inst *inst) { return map_has(&at->cut, PTR_KEY(inst)); }

bool clike_is_cut(const Printer *p, const Func *func) {
    const int *size = func->group_size;
    bool waits = (clike_needs(p, func) & NEEDS_FIBER) != 0;
    return waits && size[0] * size[1] * size[2] > 1 && !(p->file->target->capabilities & TARGET_BARRIERS);
}

/* ---- what is refused, and where threads part */

static bool is_end_of_block(const Region *region, const Inst *inst) {
    return inst->op == OP_break && inst->target == region->owner && region->owner->op == OP_block;
}

static void look_at(void *user, Inst *inst) {
    Printer *p = user;
    bool jumps = inst->op == OP_break || inst->op == OP_continue;
    const Inst *parting = jumps && !is_end_of_block(inst->parent, inst) ? inst->target : inst;
    if ((jumps || inst->op == OP_switch) && is_cut(p->at, parting)) {
        map_put(&p->arena, &p->at->parting, PTR_KEY(parting), p);
        p->at->parts = true;
    }
    if (inst->op == OP_call && (clike_needs(p, inst->callee) & NEEDS_FIBER))
        clike_fail(
            p, inst->loc,
            "this target has no barriers and waves in functions that are called, only in what is inlined");
    p->at->parts |= inst->op == OP_return && inst->parent != p->at->func->body;
}

static bool is_wave(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_wave;
}

static void number_site(void *user, Inst *inst) {
    Printer *p = user;
    if (!is_stop(inst)) return;
    int site = GONE_ENDED + ++p->at->nsites;
    map_put(&p->arena, &p->at->sites, PTR_KEY(inst), (void *)(intptr_t)site);
}

static void find_sites(Printer *p) {
    if (!region_find(p->at->func->body, is_wave, NULL)) return;
    region_walk(p->at->func->body, number_site, p);
    p->at->parts = true;
    p->at->numbers = p->at->nsites;
}

static int site_of(const Printer *p, const Inst *inst) {
    return (int)(intptr_t)map_get(&p->at->sites, PTR_KEY(inst));
}

static bool do_part(const Printer *p, const Inst *inst) {
    return p->at->nsites || map_has(&p->at->parting, PTR_KEY(inst));
}

/* ---- what is needed in several phases */

typedef struct Phases {
    FuncState *at;
    int *phase; /* by Val.id */
    int now;
} Phases;

/* What is said again in every phase: parts of memory (what is out of range leads to memory that all threads
 * have in common), and what is the same in all of them. */
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
        if (is_stop(inst)) {
            note_use(phases, inst->args, inst->nargs);
            phases->now++;
            if (inst->nresults) phases->phase[inst->results[0]->id] = phases->now;
        } else if (is_cut(phases->at, inst)) number_cut(phases, inst);
        else {
            note_plain(phases, inst);
            inst_walk(inst, note_plain, phases);
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
    if (at->parts) clike_line(p, "    if (gone[local]) continue;");
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

/* Those that are gone never come, if there are no waves. */
static void print_wait(Printer *p, const Inst *inst) {
    if (p->at->nsites) clike_line(p, "%s(&waves, %d);", clike_helper(p, "slope_wait"), site_of(p, inst));
    else if (p->at->parts) clike_line(p, "%s(gone, %du);", clike_helper(p, "slope_meet"), p->at->threads);
}

void clike_bring(Printer *p, const Inst *wave) {
    static const char *const parts[] = {"value[local]", "named[local][0]", "named[local][1]"};
    for (int i = 0; i < 3; i++) clike_line(p, "%s = %s;", parts[i], clike_operand(p, wave, i).text);
    clike_line(p, "gone[local] = %d;", site_of(p, wave));
}

/* A phase ends with what threads bring; the next begins with what they get. */
static void print_meeting(Printer *p, const Inst *inst, Phase *phase) {
    begin(p, phase);
    clike_instruction(p, inst);
    end(p, phase);
    clike_line(p, "%s(&waves, %d);", clike_helper(p, "slope_hold"), site_of(p, inst));
    if (p->at->uses[inst->results[0]->id] == 0) return;
    begin(p, phase);
    clike_set_statement(p, inst, "tables[local / SLOPE_WAVE]");
}

static void print_cut(Printer *p, const Inst *inst);

/* A condition is known in the phase that computes it. */
static void print_choice(Printer *p, const Frame *frame, Value condition) {
    if (frame->gone)
        clike_line(p, "if (!%s) gone[local] = %d;", clike_in(p, condition, LEVEL_unary), frame->gone);
    else clike_line(p, "choice[local] = %s;", condition.text);
}

static void print_region(Printer *p, const Region *region, Frame frame) {
    Phase phase = {0};
    frame.up = p->at->frame;
    p->at->frame = &frame;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        bool cut = is_cut(p->at, inst);
        if (is_wait(inst) || cut) end(p, &phase);
        if (is_stop(inst) || cut) {
            if (is_wait(inst)) print_wait(p, inst);
            else if (cut) print_cut(p, inst);
            else print_meeting(p, inst, &phase);
            continue;
        }
        begin(p, &phase);
        if (is_end_of_block(region, inst)) clike_assign(p, inst, frame.results);
        else clike_instruction(p, inst);
        if (inst->op == OP_yield && frame.condition) print_choice(p, &frame, *frame.condition);
    }
    end(p, &phase);
    p->at->frame = frame.up;
}

/* ---- statements of all threads together */

static const char *agreement(Printer *p) {
    return clike_format(p, "%s(choice, %s, %du)", clike_helper(p, "slope_agree"),
                        p->at->parts ? "gone" : "NULL", p->at->threads);
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

static void print_indented(Printer *p, const Region *region, Frame frame) {
    p->indent++;
    print_region(p, region, frame);
    p->indent--;
}

static void cut_if(Printer *p, const Inst *inst) {
    Frame frame = {.owner = inst, .results = spread_values(p, inst)};
    Phase phase = {0};
    begin(p, &phase);
    print_choice(p, &frame, clike_operand(p, inst, 0));
    end(p, &phase);
    clike_line(p, "if (%s) {", agreement(p));
    print_indented(p, inst->regions[0], frame);
    clike_line(p, "} else {");
    print_indented(p, inst->regions[1], frame);
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
    print_indented(p, inst->regions[0], deciding);
    clike_line(p, "    if (!%s) break;", agreement(p));
    for (int i = 1; i < inst->nregions; i++) print_indented(p, inst->regions[i], frame);
    clike_line(p, "}");
}

/* ---- statements in which they part */

static int reserve(Printer *p, int count) {
    int first = p->at->numbers + GONE_ENDED + 1;
    p->at->numbers += count;
    return first;
}

/* Threads with the number `from` are back; if there is a number `to`, those that were here have it. */
static void print_turn(Printer *p, int from, int to) {
    clike_line(p, "%s(gone, %d, %d, %du);", clike_helper(p, "slope_turn"), from, to, p->at->threads);
}

typedef struct Sites {
    const Printer *p;
    int first, last; /* 0: none so far */
} Sites;

static void add_site(void *user, Inst *inst) {
    Sites *sites = user;
    if (!is_stop(inst)) return;
    sites->last = site_of(sites->p, inst);
    if (!sites->first) sites->first = sites->last;
}

/* Has the loop another round, or the kernel? */
static const char *goes_on(Printer *p, const Inst *loop) {
    if (!p->at->nsites)
        return clike_format(p, "%s(gone, %du)", clike_helper(p, "slope_any_here"), p->at->threads);
    Sites sites = {p, 0, 0};
    for (int i = 0; loop && i < loop->nregions; i++) region_walk(loop->regions[i], add_site, &sites);
    if (!loop) sites.first = GONE_ENDED + 1, sites.last = GONE_ENDED + p->at->nsites;
    return clike_format(p, "%s(&waves, %d, %d)", clike_helper(p, "slope_goes_on"), sites.first, sites.last);
}

/* Those that go the other way wait for the end of the first. */
static void part_in_if(Printer *p, const Inst *inst) {
    int other = reserve(p, 2);
    Frame frame = {.owner = inst, .results = spread_values(p, inst)}, deciding = {.gone = other};
    Phase phase = {0};
    begin(p, &phase);
    print_choice(p, &deciding, clike_operand(p, inst, 0));
    end(p, &phase);
    print_region(p, inst->regions[0], frame);
    print_turn(p, other, other + 1);
    print_region(p, inst->regions[1], frame);
    print_turn(p, other + 1, 0);
}

static void part_in_loop(Printer *p, const Inst *inst) {
    Value condition = {0};
    Phase phase = {0};
    Frame frame = {.owner = inst, .gone = reserve(p, 2)}, deciding;
    begin(p, &phase);
    frame.results = spread_values(p, inst);
    clike_assign(p, inst, frame.results);
    end(p, &phase);
    deciding = frame;
    deciding.condition = &condition;
    clike_line(p, "for (;;) {");
    print_indented(p, inst->regions[0], deciding);
    clike_line(p, "    if (!%s) break;", goes_on(p, inst));
    print_indented(p, inst->regions[1], frame);
    p->indent++;
    print_turn(p, frame.gone + 1, 0);
    if (inst->nregions > 2) print_region(p, inst->regions[2], frame);
    p->indent--;
    clike_line(p, "}");
    print_turn(p, frame.gone, 0);
}

static void part_in_block(Printer *p, const Inst *inst) {
    Frame frame = {.owner = inst, .results = spread_values(p, inst), .gone = reserve(p, 1)};
    print_region(p, inst->regions[0], frame);
    print_turn(p, frame.gone, 0);
}

/* Each waits for the region of its case, and after that for the end. */
static void part_in_switch(Printer *p, const Inst *inst) {
    Frame frame = {.owner = inst, .results = spread_values(p, inst), .gone = reserve(p, 1)};
    int first = reserve(p, inst->nregions);
    Phase phase = {0};
    begin(p, &phase);
    clike_choose(p, inst, first);
    end(p, &phase);
    for (int i = 0; i < inst->nregions; i++) {
        print_turn(p, first + i, frame.gone);
        print_region(p, inst->regions[i], frame);
    }
    print_turn(p, frame.gone, 0);
}

static void print_cut(Printer *p, const Inst *inst) {
    p->at->loc = inst->loc ? inst->loc : p->at->loc;
    if (inst->op == OP_switch) part_in_switch(p, inst);
    else if (inst->op == OP_loop && do_part(p, inst)) part_in_loop(p, inst);
    else if (inst->op == OP_block && do_part(p, inst)) part_in_block(p, inst);
    else if (inst->op == OP_if && do_part(p, inst)) part_in_if(p, inst);
    else if (inst->op == OP_if) cut_if(p, inst);
    else if (inst->op == OP_loop) cut_loop(p, inst);
    else print_region(p, inst->regions[0], (Frame){.owner = inst, .results = spread_values(p, inst)});
}

/* ---- kernels */

/* The body, again as long as threads wait for others of their wave. */
static void print_body(Printer *p) {
    const Region *body = p->at->func->body;
    if (has_statics(p)) start_statics(p);
    if (p->at->nsites) {
        clike_line(p, "do {");
        print_indented(p, body, (Frame){0});
        p->indent++;
        print_turn(p, reserve(p, 1), GONE_ENDED);
        p->indent--;
        clike_line(p, "} while (%s);", goes_on(p, NULL));
        clike_line(p, "%s(gone, %du);", clike_helper(p, "slope_finish"), p->at->threads);
    } else print_region(p, body, (Frame){0});
    if (has_statics(p)) clike_line(p, "slope_local = 0;");
}

static void declare_own(Printer *p, const Text *body) {
    FuncState *at = p->at;
    if (at->parts) clike_line(p, "int gone[%d] = {0};", at->threads);
    if (clike_mentions(body->at ? body->at : "", "choice")) clike_line(p, "bool choice[%d];", at->threads);
    if (!at->nsites) return;
    clike_line(p, "static SLOPE_THREAD_LOCAL uint64_t value[%d], named[%d][2];", at->threads, at->threads);
    clike_line(p, "static SLOPE_THREAD_LOCAL uint64_t tables[(%d - 1) / SLOPE_WAVE + 1][2 + SLOPE_WAVE];",
               at->threads);
    clike_line(p, "const SlopeWaves waves = {gone, value, named, tables, %du, %d};", at->threads,
               GONE_ENDED + at->nsites);
}

void clike_group(Printer *p) {
    FuncState *at = p->at;
    const Func *func = at->func;
    Phases phases = {.at = at, .phase = arena_array(&p->arena, int, func->nvals + 1), .now = 1};
    static const char *const own[] = {"local", "threads", "gone",   "choice",
                                      "value", "named",   "tables", "waves"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) clike_unique(p, &at->names, own[i]);
    at->threads = func->group_size[0] * func->group_size[1] * func->group_size[2];
    at->crosses = arena_array(&p->arena, bool, func->nvals + 1);
    at->again = arena_array(&p->arena, bool, func->nvals + 1);
    at->spread.arena = &p->arena;
    region_walk(func->body, find_cut, p);
    region_walk(func->body, look_at, p);
    find_sites(p);
    number(&phases, func->body);
    clike_take_large(p);
    Text body = {.arena = &p->arena}, *outer = p->out;
    clike_helper(p, "SLOPE_THREAD_LOCAL");
    p->out = &body;
    print_body(p);
    p->out = outer;
    declare_own(p, &body);
    if (at->spread.len) text_add(p->out, text_str(&at->spread));
    if (body.len) text_add(p->out, text_str(&body));
    clike_give_large(p);
}
