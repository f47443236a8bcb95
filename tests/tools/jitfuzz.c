/* jitfuzz [FIRST [COUNT [SIZE]]]: random programs through the LLVM emitter, against the interpreter of the IR.
 *
 * For each seed a program is made, most of them run through some passes, and interpreted on a few inputs; compiled at a level that changes from seed to seed, it must
 * give the same results, memory and buffer for each input on which the interpreter came to an end. Operations whose last
 * bit, or whose sign of zero or NaN, may differ are replaced by others first. Exit status: 0 fine, 1 not. */
#include "irgen.h"
#include "irinterp.h"
#include "jitload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUTS  4
#define STEPS   30000
#define BUFFER  8
#define MAX_ALL 16

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
    static const char *const passes[] = {"sroa", "ssa", "simplify", "cse", "licm", "dce"};
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

/* ---- runs */

/* The memory of all arguments and results, in the order of `f.call`. */
typedef struct Run {
    char *objects[MAX_ALL];
    Datum args[MAX_ALL], results[MAX_ALL];
    float buffer[BUFFER];
} Run;

static void fill_object(Random *random, const Type *type, char *at) {
    if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            fill_object(random, type_record(type)->fields[i].type,
                        at + type_field_offset(type, i, LAYOUT_scalar));
    } else if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++)
            fill_object(random, type_element(type), at + i * type_element_stride(type, LAYOUT_scalar));
    } else {
        static const double reals[] = {0.0, -0.0, 1.0, 2.5, -3.0, 0.125, 1e20, 7.0};
        Datum d = {0};
        if (type_is_float(type)) d.real[0] = reals[random_below(random, 8)];
        else d.integer[0] = type->kind == TYPE_bool ? random_below(random, 2) : random_below(random, 12) - 3;
        interp_store(type, at, d);
    }
}

static void fill_run(Run *run, Interp *in, const Func *func, uint64_t seed) {
    Random random = {seed};
    *run = (Run){0};
    for (int i = 0; i < BUFFER; i++) run->buffer[i] = (float)random_below(&random, 10);
    for (int i = 0; i < func->nparams; i++) {
        const Type *type = func->params[i].type;
        run->objects[i] = interp_memory(in, type);
        if (type->kind != TYPE_buffer) fill_object(&random, type, run->objects[i]);
    }
}

static InterpStatus interpret(Run *run, Interp *in, const Func *func) {
    InterpBuffer buffer = {.data = (char *)run->buffer, .count = BUFFER};
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        if (param->type->kind == TYPE_buffer) run->args[i].buffer = &buffer;
        else if (param->flags & PARAM_BY_ADDRESS) run->args[i].address = run->objects[i];
        else run->args[i] = interp_load(param->type, run->objects[i]);
    }
    return interp_call(in, func, run->args, run->results);
}

typedef union Code {
    void *data;
    void (*call)(void *const *args);
} Code;

static void execute(Run *run, Interp *in, const Func *func, Code code) {
    void *args[2 * MAX_ALL];
    char *results[MAX_ALL];
    RtBuffer buffer = runtime_buffer_new(BUFFER, sizeof(float));
    int count = 0;
    memcpy(buffer.data, run->buffer, sizeof run->buffer);
    for (int i = 0; i < func->nparams; i++)
        args[count++] = func->params[i].type->kind == TYPE_buffer ? (void *)&buffer : run->objects[i];
    for (int i = 0; i < func->nresults; i++) args[count++] = results[i] = interp_memory(in, func->results[i]);
    code.call(args);
    for (int i = 0; i < func->nresults; i++) run->results[i] = interp_load(func->results[i], results[i]);
    memcpy(run->buffer, buffer.data, sizeof run->buffer);
    runtime_buffer_free(buffer);
}

static const char *difference(const Func *func, const Run *a, const Run *b) {
    for (int i = 0; i < func->nresults; i++)
        if (!interp_values_equal(func->results[i], a->results[i], b->results[i])) return "results";
    for (int i = 0; i < func->nparams; i++)
        if ((func->params[i].flags & PARAM_BY_ADDRESS) &&
            !interp_objects_equal(func->params[i].type, a->objects[i], b->objects[i]))
            return "memory";
    for (int i = 0; i < BUFFER; i++)
        if (memcmp(&a->buffer[i], &b->buffer[i], 4) != 0 && !(isnan(a->buffer[i]) && isnan(b->buffer[i])))
            return "buffer";
    return NULL;
}

/* ---- one seed */

static const char *compare(const Func *func, Arena *arena, Code code, uint64_t seed, int *useful) {
    Run expected, found;
    Interp in;
    interp_init(&in, arena);
    in.steps = STEPS;
    fill_run(&expected, &in, func, seed);
    InterpStatus status = interpret(&expected, &in, func);
    if (status != INTERP_fine) return NULL;
    (*useful)++;
    fill_run(&found, &in, func, seed);
    execute(&found, &in, func, code);
    return difference(func, &expected, &found);
}

static void ignore_output(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

static bool try_seed(const EmitBackend *backend, uint64_t seed, int size, int *useful) {
    static const int levels[] = {3, 0, 2, 1};
    ToolSession session;
    JitProgram program;
    RuntimeConfig config = {.write = ignore_output};
    EmitOptions options = {.level = levels[seed % 4], .verify = true, .debug = seed % 5 == 0};
    const char *wrong = NULL;
    tool_begin(&session);
    Func *func = make_program(&session, seed, size);
    if (!jit_open(&program, backend, &config)) return false;
    Code code = {0};
    if (jit_compile(&program, session.module, &options))
        code.data = backend->jit_find(program.jit, EMIT_call, func->name->text);
    if (!code.data) wrong = "not compiled";
    for (int i = 0; i < INPUTS && !wrong; i++)
        wrong = compare(func, &session.arena, code, seed + (uint64_t)i, useful);
    if (wrong) {
        Text text = {.arena = &session.arena};
        ir_print_module(&text, session.module);
        printf("seed %llu at -O%d: %s differ\n%s\n", (unsigned long long)seed, options.level, wrong, text.at);
    }
    jit_close(&program);
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
