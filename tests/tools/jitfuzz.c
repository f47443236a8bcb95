/* jitfuzz [FIRST [COUNT [SIZE]]]: random programs through the LLVM emitter, against the interpreter of the
 * IR.
 *
 * For each seed a program is made, most of them run through some passes, and interpreted on a few inputs;
 * compiled at a level that changes from seed to seed, it must give the same results, memory and buffer for
 * each input on which the interpreter came to an end. Operations whose last bit, or whose sign of zero or
 * NaN, may differ are replaced by others first. Exit status: 0 fine, 1 not. */
#include "irobject.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUTS 4
#define STEPS  30000

/* ---- programs */

static Op replacement(const Inst *inst) {
    bool real = inst->nargs > 0 && type_is_float(type_element(inst->args[0]->type));
    switch ((Op)inst->op) {
    case OP_sin:
    case OP_exp:
    case OP_log: return OP_neg;
    case OP_pow:
    case OP_atan2:
    case OP_copysign: return OP_sub;
    case OP_acc: return OP_copy; /* in sums without an order, zeros have no sign */
    case OP_min:
    case OP_max: return real ? OP_add : (Op)inst->op;
    default: return (Op)inst->op;
    }
}

static void make_exact(void *user, Inst *inst) {
    (void)user;
    inst->op = (uint16_t)replacement(inst);
}

/* As the driver does, so that loops carry their counters and the like. */
static void optimise(ToolSession *session) {
    static const char *const passes[] = {"sroa", "ssa",    "simplify", "cse",
                                         "licm", "upward", "dce",      "scalars"};
    bool changed;
    for (int i = 0; i < session->module->funcs.count; i++)
        for (size_t k = 0; k < sizeof passes / sizeof *passes; k++)
            tool_run_pass(session->module->funcs.at[i], passes[k], &changed);
}

static Func *make_program(ToolSession *session, uint64_t seed, int size) {
    Random random = {seed * 7919};
    GenOptions options = {
        .size = size, .depth = 2 + random_below(&random, 3), .helpers = random_below(&random, 3)};
    gen_program(session, &random, options);
    for (int i = 0; i < session->module->funcs.count; i++)
        region_walk(session->module->funcs.at[i]->body, make_exact, NULL);
    if (seed % 3) optimise(session);
    Func *func = vec_last(&session->module->funcs);
    func->flags |= FUNC_EXPORT;
    return func;
}

/* ---- one seed */

/* Both ways to run it. */
typedef struct Ways {
    JitProgram interpreted, compiled;
    InterpCounts counts;
} Ways;

static bool call(JitProgram *program, const Func *func, ObjectRun *run) {
    void *found = program->backend->jit_find(program->jit, EMIT_call, func->name->text);
    program->backend->jit_call(program->jit, found, run->args);
    char *error = runtime_take_error(program->runtime);
    free(error);
    return !error;
}

static const char *compare(Ways *ways, const Func *func, Arena *arena, uint64_t seed, int *useful) {
    ObjectRun expected, found;
    ways->counts = (InterpCounts){.steps = STEPS};
    run_fill(&expected, arena, func, seed, false);
    if (!call(&ways->interpreted, func, &expected)) return NULL;
    (*useful)++;
    run_fill(&found, arena, func, seed, false);
    if (!call(&ways->compiled, func, &found)) return "errors";
    return run_difference(func, &expected, &found);
}

static void ignore_output(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

static const char *try_inputs(Ways *ways, const Func *func, Arena *arena, uint64_t seed, int *useful) {
    const char *wrong = NULL;
    for (int i = 0; i < INPUTS && !wrong; i++) wrong = compare(ways, func, arena, seed + (uint64_t)i, useful);
    return wrong;
}

static bool try_seed(const EmitBackend *backend, uint64_t seed, int size, int *useful) {
    static const int levels[] = {3, 0, 2, 1};
    ToolSession session;
    Ways ways = {.counts = {.steps = STEPS}};
    RuntimeConfig config = {.write = ignore_output};
    EmitOptions options = {.level = levels[seed % 4], .verify = true, .debug = seed % 5 == 0};
    tool_begin(&session);
    Func *func = make_program(&session, seed, size);
    if (!jit_open(&ways.compiled, backend, &config) ||
        !interp_open(&ways.interpreted, session.module, &config, &ways.counts))
        return false;
    bool compiled = jit_compile(&ways.compiled, session.module, &options);
    const char *wrong = compiled ? try_inputs(&ways, func, &session.arena, seed, useful) : "not compiled";
    if (wrong) {
        Text text = {.arena = &session.arena};
        ir_print_module(&text, session.module);
        printf("seed %llu at -O%d: %s differ\n%s\n", (unsigned long long)seed, options.level, wrong, text.at);
    }
    jit_close(&ways.interpreted);
    jit_close(&ways.compiled);
    arena_free(&session.arena);
    return !wrong;
}

int main(int argc, char **argv) {
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int count = argc > 2 ? atoi(argv[2]) : 200, size = argc > 3 ? atoi(argv[3]) : 0, useful = 0;
    const EmitBackend *backend = jit_load_backend();
    if (!backend) return EXIT_FAILURE;
    for (int i = 0; i < count; i++)
        if (!try_seed(backend, first + (uint64_t)i, size ? size : 2 + i % 9, &useful)) return EXIT_FAILURE;
    printf("%d programs, %d runs\n", count, useful);
    return EXIT_SUCCESS;
}
