/* irfuzz [FIRST [COUNT [SIZE [PASS]]]]: random programs against every pass; PASS: every second one is that.
 *
 * For each seed a program is made, printed, read back and printed again: the texts must be equal. It is run
 * on a few inputs; then random passes run on copies of it, one after the other, and after each one the
 * function must verify and do the same on all inputs: the same results, memory, buffer and prints. The text
 * that went into the pass at fault is printed, so that `irtool` can repeat it. Exit status: 0 fine, 1 not. */
#include "irobject.h"
#include "irreduce.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUTS 3
#define STEPS  30000

/* All that a run of `main` did. */
typedef struct Outcome {
    InterpEnd end;
    ObjectRun run;
    Str log;
} Outcome;

/* The sign of a NaN means nothing. */
static void take_output(void *user, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (text[i] != '-' || i + 1 == length || text[i + 1] != 'n') text_char(user, text[i]);
}

static Outcome run(Func *func, Arena *arena, uint64_t seed, int64_t steps) {
    Outcome outcome = {0};
    Text log = {.arena = arena};
    InterpCounts counts = {.steps = steps};
    RuntimeConfig config = {.workers = 1, .write = take_output, .user = &log};
    JitProgram program;
    func->flags |= FUNC_EXPORT;
    run_fill(&outcome.run, arena, func, seed, true);
    if (!interp_open(&program, func->module, &config, &counts)) exit(EXIT_FAILURE);
    void *found = program.backend->jit_find(program.jit, EMIT_call, func->name->text);
    program.backend->jit_call(program.jit, found, outcome.run.args);
    char *error = runtime_take_error(program.runtime);
    outcome.end = error && counts.end == INTERP_fine ? INTERP_aborted : counts.end;
    free(error);
    jit_close(&program);
    outcome.log = text_str(&log);
    return outcome;
}

static const char *difference(const Func *func, const Outcome *a, const Outcome *b) {
    if (a->end != b->end) return "status";
    if (!str_eq(a->log, b->log)) return "prints";
    return a->end == INTERP_fine ? run_difference(func, &a->run, &b->run) : NULL;
}

static Str print_all(ToolSession *session) {
    Text text = {.arena = &session->arena};
    ir_print_module(&text, session->module);
    return text_str(&text);
}

static const char *verify_all(ToolSession *session) {
    for (int i = 0; i < session->module->funcs.count; i++) {
        const char *wrong = ir_verify(&session->arena, session->module->funcs.at[i]);
        if (wrong) return wrong;
    }
    return NULL;
}

/* What passes add comes behind it. */
static Func *main_of(const ToolSession *session) {
    int at = session->module->funcs.count - 1;
    while (session->module->funcs.at[at]->flags & FUNC_UNLIKELY) at--;
    return session->module->funcs.at[at];
}

static bool complain(uint64_t seed, const char *passes, const char *what, Str text) {
    printf("seed %llu: %s: %s\n%.*s\n", (unsigned long long)seed, passes, what, STR_ARG(text));
    return false;
}

/* ---- one pass on one program */

typedef struct Case {
    uint64_t seed;
    const char *pass;
    const char *what; /* is wrong; in `arena` */
    Arena *arena;
} Case;

static void run_pass(ToolSession *session, Case *c) {
    for (int i = 0; i < session->module->funcs.count; i++) {
        bool changed = false;
        Func *func = session->module->funcs.at[i];
        Text old = {.arena = &session->arena}, now = old;
        ir_print_func(&old, func);
        tool_run_pass(func, c->pass, &changed);
        ir_print_func(&now, func);
        if (!changed && !str_eq(text_str(&old), text_str(&now))) c->what = "a change that it does not report";
    }
    const char *wrong = verify_all(session);
    if (wrong) c->what = format_text(c->arena, "%s", wrong);
}

static bool is_useful(const Outcome *outcome) {
    return outcome->end != INTERP_out_of_steps && outcome->end != INTERP_unreachable;
}

