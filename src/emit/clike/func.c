/* Functions: signatures, bodies, and the ways in from outside.
 *
 * A function that others may call is the function itself, unless something must be done before: static
 * variables begin anew with every call from outside, constants that need code are computed once. Then what
 * others call is a wrapper. How kernels are called is up to the dialect. A program's main is C's, unless there
 * is a header for those who run it. */
#include "emit/clike/clike.h"

static bool is_kernel(const Func *func) { return func->group_size[0] > 0; }
static bool is_exported(const Func *func) { return (func->flags & FUNC_EXPORT) != 0; }
uint32_t clike_needs(const Printer *p, const Func *func) { return reached_func(&p->reached, func)->needs; }

bool clike_has_threads(const Printer *p, const Func *func) {
    const int *size = func->group_size;
    return (clike_needs(p, func) & NEEDS_IDS) || size[0] * size[1] * size[2] > 1;
}

bool clike_is_main(const Printer *p, const Func *func) {
    if (!is_kernel(func) || func->nparams || strcmp(func->name->text, "main") != 0) return false;
    return !p->file->is_called;
}

bool clike_takes_thread(const Printer *p, const Func *func) {
    return (clike_needs(p, func) & p->dialect->thread_needs) != 0;
}

static bool is_wrapped(const Printer *p, const Func *func) {
    if (!is_exported(func) || p->dialect->language->has_places_only) return false;
    bool inits = p->has_init && !p->dialect->early_init;
    uint32_t needs = NEEDS_STATICS | NEEDS_SHARED | NEEDS_MADE | p->dialect->thread_needs;
    return is_kernel(func) || inits || (clike_needs(p, func) & needs);
}

/* ---- names */

/* Without the stages that a derivative went through. */
static const char *plain_name(Printer *p, const Func *func) {
    static const char *const stages[] = {".flat", ".rounds", ".normal", ".copy"};
    const char *name = func->name->text;
    for (size_t i = 0; i < sizeof stages / sizeof *stages && (func->flags & FUNC_GENERATED); i++) {
        const char *at = strstr(name, stages[i]), *rest = at ? at + strlen(stages[i]) : NULL;
        if (rest && (*rest == '.' || !*rest)) name = clike_format(p, "%.*s%s", (int)(at - name), name, rest);
    }
    return name;
}

