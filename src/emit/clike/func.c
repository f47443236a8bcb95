/* Functions: signatures, bodies, and the ways in from outside.
 *
 * A function that others may call is the function itself, unless something must be done before: static variables begin anew
 * with every call from outside, constants that need code are computed once. Then what others call is a wrapper. A kernel
 * is called with the number of groups; it runs all their threads, one after the other, or groups side by side if OpenMP was asked
 * for. A program's main is C's. */
#include "emit/clike/clike.h"

#define GROUPS "uint32_t groups_x, uint32_t groups_y, uint32_t groups_z"

static bool is_kernel(const Func *func) { return func->group_size[0] > 0; }
static bool is_exported(const Func *func) { return (func->flags & FUNC_EXPORT) != 0; }
static bool is_main(const Func *func) {
    return is_kernel(func) && func->nparams == 0 && strcmp(func->name->text, "main") == 0;
}
static uint32_t needs_of(const Printer *p, const Func *func) {
    return reached_func(&p->reached, func)->needs;
}

bool clike_takes_thread(const Printer *p, const Func *func) { return (needs_of(p, func) & NEEDS_IDS) != 0; }

static bool is_wrapped(const Printer *p, const Func *func) {
    if (!is_exported(func)) return false;
    return is_kernel(func) || p->has_init || (needs_of(p, func) & (NEEDS_IDS | NEEDS_STATICS | NEEDS_SHARED));
}

/* ---- names */

void clike_name_functions(Printer *p) {
    for (int pass = 0; pass < 2; pass++) /* those that others see choose first */
        for (int i = 0; i < p->reached.funcs.count; i++) {
            const Func *func = p->reached.funcs.at[i]->func;
            if (is_exported(func) != (pass == 0)) continue;
            const char *name = emit_outer_name(&p->arena, func->name->text);
            if (pass == 0) {
                name = clike_unique(p, &p->names, name);
                map_put(&p->arena, &p->outer_names, PTR_KEY(func), (void *)(uintptr_t)name);
                if (is_wrapped(p, func))
                    name = clike_format(p, "%s_%s", name, is_kernel(func) ? "thread" : "body");
            }
            if (pass == 1 || is_wrapped(p, func)) name = clike_unique(p, &p->names, name);
            map_put(&p->arena, &p->func_names, PTR_KEY(func), (void *)(uintptr_t)name);
        }
}

const char *clike_func_name(Printer *p, const Func *func) { return map_get(&p->func_names, PTR_KEY(func)); }

static const char *outer_name(Printer *p, const Func *func) {
    return map_get(&p->outer_names, PTR_KEY(func));
}

/* ---- signatures */

/* In arrays of arrays C does not let a qualifier come in later. */
bool clike_is_const_param(const Param *param) {
    bool nested = param->type->kind == TYPE_array && param->type->args[0]->kind == TYPE_array;
    return param->dir == DIR_in && !nested;
}

/* What a kernel calls its own. */
static const char *const kernel_names[] = {"groups_x", "groups_y", "groups_z", "group",
                                           "thread",   "local_x",  "local_y",  "local_z"};

static const char **param_names(Printer *p, const Func *func) {
    FuncState at = {.func = func}, *outer = p->at;
    const char **names = arena_array(&p->arena, const char *, func->nparams + 1);
    p->at = &at;
    if (clike_takes_thread(p, func) && !is_kernel(func)) clike_unique(p, &at.names, "thread");
    if (is_kernel(func))
        for (int i = 0; i < 8; i++) clike_unique(p, &at.names, kernel_names[i]);
    for (int i = 0; i < func->nparams; i++) {
        Name name = func->params[i].name;
        names[i] = clike_local(p, name ? emit_c_name(&p->arena, name->text) : "arg");
    }
    p->at = outer;
    return names;
}

static const char *declare_param(Printer *p, const Param *param, const char *name) {
    if (!(param->flags & PARAM_BY_ADDRESS)) return clike_declare_value(p, param->type, name);
    const char *text = clike_declare(p, type_pointer(p->module->types, param->type), name);
    return clike_is_const_param(param) ? clike_format(p, "const %s", text) : text;
}

