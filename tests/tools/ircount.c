/* ircount FILE PRIMAL GRADIENT --work W --bytes B [--once S] [--sines K] N...: what a gradient costs, by
 * counting.
 *
 * Reads IR as `slope dump --after dce` prints it and calls both functions with each N: PRIMAL and GRADIENT
 * take it as their argument, or are families PRIMAL_10, PRIMAL_100, ... of functions without any. Counted are
 * the instructions that an interpreter runs, words moved by copying or clearing whole objects included, and
 * the bytes that tapes hold at the worst moment. It fails unless the gradient does at most W times the work
 * of the primal, and keeps at most B bytes per N (and S once, for whatever does not depend on N), for every
 * N. With --sines, a sine stands for an evaluation of the body of a loop: the gradient may compute at most K
 * times as many as the primal. The table is printed if it fails, and the last line says how it went. */
#include "irobject.h"
#include "irtool.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Limits {
    double work, bytes, once, sines;
} Limits;

typedef struct Count {
    int64_t work, bytes, sines;
} Count;

enum { MOST_RESULTS = 8, SMALL = 200 /* instructions that a call may cost whatever N is */ };

static Func *find(Module *module, const char *name, int64_t n) {
    Func *func = module_find(module, name_from(module->names, name));
    if (func) return func;
    return module_find(module,
                       name_from(module->names, format_text(module->arena, "%s_%lld", name, (long long)n)));
}

static void fail(const char *name, int64_t n, const char *why, int64_t kept) {
    fprintf(stderr, "%s(%lld) ended: %s, with %lld bytes on tapes\n", name, (long long)n, why,
            (long long)kept);
    exit(EXIT_FAILURE);
}

static Count count_call(Module *module, const char *name, int64_t n) {
    Func *func = find(module, name, n);
    if (!func) fail(name, n, "there is no such function", 0);
    func->flags |= FUNC_EXPORT;
    InterpCounts counts = {.steps = INT64_MAX};
    JitProgram program;
    RuntimeConfig config = {.workers = 1};
    if (!interp_open(&program, module, &config, &counts)) exit(EXIT_FAILURE);
    char results[MOST_RESULTS][32];
    void *args[MOST_RESULTS + 1] = {&n};
    for (int i = 0; i < MOST_RESULTS; i++) args[func->nparams + i] = results[i];
    counts = (InterpCounts){.steps = INT64_MAX};
    program.backend->jit_call(program.jit,
                              program.backend->jit_find(program.jit, EMIT_call, func->name->text), args);
    char *error = runtime_take_error(program.runtime);
    if (error || counts.kept) fail(name, n, error ? error : "fine", counts.kept);
    Count count = {counts.work, counts.most, interp_executed(program.jit, OP_sin)};
    jit_close(&program);
    return count;
}

static bool check(Module *module, char **names, int64_t n, const Limits *limits, Text *table) {
    Count primal = count_call(module, names[0], n), gradient = count_call(module, names[1], n);
    bool fine = (double)gradient.work <= limits->work * (double)primal.work + SMALL &&
                (double)gradient.bytes <= limits->bytes * (double)n + limits->once &&
                (limits->sines == 0 || (double)gradient.sines <= limits->sines * (double)primal.sines);
    text_printf(table, "%8lld  primal %9lld  gradient %9lld  ratio %5.2f  bytes %8lld  each %6.2f",
                (long long)n, (long long)primal.work, (long long)gradient.work,
                (double)gradient.work / (double)primal.work, (long long)gradient.bytes,
                (double)gradient.bytes / (double)n);
    if (limits->sines > 0) text_printf(table, "  sines %5.2f", (double)gradient.sines / (double)primal.sines);
    text_add(table, fine ? STR("\n") : STR("  too much\n"));
    return fine;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return fprintf(stderr,
                       "ircount FILE PRIMAL GRADIENT --work W --bytes B [--once S] [--sines K] [-v] N...\n"),
               2;
    ToolSession session;
    bool fine = tool_open(&session, argv[1], NULL), verbose = false;
    diags_flush(&session.diags);
    Limits limits = {0};
    Text table = {.arena = &session.arena};
    int counted = 0;
    for (int i = 4; i < argc && session.diags.errors == 0; i++) {
        if (strcmp(argv[i], "--work") == 0) limits.work = atof(argv[++i]);
        else if (strcmp(argv[i], "--bytes") == 0) limits.bytes = atof(argv[++i]);
        else if (strcmp(argv[i], "--once") == 0) limits.once = atof(argv[++i]);
        else if (strcmp(argv[i], "--sines") == 0) limits.sines = atof(argv[++i]);
        else if (strcmp(argv[i], "-v") == 0) verbose = true;
        else fine &= check(session.module, argv + 2, atoll(argv[i]), &limits, &table), counted++;
    }
    fine &= counted > 0;
    if (!fine || verbose) fputs(table.at ? table.at : "", stdout);
    puts(fine ? "within its limits" : "more than it may");
    arena_free(&session.arena);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