void clike_name_functions(Printer *p) {
    for (int pass = 0; pass < 2; pass++) /* those that others see choose first */
        for (int i = 0; i < p->reached.funcs.count; i++) {
            const Func *func = p->reached.funcs.at[i]->func;
            if (is_exported(func) != (pass == 0)) continue;
            const char *name = clike_free_name(p, pass ? plain_name(p, func) : func->name->text);
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

const char *clike_outer_name(Printer *p, const Func *func) { return map_get(&p->outer_names, PTR_KEY(func)); }

/* ---- signatures */

/* In arrays of arrays C does not let a qualifier come in later. */
bool clike_is_const_param(const Param *param) {
    bool nested = param->type->kind == TYPE_array && param->type->args[0]->kind == TYPE_array;
    return param->dir == DIR_in && !nested;
}

int clike_returned_param(const Printer *p, const Func *func) {
    if (!p->dialect->language->has_places_only || func->nresults || !func->nparams) return -1;
    const Param *first = &func->params[0];
    return (first->flags & PARAM_RESULT) && !clike_is_nothing(first->type) ? 0 : -1;
}

const Global *clike_computed_global(const Printer *p, const Func *func) {
    for (int i = 0; i < p->reached.globals.count && p->dialect->language->has_places_only; i++)
        if (p->reached.globals.at[i]->init && p->reached.globals.at[i]->init->func == func)
            return p->reached.globals.at[i]->global;
    return NULL;
}

static const char **param_names(Printer *p, const Func *func) {
    FuncState at = {.func = func}, *outer = p->at;
    const char **names = arena_array(&p->arena, const char *, func->nparams + 1);
    p->at = &at;
    if (clike_takes_thread(p, func) && !is_kernel(func)) clike_unique(p, &at.names, "thread");
    if (clike_is_tried(p, func)) clike_unique(p, &at.names, "exact");
    clike_name_made(p, func, &at.names);
    if (is_kernel(func))
        for (const char *const *own = p->dialect->kernel_names; *own; own++) clike_unique(p, &at.names, *own);
    for (int i = 0; i < func->nparams; i++) {
        Name name = func->params[i].name;
        const char *other = emit_is_outlined(func) ? "t" : func->flags & FUNC_GENERATED ? "kept" : "arg";
        const char *wish = name ? emit_c_name(&p->arena, name->text) : other;
        bool is_apart = func->params[i].flags & PARAM_APART;
        names[i] = is_apart ? clike_name_apart(p, wish) : clike_local(p, wish);
    }
    p->at = outer;
    return names;
}

const char *clike_declare_pointer_param(Printer *p, const Param *param, const char *name) {
    if (param->flags & PARAM_APART) return clike_declare_apart(p, param, name);
    if (!(param->flags & PARAM_BY_ADDRESS)) return clike_declare_value(p, param->type, name);
    if (emit_is_alone(&p->reached, param) && !p->file->header) /* nobody else writes there during the call */
        name = clike_format(p, "%s %s", clike_helper(p, "SLOPE_RESTRICT"), name);
    const char *text = clike_declare(p, type_pointer(p->module->types, param->type), name);
    return clike_is_const_param(param) ? clike_format(p, "const %s", text) : text;
}

const char *clike_params(Printer *p, const Func *func, const char **names, const char *first) {
    Text text = {.arena = &p->arena};
    if (first) text_add(&text, str_of(first));
    for (int i = 0; i < func->nparams; i++) {
        const char *param = p->dialect->language->declare_param(p, &func->params[i], names[i]);
        if (param) text_printf(&text, "%s%s", text.len ? ", " : "", param);
    }
    return text.len ? text.at : p->dialect->language->no_params;
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* A way back returns the derivatives of those parameters that it does not write to: the one that this is of,
 * or NULL. */
static const Param *derived_param(const Func *func, int index) {
    const Param *found = NULL;
    int count = 0;
    for (int i = 0; i < func->nparams && ends_in(func->name->text, ".prop"); i++) {
        const Param *param = &func->params[i];
        if (!(param->flags & PARAM_DIFF) || (param->flags & PARAM_BY_ADDRESS)) continue;
        if (count++ == index) found = param;
    }
    return count == func->nresults && found && found->name ? found : NULL;
}

/* Without a name of its own: by what it is for. */
static const char *made_name(Printer *p, const Func *func, int index) {
    const Param *param = func->flags & FUNC_GENERATED ? derived_param(func, index) : NULL;
    return param ? clike_format(p, "d%s", emit_c_name(&p->arena, param->name->text)) : "value";
}

/* As what is returned in the end is called. */
static const char *result_name(Printer *p, const Func *func, int index) {
    const Inst *end = func->body ? func->body->last : NULL;
    bool returns = end && end->op == OP_return && end->nargs == func->nresults;
    const Val *v = returns ? ir_resolve(end->args[index]) : NULL;
    bool is_named = v && !val_is_const(v) && v->name;
    const char *wish = is_named ? emit_c_name(&p->arena, v->name->text) : made_name(p, func, index);
    uint64_t key = PTR_KEY(name_from(p->module->names, wish));
    bool is_taken =
        map_has(&p->names, key) || map_has(&p->reserved, key) || clike_is_claimed(p, wish, SCOPE_field);
    return is_taken ? clike_format(p, "%s_", wish) : wish;
}

/* The fields of the struct that they are returned in. */
static const char **result_fields(Printer *p, const Func *func) {
    const char **fields = map_get(&p->results_fields, PTR_KEY(func));
    if (fields) return fields;
    Map taken = {0};
    fields = arena_array(&p->arena, const char *, func->nresults);
    for (int i = 0; i < func->nresults; i++) fields[i] = clike_unique(p, &taken, result_name(p, func, i));
    map_put(&p->arena, &p->results_fields, PTR_KEY(func), fields);
    return fields;
}

const char *clike_result_field(Printer *p, const Func *func, int index) {
    return result_fields(p, func)[index];
}

const char *clike_results_type(Printer *p, const Func *func) {
    if (func->nresults == 0) return "void";
    if (func->nresults == 1) return clike_type(p, func->results[0]);
    const char *name = map_get(&p->results_names, PTR_KEY(func));
    if (name) return name;
    name = clike_unique(p, &p->names, clike_format(p, "%s_results", clike_func_name(p, func)));
    map_put(&p->arena, &p->results_names, PTR_KEY(func), (void *)(uintptr_t)name);
    Text text = {.arena = &p->arena};
    bool places = p->dialect->language->has_places_only;
    text_printf(&text, "%sstruct %s {\n", places ? "" : "typedef ", name);
    for (int i = 0; i < func->nresults; i++)
        text_printf(&text, "    %s;\n",
                    clike_declare_value(p, func->results[i], clike_result_field(p, func, i)));
    text_printf(&text, places ? "};\n\n" : "} %s;\n", name);
    text_add(&p->types, text_str(&text));
    return name;
}

/* `float *name(...)`: the type goes around the rest. */
static const char *signature(Printer *p, const Func *func, const char *name, const char *params) {
    const char *rest = clike_format(p, "%s(%s)", name, params);
    const Global *computed = clike_computed_global(p, func);
    int returned = clike_returned_param(p, func);
    if (computed) return clike_format(p, "%s %s", clike_type(p, computed->type), rest);
    if (returned >= 0) return clike_format(p, "%s %s", clike_type(p, func->params[returned].type), rest);
    if (func->nresults == 1) return clike_declare_value(p, func->results[0], rest);
    if (clike_is_tried(p, func)) return clike_format(p, "bool %s", rest);
    return clike_format(p, "%s %s", clike_results_type(p, func), rest);
}

/* ---- ways in */

/* One that is no parameter of the function in the IR. */
static const char *first_param(Printer *p, const Func *func) {
    if (clike_is_tried(p, func)) return "bool exact";
    if (!clike_takes_thread(p, func)) return NULL;
    if (p->dialect->need_thread) p->dialect->need_thread(p);
    return clike_is_cut(p, func) ? "const SlopeThread *threads" : p->dialect->thread_param;
}

const char *clike_call_inner(Printer *p, const Func *func, const char **names, const char *thread) {
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s(", clike_func_name(p, func));
    if (clike_takes_thread(p, func)) text_printf(&text, "%s%s", thread, func->nparams ? ", " : "");
    for (int i = 0; i < func->nparams; i++) text_printf(&text, "%s%s", i ? ", " : "", names[i]);
    text_char(&text, ')');
    return text.at;
}

static void print_start(Printer *p, const Func *func) {
    uint32_t needs = clike_needs(p, func);
    if (p->has_init && !p->dialect->early_init) clike_line(p, "slope_init();");
    clike_begin_made(p, func);
    if (needs & NEEDS_SHARED) clike_line(p, "slope_start_group();");
    if (needs & NEEDS_STATICS) clike_line(p, "%s;", clike_start_thread(p, func, "&thread"));
}

static void print_call(Printer *p, const Func *func, const char **names) {
    const char *call = clike_call_inner(p, func, names, "&thread");
    if (!clike_makes(p, func)) {
        clike_line(p, "%s%s;", func->nresults ? "return " : "", call);
        return;
    }
    const char *type = func->nresults == 1 ? clike_declare_value(p, func->results[0], "returned")
                                           : clike_format(p, "%s returned", clike_results_type(p, func));
    if (func->nresults) clike_line(p, "%s = %s;", type, call);
    else clike_line(p, "%s;", call);
    clike_return_made(p, func, names);
    clike_end_made(p, func);
    if (func->nresults) clike_line(p, "return returned;");
}

static void print_wrapper(Printer *p, const Func *func, const char **names) {
    clike_line(p, "%s%s {", p->dialect->outer,
               signature(p, func, clike_outer_name(p, func), clike_params(p, func, names, NULL)));
    p->indent++;
    if (clike_takes_thread(p, func)) {
        if (p->dialect->thread_local_) clike_no_thread(p);
        else clike_line(p, "SlopeThread thread;");
    }
    print_start(p, func);
    print_call(p, func, names);
    p->indent--;
    clike_line(p, "}\n");
}

/* ---- all of them */

/* bwd_diff(f.1), of the second overload, is bwd_diff(f) to who has written it. */
static const char *without_numbers(Printer *p, const char *name) {
    Text text = {.arena = &p->arena};
    for (const char *at = name; *at; at++) {
        size_t digits = *at == '.' ? strspn(at + 1, "0123456789") : 0;
        if (digits && at[digits + 1] == ')') at += digits;
        else text_char(&text, *at);
    }
    return text.at;
}

/* What it is, where its name does not tell. */
static const char *description(Printer *p, const Func *func, const char *name) {
    static const struct {
        const char *suffix, *before, *after;
    } made[] = {
        {".fwd", "", ", and its derivative in one direction"},
        {".pri", "", ", which keeps what the way back needs"},
        {".prop", "The way back through ", ": from the derivative of its result to those of its parameters"},
        {".prop.set", "The way back through ",
         ": from the derivative of its result to those of its parameters, which are zero before"},
    };
    const char *what = func->name->text, *number = strrchr(what, '.');
    if (emit_is_outlined(func)) return NULL;
    bool is_overload = number && number[1] && !number[1 + strspn(number + 1, "0123456789")];
    if (strcmp(what, name) == 0 || is_overload || strstr(what, "*/")) return NULL;
    for (size_t i = 0; i < sizeof made / sizeof *made && (func->flags & FUNC_GENERATED); i++)
        if (ends_in(what, made[i].suffix))
            return clike_format(p, "%s%.*s%s", made[i].before, (int)(strlen(what) - strlen(made[i].suffix)),
                                what, made[i].after);
    return without_numbers(p, what);
}

static void describe(Printer *p, const Func *func) {
    const char *name = is_exported(func) ? clike_outer_name(p, func) : clike_func_name(p, func);
    const char *what = description(p, func, name);
    if (what) clike_line(p, "/* %s */", what);
}

static bool is_of_triangles(const Printer *p, const ReachedFunc *reached);

static bool is_inlined(const Printer *p, const Func *func) {
    const ReachedFunc *reached = reached_func(&p->reached, func);
    return p->options->level > 0 && !reached->is_cyclic && reach_is_joined(reached) &&
           !is_of_triangles(p, reached);
}

static bool is_apart(Printer *p, const ReachedFunc *reached);

/* Instructions of a function and of all that is inlined into it. */
static int64_t whole_size(Printer *p, const ReachedFunc *reached) {
    int64_t size = (intptr_t)map_get(&p->sizes, PTR_KEY(reached));
    if (size || reached->is_cyclic) return size ? size : reached->size;
    size = reached->size;
    for (int i = 0; i < reached->callees.count; i++)
        if (!is_apart(p, reached->callees.at[i])) size += whole_size(p, reached->callees.at[i]);
    map_put(&p->arena, &p->sizes, PTR_KEY(reached), (void *)(intptr_t)size);
    return size;
}

/* Some compilers inline whatever they can, and take minutes where large functions are called in many
 * places. */
static bool is_apart(Printer *p, const ReachedFunc *reached) {
    const int64_t most_copied =
        p->options->level < 2 ? 300 : 3000; /* of a random program, that halves what is compiled */
    bool is_called =
        p->dialect->apart && reached->calls > 1 && !reached->is_cyclic && !is_exported(reached->func);
    return is_called && (reached->calls - 1) * whole_size(p, reached) > most_copied;
}

typedef bool Trait(const Printer *p, const ReachedFunc *reached);

static bool has_nest(const Printer *p, const ReachedFunc *reached) {
    (void)p;
    return reached->has_nest;
}

static bool has_rows(const Printer *p, const ReachedFunc *reached) {
    return clike_has_rows(p, reached->func);
}

typedef struct Look {
    bool chooses, is_derivative;
} Look;

static void look_for_choices(void *user, Inst *inst) {
    Look *look = user;
    bool is_guard = inst->op == OP_scale || inst->op == OP_ratio;
    look->is_derivative |= is_guard || inst_has(inst, INST_FREE);
    look->chooses |= is_guard || (inst->op == OP_select && type_is_float(inst->results[0]->type));
}

/* Does it choose numbers in derivatives that autodiff has made? Nobody else's sums have no order. */
static bool chooses_derivatives(const Printer *p, const ReachedFunc *reached) {
    (void)p;
    Look look = {.is_derivative = (reached->func->flags & FUNC_GENERATED) != 0};
    region_walk(reached->func->body, look_for_choices, &look);
    return look.chooses && look.is_derivative;
}

static bool is_of_quotients(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_loop && clike_keeps_quotients(inst);
}

/* In loops that stay loops. */
static bool keeps_quotients(const Printer *p, const ReachedFunc *reached) {
    (void)p;
    return !reached->has_nest && region_find(reached->func->body, is_of_quotients, NULL);
}

static bool is_sum_of_rows(const void *printer, const Inst *inst) {
    return inst->op == OP_loop && clike_adds_rows(printer, inst);
}

static bool adds_rows(const Printer *p, const ReachedFunc *reached) {
    return region_find(reached->func->body, is_sum_of_rows, p);
}

static bool is_row_by_row(const void *printer, const Inst *inst) {
    return inst->op == OP_loop && clike_adds_row_by_row(printer, inst);
}

static bool adds_row_by_row(const Printer *p, const ReachedFunc *reached) {
    return region_find(reached->func->body, is_row_by_row, p);
}

static bool is_whole_row(const void *user, const Inst *inst) {
    (void)user;
    const Val *row = clike_is_in_whole_row(inst) ? inst_operand(inst, 0) : NULL;
    return row && row->kind == VAL_inst && row->inst->op == OP_elem;
}

/* Of local arrays with several, which loops with rounds that do nothing go through (masked.c), row by row. */
static bool has_whole_rows(const Printer *p, const ReachedFunc *reached) {
    (void)p;
    return region_find(reached->func->body, is_whole_row, NULL);
}

static bool waits_for_rounds(const Inst *loop) {
    for (int i = 0; i < loop->nargs; i++)
        if (type_is_float(loop->args[i]->type) && loop_term(loop, i) < 0) return true;
    return false;
}

static bool is_call_in_turn(const void *user, const Inst *inst) {
    (void)user;
    const Inst *loop = op_is_elementary(inst->op) && inst->op != OP_tanh ? inst_loop_around(inst) : NULL;
    return loop && waits_for_rounds(loop);
}

/* Does it call elementary functions, number by number, in loops whose rounds wait for each other? `tanh` is
 * computed in place. */
static bool calls_in_turn(const Printer *p, const ReachedFunc *reached) {
    (void)p;
    return region_find(reached->func->body, is_call_in_turn, NULL);
}

/* Has it that trait, or what becomes a part of it? */
static bool has_trait(const Printer *p, const ReachedFunc *reached, Trait *trait) {
    if (trait(p, reached)) return true;
    for (int i = 0; i < reached->callees.count && !reached->is_cyclic; i++) {
        const ReachedFunc *callee = reached->callees.at[i];
        if (is_inlined(p, callee->func) && has_trait(p, callee, trait)) return true;
    }
    return false;
}

/* Is it a function of its own for its triangles (triangles.c)? Not where gcc is told something else: of two
 * attributes that say how to optimise, it heeds the last. */
static bool is_of_triangles(const Printer *p, const ReachedFunc *reached) {
    bool is_called = !is_exported(reached->func) && p->dialect->once;
    return is_called && clike_adds_triangles(p, reached->func) && !has_trait(p, reached, has_nest) &&
           !has_trait(p, reached, keeps_quotients) && !has_trait(p, reached, has_whole_rows) &&
           !has_trait(p, reached, has_rows);
}

/* With what gcc is told of a function and of all that becomes a part of it. */
static const char *qualifier_as_whole(Printer *p, const Func *func, const char *qualifier) {
    const ReachedFunc *reached = reached_func(&p->reached, func);
    if (!p->dialect->steers_loops || p->options->level == 0) return qualifier;
    bool in_order = has_trait(p, reached, has_nest), branches = has_trait(p, reached, chooses_derivatives);
    bool keeps = has_trait(p, reached, keeps_quotients);
    const char *told[] = {
        is_kernel(func) && has_trait(p, reached, calls_in_turn) ? "SLOPE_OF_ITS_OWN" : NULL,
        !in_order  ? NULL
        : branches ? "SLOPE_BRANCHES_IN_ORDER"
                   : "SLOPE_IN_ORDER",
        keeps ? "SLOPE_VECTORS_IN_LOOPS" : NULL,
        !in_order && !keeps && has_trait(p, reached, has_whole_rows) ? "SLOPE_READS_IN_PLACE" : NULL,
        in_order                                 ? "SLOPE_WIDE_VECTORS"
        : has_trait(p, reached, has_rows)        ? "SLOPE_ITEMS_AT_ONCE"
        : has_trait(p, reached, adds_row_by_row) ? "SLOPE_WIDE_VECTORS"
                                                 : NULL,
        in_order                           ? NULL
        : has_trait(p, reached, adds_rows) ? "SLOPE_SUMS_OF_ROWS"
        : branches                         ? "SLOPE_BRANCHES"
                                           : NULL,
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i]) qualifier = clike_format(p, "%s%s ", qualifier, clike_helper(p, told[i]));
    return qualifier;
}

static const char *qualifier_of(Printer *p, const Func *func) {
    const Dialect *dialect = p->dialect;
    if (is_exported(func))
        return qualifier_as_whole(p, func, is_wrapped(p, func) ? dialect->inner : dialect->outer);
    const ReachedFunc *reached = reached_func(&p->reached, func);
    if (is_apart(p, reached)) return dialect->apart;
    if (is_of_triangles(p, reached))
        return clike_format(p, "%s%s ", dialect->inner, clike_helper(p, "SLOPE_TRIANGLES"));
    if (!dialect->once || !is_inlined(p, func)) return qualifier_as_whole(p, func, dialect->inner);
    return clike_format(p, "%s%s ", dialect->inner, clike_helper(p, dialect->once));
}

static void print_function(Printer *p, const Func *func) {
    const char **names = param_names(p, func);
    if (p->dialect->language->has_places_only && is_kernel(func)) {
        p->dialect->kernel(p, func, names);
        return;
    }
    const char *params = clike_params(p, func, names, first_param(p, func));
    bool is_static = !is_exported(func) || is_wrapped(p, func);
    const char *head = signature(p, func, clike_func_name(p, func), params);
    const char *qualifier = qualifier_of(p, func);
    if (is_static && !p->dialect->language->has_places_only)
        text_printf(&p->prototypes, "%s%s;\n", qualifier, head);
    describe(p, func);
    clike_mark_head(p, func);
    clike_line(p, "%s%s {", qualifier, head);
    p->indent++;
    if (p->file->hosted && reached_func(&p->reached, func)->looks)
        clike_line(p, "%s();", clike_helper(p, "slope_look"));
    clike_body(p, func, names);
    p->indent--;
    clike_line(p, "}\n");
}

static void declare_function(Printer *p, const Func *func) {
    const char *name = clike_outer_name(p, func), *what = description(p, func, name),
               **names = param_names(p, func);
    if (what) text_printf(&p->prototypes, "/* %s */\n", what);
    if (is_kernel(func)) p->dialect->declare_kernel(p, func, names);
    else
        text_printf(&p->prototypes, "%s%s;\n", p->dialect->outer,
                    signature(p, func, name, clike_params(p, func, names, NULL)));
}

void clike_declare_functions(Printer *p) {
    if (p->dialect->language->has_places_only) return; /* the order does not matter */
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        if (is_exported(func) && !clike_is_main(p, func)) declare_function(p, func);
    }
}

static void print_way_in(Printer *p, const Func *func) {
    if (!is_exported(func)) return;
    if (p->dialect->language->has_places_only) return;
    clike_mark_head(p, func);
    if (is_kernel(func)) p->dialect->kernel(p, func, param_names(p, func));
    else if (is_wrapped(p, func)) print_wrapper(p, func, param_names(p, func));
}

void clike_functions(Printer *p) {
    p->out = &p->functions;
    for (int i = p->reached.funcs.count - 1; i >= 0; i--) print_function(p, p->reached.funcs.at[i]->func);
    for (int i = 0; i < p->reached.funcs.count; i++) print_way_in(p, p->reached.funcs.at[i]->func);
}
