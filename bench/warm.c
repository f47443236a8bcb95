/* What a gradient of a benchmark takes to compile in a process that has compiled before, and to run when it
 * is called alone: sessions one after the other, each with the program as text, until the function can be
 * called. Prints the least milliseconds to compile, and nanoseconds of a call by slope_call, or - where it
 * takes buffers; both of the processor.
 *
 *     warm FILE FUNCTION PRECISION SESSIONS */
#include "bench.h"

enum { MOST_ARGS = 16, CALLS = 2000, TURNS = 30, ROUNDS = 50 };

typedef struct Compiled {
    SlopeSession *session;
    SlopeFunction *function;
    double milliseconds;
} Compiled;

static Compiled compile(const char *path, const char *function, const char *precision) {
    Compiled compiled;
    SlopeConfig config;
    SlopeProgram *program;
    void *address;
    slope_config_init(&config);
    config.defines = &(SlopeDefine){"REAL", precision};
    config.define_count = 1;
    double start = now_milliseconds();
    if (slope_session_new(&config, &compiled.session) != SLOPE_STATUS_ok) exit(1);
    require(compiled.session, slope_load_file(compiled.session, path, &program));
    require(compiled.session, slope_find_function(program, function, &compiled.function));
    require(compiled.session, slope_function_address(compiled.function, &address));
    compiled.milliseconds = now_milliseconds() - start;
    return compiled;
}

/* Numbers between 0.3 and 0.7; of whole numbers, how many rounds a loop is to make. */
static void fill(void *to, const SlopeType *type, bool is_double) {
    size_t size = slope_type_size(type);
    if (slope_type_kind(type) == SLOPE_TYPE_int32) {
        memcpy(to, &(int32_t){ROUNDS}, sizeof(int32_t));
        return;
    }
    int count = (int)(size / (is_double ? sizeof(double) : sizeof(float)));
    float *numbers = bench_numbers(count);
    for (int i = 0; i < count; i++) {
        if (is_double) ((double *)to)[i] = 0.5 + 0.2 * (double)numbers[i];
        else ((float *)to)[i] = 0.5f + 0.2f * numbers[i];
    }
    free(numbers);
}

/* Of one call; 0: it takes something else than numbers. */
static double nanoseconds(const Compiled *compiled, bool is_double) {
    static _Alignas(64) char memory[MOST_ARGS + 1][1 << 16];
    void *args[MOST_ARGS + 1];
    int count = slope_function_parameter_count(compiled->function);
    for (int i = 0; i < count; i++) {
        SlopeParameter parameter;
        if (!slope_function_parameter(compiled->function, i, &parameter) || i >= MOST_ARGS ||
            slope_type_kind(parameter.type) == SLOPE_TYPE_buffer ||
            slope_type_size(parameter.type) > sizeof *memory)
            return 0;
        args[i] = memory[i];
        fill(memory[i], parameter.type, is_double);
    }
    const SlopeType *result = slope_function_result(compiled->function);
    if (slope_type_kind(result) != SLOPE_TYPE_void) args[count] = memory[count];
    require(compiled->session, slope_call(compiled->function, args));
    double least = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        double start = now_milliseconds();
        for (int i = 0; i < CALLS; i++) slope_call(compiled->function, args);
        double spent = (now_milliseconds() - start) * 1e6 / CALLS;
        if (turn == 0 || spent < least) least = spent;
    }
    return least;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    Compiled first = compile(argv[1], argv[2], argv[3]); /* it loads LLVM */
    double call = nanoseconds(&first, strcmp(argv[3], "double") == 0), least = first.milliseconds;
    slope_session_free(first.session);
    for (int i = 0; i < atoi(argv[4]); i++) {
        Compiled next = compile(argv[1], argv[2], argv[3]);
        if (next.milliseconds < least) least = next.milliseconds;
        slope_session_free(next.session);
    }
    if (call > 0) printf("%.2f %.1f\n", least, call);
    else printf("%.2f -\n", least);
    return 0;
}
