/* C as a dialect: a thread of the machine runs the threads of a kernel one after the other. A kernel is
 * called with the number of groups; they run side by side if OpenMP was asked for. Static and group-shared
 * variables are one per thread of the machine, set anew for every thread or group of the program. */
#include "emit/clike/clike.h"

#define GROUPS "uint32_t groups_x, uint32_t groups_y, uint32_t groups_z"

/* ---- threads */

static bool any_needs(const Printer *p, uint32_t needs) {
    for (int i = 0; i < p->reached.funcs.count; i++)
        if (p->reached.funcs.at[i]->needs & needs) return true;
    return false;
}

static void need_thread_type(Printer *p) {
    const Type *triple = type_vector(p->module->types, type_basic(p->module->types, TYPE_uint), 3);
    if (!clike_begin_helper(p, "SlopeThread")) return;
    const char *type = clike_type(p, triple);
    text_printf(&p->helpers,
                "/* Which thread of a dispatch runs. */\n"
                "typedef struct SlopeThread { %s thread_id, group_id, local_id%s; uint32_t local_index%s; } "
                "SlopeThread;\n",
                type, any_needs(p, NEEDS_SIZES) ? ", group_size, group_count" : "",
                any_needs(p, NEEDS_LANES) ? ", wave_size" : "");
    clike_make_vector(p, triple);
}

static void print_ids(Printer *p, const Func *func) {
    const int *size = func->group_size;
    clike_line(p, "thread.local_id = make_uint3(local_x, local_y, local_z);");
    clike_line(p, "thread.local_index = local_x + %du * (local_y + %du * local_z);", size[0], size[1]);
    clike_line(
        p,
        "thread.thread_id = make_uint3(thread.group_id.x * %du + local_x, thread.group_id.y * %du + local_y, "
        "thread.group_id.z * %du + local_z);",
        size[0], size[1], size[2]);
}

static void print_sizes(Printer *p, const int *size) {
    clike_line(p, "thread.group_size = make_uint3(%du, %du, %du);", size[0], size[1], size[2]);
    clike_line(p, "thread.group_count = make_uint3(groups_x, groups_y, groups_z);");
    int threads = size[0] * size[1] * size[2];
    if (any_needs(p, NEEDS_LANES))
        clike_line(p, "thread.wave_size = %d < %s ? %d : SLOPE_WAVE;", threads, clike_helper(p, "SLOPE_WAVE"),
                   threads);
}

static void print_threads(Printer *p, const Func *func, const char **names) {
    bool ids = clike_takes_thread(p, func);
    for (int i = 2; i >= 0; i--) {
        if (!ids && func->group_size[i] == 1) continue;
        clike_line(p, "for (uint32_t local_%c = 0; local_%c < %du; local_%c++) {", "xyz"[i], "xyz"[i],
                   func -> group_size[i], "xyz"[i]);
        p->indent++;
    }
    if (ids) print_ids(p, func);
    if (!clike_is_cut(p, func) && (clike_needs(p, func) & NEEDS_STATICS))
        clike_line(p, "%s;", clike_start_thread(p, func, "&thread"));
    if (clike_is_cut(p, func)) clike_line(p, "threads[thread.local_index] = thread;");
    else clike_line(p, "%s;", clike_call_inner(p, func, names, "&thread"));
    for (int i = 0; i < 3; i++) {
        if (!ids && func->group_size[i] == 1) continue;
        p->indent--;
        clike_line(p, "}");
    }
}

