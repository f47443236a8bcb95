/* Compiles a kernel one item at a time and with as many lanes as are given (0: as many as seem best), each
 * several times and in turns, and runs all likewise. A kernel whose groups have one thread does all items in
 * a loop. Prints a line for one at a time and for each of the others: the number of lanes that it got, the
 * least milliseconds to compile and nanoseconds per item, and why there are not more lanes.
 *
 *     lanes_survey FILE FOLDER KERNEL ITEMS LANES...
 *
 * Imports are looked for in the folder; each uniform is a buffer of numbers. */
#include "bench.h"

enum { COMPILES = 3, ROUNDS = 5, PER_ITEM = 16, MOST_WAYS = 6, MOST_OUTPUTS = 8 };
static const double enough = 10; /* milliseconds that a measurement takes at least */

typedef struct Work {
    const char *path, *folder, *kernel;
    int items, group;
    float *input, *output;
} Work;

static Bench open_with(const Work *work, int lanes, double *compile) {
    SlopeConfig config;
    slope_config_init(&config);
    config.threads = 1;
    config.lanes = lanes;
    config.include_paths = &work->folder;
    config.include_path_count = 1;
    return bench_open_with(&config, work->path, work->kernel, compile);
}

/* Each output has memory of its own: loops whose buffers overlap do one round at a time. */
static void bind_all(Bench *bench, const Work *work) {
    int count = work->items * PER_ITEM * 3 / 4, outputs = 0;
    for (int i = 0; i < slope_uniform_count(bench->program); i++) {
        SlopeUniform uniform;
        if (!slope_uniform(bench->program, i, &uniform)) continue;
        if (strncmp(uniform.name, "lanes_", 6) != 0) continue;
        bool is_input = strncmp(uniform.name, "lanes_in", 8) == 0;
        int place = is_input ? 0 : outputs++ % MOST_OUTPUTS;
        bench_bind(bench, uniform.name, is_input ? work->input : work->output + place * count, count);
    }
}

static double run_once(Bench *bench, const Work *work, int repeats) {
    double start = now_milliseconds();
    int groups = work->group == 1 ? 1 : work->items / work->group;
    for (int i = 0; i < repeats; i++) require(bench->session, slope_dispatch(bench->kernel, groups, 1, 1));
    return now_milliseconds() - start;
}

static double least(const double *values, int count) {
    double found = values[0];
    for (int i = 1; i < count; i++) found = fmin(found, values[i]);
    return found;
}

/* Numbers of every kind of size, so that items go different ways. */
static float *mixed_numbers(int count) {
    float *numbers = bench_numbers(count);
    for (int i = 0; i < count; i++) {
        float x = numbers[i];
        int way = (int)((unsigned)i * 2654435761u >> 30);
        numbers[i] = way == 0   ? x * 2
                     : way == 1 ? x * 0.5f + 0.5f
                     : way == 2 ? x * 4.5f + 4.5f
                                : floorf(x * 4 + 3);
    }
    return numbers;
}

/* One way to run the kernel. */
typedef struct Way {
    int lanes;
    Bench bench;
    double compile[COMPILES], run[ROUNDS];
} Way;

static void compile_all(const Work *work, Way *ways, int count) {
    for (int i = 0; i < COMPILES; i++)
        for (int k = 0; k < count; k++) {
            if (i) slope_session_free(ways[k].bench.session);
            ways[k].bench = open_with(work, ways[k].lanes, &ways[k].compile[i]);
        }
}

/* Returns how often the kernel is run for a measurement. */
static int run_all(const Work *work, Way *ways, int count) {
    for (int k = 0; k < count; k++) bind_all(&ways[k].bench, work);
    double once = run_once(&ways[0].bench, work, 1);
    int repeats = once < enough ? (int)fmin(200, enough / fmax(once, 0.001)) + 1 : 1;
    for (int k = 1; k < count; k++) run_once(&ways[k].bench, work, 1);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < count; k++) ways[k].run[i] = run_once(&ways[k].bench, work, repeats);
    return repeats;
}

/* Of the kernel; if it does all items in a loop, of the loop that does most rounds at once. */
static SlopeRemark remark_on(const Work *work, const Way *way) {
    SlopeRemark most = {.lanes = 0}, remark;
    for (int i = 0; slope_remark(way->bench.session, i, &remark); i++)
        if (remark.is_loop == (work->group == 1) && remark.lanes > most.lanes) most = remark;
    if (most.lanes == 0) most.lanes = 1;
    return most;
}

static void report(const Work *work, const Way *way, int repeats) {
    SlopeRemark remark = remark_on(work, way);
    printf("%d %.3f %.3f %s\n", remark.lanes, least(way->compile, COMPILES),
           least(way->run, ROUNDS) * 1e6 / repeats / work->items, remark.why ? remark.why : "");
}

int main(int argc, char **argv) {
    if (argc < 6 || argc - 4 > MOST_WAYS) return 1;
    Work work = {.path = argv[1], .folder = argv[2], .kernel = argv[3], .items = atoi(argv[4])};
    Way ways[MOST_WAYS] = {{.lanes = 1}};
    int count = argc - 4;
    for (int k = 1; k < count; k++) ways[k].lanes = atoi(argv[k + 4]) ? atoi(argv[k + 4]) : SLOPE_LANES_AUTO;
    work.input = mixed_numbers(work.items * PER_ITEM);
    work.output = bench_numbers(work.items * PER_ITEM * MOST_OUTPUTS);
    double first; /* loads the code generator, which nobody is to pay */
    slope_session_free(open_with(&work, 1, &first).session);
    compile_all(&work, ways, count);
    int size[3];
    slope_kernel_group_size(ways[0].bench.kernel, size);
    work.group = size[0];
    int repeats = run_all(&work, ways, count);
    for (int k = 0; k < count; k++) report(&work, &ways[k], repeats);
    return 0;
}