static const char *declare_params(Printer *p, const Func *func, const char **names, const char *first) {
    Text text = {.arena = &p->arena};
    if (first) text_add(&text, str_of(first));
    for (int i = 0; i < func->nparams; i++)
        text_printf(&text, "%s%s", text.len ? ", " : "", declare_param(p, &func->params[i], names[i]));
    return text.len ? text.at : "void";
}

const char *clike_results_type(Printer *p, const Func *func) {
    if (func->nresults == 0) return "void";
    if (func->nresults == 1) return clike_type(p, func->results[0]);
    const char *name = map_get(&p->results_names, PTR_KEY(func));
    if (name) return name;
    name = clike_unique(p, &p->names, clike_format(p, "%s_results", clike_func_name(p, func)));
    map_put(&p->arena, &p->results_names, PTR_KEY(func), (void *)(uintptr_t)name);
    Text text = {.arena = &p->arena};
    text_printf(&text, "typedef struct %s {\n", name);
    for (int i = 0; i < func->nresults; i++)
        text_printf(&text, "    %s;\n", clike_declare_value(p, func->results[i], clike_format(p, "r%d", i)));
    text_printf(&text, "} %s;\n", name);
    text_add(&p->types, text_str(&text));
    return name;
}

/* `float *name(...)`: the type goes around the rest. */
static const char *signature(Printer *p, const Func *func, const char *name, const char *params) {
    const char *rest = clike_format(p, "%s(%s)", name, params);
    if (func->nresults == 1) return clike_declare_value(p, func->results[0], rest);
    return clike_format(p, "%s %s", clike_results_type(p, func), rest);
}

/* ---- threads */

static void need_thread_type(Printer *p) {
    const Type *triple = type_vector(p->module->types, type_basic(p->module->types, TYPE_uint), 3);
    if (!clike_begin_helper(p, "SlopeThread")) return;
    const char *type = clike_type(p, triple);
    text_printf(&p->helpers,
                "/* Which thread of a dispatch runs. */\n"
                "typedef struct SlopeThread { %s thread_id, group_id, local_id; uint32_t local_index; } "
                "SlopeThread;\n",
                type);
    clike_make_vector(p, triple);
}

static const char *thread_param(Printer *p, const Func *func) {
    if (!clike_takes_thread(p, func)) return NULL;
    need_thread_type(p);
    return "const SlopeThread *thread";
}

/* ---- ways in */