static void print_kernel(Printer *p, const Func *func, const char **names) {
    bool ids = clike_takes_thread(p, func);
    bool is_inner = clike_is_main(p, func) && !clike_has_threads(p, func);
    clike_line(p, "%svoid %s(%s) {", is_inner ? "static " : "", clike_outer_name(p, func),
               clike_params(p, func, names, GROUPS));
    p->indent++;
    if (p->has_init) clike_line(p, "slope_init();");
    if (p->file->openmp) { /* gcc warns of pragmas that it was not asked to heed */
        clike_line(p, "#ifdef _OPENMP");
        clike_line(p, "#pragma omp parallel for");
        clike_line(p, "#endif");
    }
    clike_line(p, "for (int64_t group = 0; group < (int64_t)groups_x * groups_y * groups_z; group++) {");
    p->indent++;
    clike_begin_made(p, func);
    if (ids) {
        clike_line(p, "SlopeThread thread;");
        if (clike_is_cut(p, func))
            clike_line(p, "SlopeThread threads[%d];",
                       func->group_size[0] * func->group_size[1] * func->group_size[2]);
        clike_line(p, "thread.group_id = make_uint3((uint32_t)(group %% groups_x), (uint32_t)(group / "
                      "groups_x %% groups_y), "
                      "(uint32_t)(group / groups_x / groups_y));");
        if (clike_needs(p, func) & NEEDS_SIZES) print_sizes(p, func->group_size);
    }
    if (clike_needs(p, func) & NEEDS_SHARED) clike_line(p, "slope_start_group();");
    if (ids || !clike_is_cut(p, func)) print_threads(p, func, names);
    if (clike_is_cut(p, func)) clike_line(p, "%s;", clike_call_inner(p, func, names, "threads"));
    clike_end_made(p, func);
    p->indent--;
    clike_line(p, "}");
    p->indent--;
    clike_line(p, "}\n");
    if (clike_is_main(p, func))
        clike_line(p, "int main(void) {\n    %s(1, 1, 1);\n    return 0;\n}\n", clike_outer_name(p, func));
}

/* ---- what begins anew */

/* Constants that need code, once. */
static void print_init(Printer *p) {
    if (!p->has_init) return;
    text_add(&p->prototypes, STR("static void slope_init(void);\n"));
    clike_line(p, "static void slope_init(void) {");
    p->indent++;
    clike_line(p, "static bool done = false;");
    clike_line(p, "if (done) return;");
    clike_line(p, "done = true;");
    if (clike_inits_take_thread(p, GLOBAL_const)) clike_no_thread(p);
    clike_inits(p, GLOBAL_const, "&thread");
    clike_keep_made(p, GLOBAL_const);
    p->indent--;
    clike_line(p, "}\n");
}

static void start(Printer *p) {
    clike_print_start(p, &(Start){.kind = GLOBAL_shared, .head = "static void slope_start_group(void)"});
    bool asks = clike_inits_take_thread(p, GLOBAL_static);
    clike_print_start(p, &(Start){.kind = GLOBAL_static,
                                  .head = asks ? "static void slope_start_thread(const SlopeThread *thread)"
                                               : "static void slope_start_thread(void)",
                                  .thread = "thread"});
    print_init(p);
}

/* ---- uniforms */

static void declare_uniform(Printer *p, const Global *global) {
    text_printf(&p->prototypes, "extern %s;\n", clike_declare(p, global->type, clike_global_name(p, global)));
}

static void uniform(Printer *p, const Global *global, const char *declaration) {
    (void)global;
    text_printf(&p->outside, "%s;\n", declaration);
}

/* ---- the dialect */

static const char *thread_id(Printer *p, int index) {
    return clike_format(p, "thread->%s", clike_id_name(index));
}

static void declare_kernel(Printer *p, const Func *func, const char **names) {
    text_printf(&p->prototypes, "void %s(%s);\n", clike_outer_name(p, func),
                clike_params(p, func, names, GROUPS));
}

static const char *const kernel_names[] = {"groups_x", "groups_y", "groups_z", "group",   "thread",
                                           "threads",  "local_x",  "local_y",  "local_z", NULL};

const Dialect clike_c = {
    .language = &clike_with_pointers,
    .includes = "#include <assert.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
                "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
    .header_includes =
        "#include <assert.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n",
    .open = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    .close = "#ifdef __cplusplus\n}\n#endif\n",
    .outside_open = "/* Defined in all files but one of a program, they share these variables. */\n"
                    "#ifndef SLOPE_SHARES_UNIFORMS\n",
    .outside_close = "#endif\n\n",
    .helper = "static inline ",
    .header_helper = "static inline ",
    .helper_of_vectors = "SLOPE_HELPER",
    .inner = "static ",
    .once = "SLOPE_INLINE",
    .steers_loops = true,
    .has_rows = true,
    .has_heap = true,
    .outer = "",
    .constant = "static const ",
    .computed = "static ",
    .shared = "static SLOPE_THREAD_LOCAL ",
    .thread_local_ = "static SLOPE_THREAD_LOCAL ",
    .reserves = true,
    .thread_needs = NEEDS_IDS,
    .thread_param = "const SlopeThread *thread",
    .kernel_names = kernel_names,
    .thread_id = thread_id,
    .need_thread = need_thread_type,
    .declare_kernel = declare_kernel,
    .kernel = print_kernel,
    .declare_uniform = declare_uniform,
    .uniform = uniform,
    .start = start,
};