static void compare(ToolSession *session, Case *c, const Outcome *expected) {
    for (int i = 0; i < INPUTS && !c->what; i++) {
        if (!is_useful(&expected[i])) continue;
        Outcome outcome = run(main_of(session), &session->arena, c->seed + (uint64_t)i, STEPS * 20);
        const char *differs = difference(main_of(session), &expected[i], &outcome);
        if (differs) c->what = format_text(c->arena, "input %d: %s", i, differs);
    }
}

/* Does the pass fail on this program? */
static bool pass_fails(void *user, Str text) {
    Case *c = user;
    ToolSession session;
    Outcome expected[INPUTS];
    tool_begin(&session);
    c->what = NULL;
    if (tool_parse(&session, "program", text)) {
        for (int i = 0; i < INPUTS; i++)
            expected[i] = run(main_of(&session), &session.arena, c->seed + (uint64_t)i, STEPS);
        run_pass(&session, c);
        if (!c->what) compare(&session, c, expected);
    }
    arena_free(&session.arena);
    return c->what != NULL;
}

static bool report(Case *c, const char *passes, Str text) {
    const char *what = c->what;
    Str small = pass_fails(c, text) ? tool_reduce(c->arena, text, pass_fails, c) : text;
    return complain(c->seed, passes, what, small);
}

/* Runs one random sequence of passes over a copy of the program. */
static bool try_passes(uint64_t seed, Random *random, Str text, const Outcome *expected, const char *often) {
    ToolSession session;
    Text done = {.arena = &session.arena};
    int npasses = 0, length = 1 + random_below(random, 8);
    bool fine = true;
    while (tool_pass_name(npasses)) npasses++;
    tool_begin(&session);
    if (!tool_parse(&session, "program", text)) return complain(seed, "parse", "cannot be read", text);
    for (int i = 0; i < length && fine; i++) {
        const char *pass = tool_pass_name(random_below(random, npasses));
        Case c = {.seed = seed, .pass = often && random_chance(random, 50) ? often : pass};
        c.arena = &session.arena;
        Str before = print_all(&session);
        text_printf(&done, "%s%s", i ? "," : "", c.pass);
        run_pass(&session, &c);
        if (!c.what) compare(&session, &c, expected);
        if (c.what) fine = report(&c, done.at, before);
    }
    arena_free(&session.arena);
    return fine;
}

static bool round_trip(uint64_t seed, Str text) {
    ToolSession session;
    tool_begin(&session);
    bool fine =
        tool_parse(&session, "program", text) ? true : complain(seed, "parse", "cannot be read", text);
    if (fine && !str_eq(print_all(&session), text))
        fine = complain(seed, "print", "reads back differently", text);
    arena_free(&session.arena);
    return fine;
}

static bool try_seed(uint64_t seed, int size, const char *often, int *useful) {
    ToolSession session;
    Random random = {seed * 7919};
    Outcome expected[INPUTS];
    tool_begin(&session);
    GenOptions options = {.size = size,
                          .depth = 2 + random_below(&random, 3),
                          .helpers = random_below(&random, 3),
                          .free = true};
    gen_program(&session, &random, options);
    Str text = print_all(&session);
    const char *wrong = verify_all(&session);
    bool fine = wrong ? complain(seed, "generator", wrong, text) : round_trip(seed, text);
    for (int i = 0; i < INPUTS && fine; i++) {
        expected[i] = run(main_of(&session), &session.arena, seed + (uint64_t)i, STEPS);
        *useful += expected[i].end == INTERP_fine;
    }
    for (int i = 0; i < 3 && fine; i++) fine = try_passes(seed, &random, text, expected, often);
    arena_free(&session.arena);
    return fine;
}

int main(int argc, char **argv) {
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int count = argc > 2 ? atoi(argv[2]) : 1000, size = argc > 3 ? atoi(argv[3]) : 0, useful = 0;
    const char *often = argc > 4 ? argv[4] : NULL;
    for (int i = 0; i < count; i++)
        if (!try_seed(first + (uint64_t)i, size ? size : 2 + i % 9, often, &useful)) return EXIT_FAILURE;
    printf("%d programs, %d runs that ended well\n", count, useful);
    return EXIT_SUCCESS;
}