static const char *call_inner(Printer *p, const Func *func, const char **names, const char *thread) {
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s(", clike_func_name(p, func));
    if (clike_takes_thread(p, func)) text_printf(&text, "%s%s", thread, func->nparams ? ", " : "");
    for (int i = 0; i < func->nparams; i++) text_printf(&text, "%s%s", i ? ", " : "", names[i]);
    text_char(&text, ')');
    return text.at;
}

static void print_start(Printer *p, const Func *func) {
    uint32_t needs = needs_of(p, func);
    if (p->has_init) clike_line(p, "slope_init();");
    if (needs & NEEDS_SHARED) clike_line(p, "slope_start_group();");
    if (needs & NEEDS_STATICS) clike_line(p, "slope_start_thread();");
}

static void print_wrapper(Printer *p, const Func *func, const char **names) {
    clike_line(p, "%s {", signature(p, func, outer_name(p, func), declare_params(p, func, names, NULL)));
    p->indent++;
    if (clike_takes_thread(p, func))
        clike_line(p, "const SlopeThread thread = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0};");
    print_start(p, func);
    clike_line(p, "%s%s;", func->nresults ? "return " : "", call_inner(p, func, names, "&thread"));
    p->indent--;
    clike_line(p, "}\n");
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

static void print_threads(Printer *p, const Func *func, const char **names) {
    bool ids = clike_takes_thread(p, func);
    for (int i = 2; i >= 0; i--) {
        if (!ids && func->group_size[i] == 1) continue;
        clike_line(p, "for (uint32_t local_%c = 0; local_%c < %du; local_%c++) {", "xyz"[i], "xyz"[i],
                   func -> group_size[i], "xyz"[i]);
        p->indent++;
    }
    if (ids) print_ids(p, func);
    if (needs_of(p, func) & NEEDS_STATICS) clike_line(p, "slope_start_thread();");
    clike_line(p, "%s;", call_inner(p, func, names, "&thread"));
    for (int i = 0; i < 3; i++) {
        if (!ids && func->group_size[i] == 1) continue;
        p->indent--;
        clike_line(p, "}");
    }
}

static void print_kernel(Printer *p, const Func *func, const char **names) {
    bool ids = clike_takes_thread(p, func);
    clike_line(p, "%svoid %s(%s) {", is_main(func) ? "static " : "", outer_name(p, func),
               declare_params(p, func, names, GROUPS));
    p->indent++;
    if (p->has_init) clike_line(p, "slope_init();");
    if (p->file->openmp) clike_line(p, "#pragma omp parallel for");
    clike_line(p, "for (int64_t group = 0; group < (int64_t)groups_x * groups_y * groups_z; group++) {");
    p->indent++;
    if (ids) {
        clike_line(p, "SlopeThread thread;");
        clike_line(p, "thread.group_id = make_uint3((uint32_t)(group %% groups_x), (uint32_t)(group / "
                      "groups_x %% groups_y), "
                      "(uint32_t)(group / groups_x / groups_y));");
    }
    if (needs_of(p, func) & NEEDS_SHARED) clike_line(p, "slope_start_group();");
    print_threads(p, func, names);
    p->indent--;
    clike_line(p, "}");
    p->indent--;
    clike_line(p, "}\n");
    if (is_main(func))
        clike_line(p, "int main(void) {\n    %s(1, 1, 1);\n    return 0;\n}\n", outer_name(p, func));
}

/* ---- all of them */

static void describe(Printer *p, const Func *func) {
    const char *what = func->name->text,
               *name = is_exported(func) ? outer_name(p, func) : clike_func_name(p, func);
    if (strcmp(what, name) != 0 && !strstr(what, "*/")) clike_line(p, "/* %s */", what);
}

static void print_function(Printer *p, const Func *func) {
    const char **names = param_names(p, func);
    const char *params = declare_params(p, func, names, thread_param(p, func));
    bool is_static = !is_exported(func) || is_wrapped(p, func);
    const char *head = signature(p, func, clike_func_name(p, func), params);
    if (is_static) text_printf(&p->prototypes, "static %s;\n", head);
    describe(p, func);
    clike_line(p, "%s%s {", is_static ? "static " : "", head);
    p->indent++;
    clike_body(p, func, names);
    p->indent--;
    clike_line(p, "}\n");
}

void clike_declare_functions(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        if (!is_exported(func) || is_main(func)) continue;
        const char *what = func->name->text, *name = outer_name(p, func);
        const char *first = is_kernel(func) ? GROUPS : NULL;
        if (strcmp(what, name) != 0 && !strstr(what, "*/")) text_printf(&p->prototypes, "/* %s */\n", what);
        text_printf(&p->prototypes, "%s;\n",
                    signature(p, func, name, declare_params(p, func, param_names(p, func), first)));
    }
}

static void print_way_in(Printer *p, const Func *func) {
    if (!is_exported(func)) return;
    if (is_kernel(func)) print_kernel(p, func, param_names(p, func));
    else if (is_wrapped(p, func)) print_wrapper(p, func, param_names(p, func));
}

void clike_functions(Printer *p) {
    p->out = &p->functions;
    for (int i = p->reached.funcs.count - 1; i >= 0; i--) print_function(p, p->reached.funcs.at[i]->func);
    for (int i = 0; i < p->reached.funcs.count; i++) print_way_in(p, p->reached.funcs.at[i]->func);
}
