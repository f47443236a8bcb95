/* Globals. Uniforms are variables that the host sets, laid out as C does it whatever the program says; constants are static;
 * static and group-shared variables are one per thread of the machine, set anew for every thread or group of the program. */
#include "emit/clike/clike.h"

static bool is_outside(const Global *global) { return global->kind == GLOBAL_uniform; }

const char *clike_global_name(Printer *p, const Global *global) {
    const char *name = map_get(&p->global_names, PTR_KEY(global));
    if (name) return name;
    name = clike_unique(p, &p->names, emit_outer_name(&p->arena, global->name->text));
    map_put(&p->arena, &p->global_names, PTR_KEY(global), (void *)(uintptr_t)name);
    return name;
}

typedef struct Image {
    Val *const *data;
    int ndata, next;
} Image;

static void print_object(Printer *p, Text *text, Image *image, const Type *type) {
    if (type_is_scalar(type)) {
        const Val *v = image->next < image->ndata ? image->data[image->next++] : NULL;
        if (type->kind == TYPE_half) text_printf(text, "%u", v ? half_from_double(v->real) : 0u);
        else text_add(text, str_of(v ? clike_constant(p, v) : "0"));
        return;
    }
    if (type->kind == TYPE_pointer || type->kind == TYPE_tape) {
        image->next++;
        text_add(text, STR("0"));
        return;
    }
    text_char(text, '{');
    bool first = true;
    if (type->kind == TYPE_buffer) {
        image->next++;
        text_add(text, STR("0, 0"));
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            if (clike_is_nothing(type_record(type)->fields[i].type)) continue;
            if (!first) text_add(text, STR(", "));
            first = false;
            print_object(p, text, image, type_record(type)->fields[i].type);
        }
        if (first) text_char(text, '0');
    } else {
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++) {
            if (i) text_add(text, i % 16 ? STR(", ") : STR(",\n    "));
            print_object(p, text, image, type->args[0]);
        }
        if (count <= 0) text_char(text, '0');
    }
    text_char(text, '}');
}

/* Strings end up as literals, mostly. */
static bool is_mentioned(const Printer *p, const char *name) {
    return p->functions.at && clike_mentions(p->functions.at, name);
}

static void print_global(Printer *p, const ReachedGlobal *info) {
    const Global *global = info->global;
    const char *name = clike_global_name(p, global);
    if (global->kind == GLOBAL_const && !is_mentioned(p, name)) return;
    const char *declaration = clike_declare(p, global->type, name);
    Text text = {.arena = &p->arena};
    switch ((GlobalKind)global->kind) {
    case GLOBAL_const: text_add(&text, info->init ? STR("static ") : STR("static const ")); break;
    case GLOBAL_static:
    case GLOBAL_shared: text_printf(&text, "static %s ", clike_helper(p, "SLOPE_THREAD_LOCAL")); break;
    case GLOBAL_uniform: break;
    }
    text_add(&text, str_of(declaration));
    if (global->data && global->ndata && !clike_is_nothing(global->type)) {
        Image image = {global->data, global->ndata, 0};
        text_add(&text, STR(" = "));
        print_object(p, &text, &image, global->type);
    }
    text_add(&text, STR(";\n"));
    text_add(is_outside(global) ? &p->outside : &p->globals, text_str(&text));
}

static bool has_kind(const Printer *p, GlobalKind kind) {
    for (int i = 0; i < p->reached.globals.count; i++)
        if (p->reached.globals.at[i]->global->kind == kind) return true;
    return false;
}

static bool has_computed(const Printer *p) {
    for (int i = 0; i < p->reached.globals.count; i++)
        if (p->reached.globals.at[i]->global->kind == GLOBAL_const && p->reached.globals.at[i]->init)
            return true;
    return false;
}

static void print_inits(Printer *p, GlobalKind kind) {
    for (int i = 0; i < p->reached.globals.count; i++) {
        const ReachedGlobal *info = p->reached.globals.at[i];
        if (info->global->kind == kind && info->init)
            clike_line(p, "%s(%s);", clike_func_name(p, info->init->func),
                       clike_takes_thread(p, info->init->func) ? "NULL" : "");
    }
}

static void print_clearing(Printer *p, GlobalKind kind, const char *function) {
    if (!has_kind(p, kind)) return;
    text_printf(&p->prototypes, "static void %s(void);\n", function);
    clike_line(p, "static void %s(void) {", function);
    p->indent++;
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (global->kind != kind) continue;
        const char *name = clike_global_name(p, global);
        clike_line(p, "memset(&%s, 0, sizeof %s);", name, name);
    }
    print_inits(p, kind);
    p->indent--;
    clike_line(p, "}\n");
}

/* Constants that need code, once. */
static void print_init(Printer *p) {
    if (!p->has_init) return;
    text_add(&p->prototypes, STR("static void slope_init(void);\n"));
    clike_line(p, "static void slope_init(void) {");
    p->indent++;
    clike_line(p, "static bool done = false;");
    clike_line(p, "if (done) return;");
    clike_line(p, "done = true;");
    print_inits(p, GLOBAL_const);
    p->indent--;
    clike_line(p, "}\n");
}

void clike_declare_globals(Printer *p) {
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (is_outside(global))
            text_printf(&p->prototypes, "extern %s;\n",
                        clike_declare(p, global->type, clike_global_name(p, global)));
    }
}

void clike_find_init(Printer *p) { p->has_init = has_computed(p); }

void clike_globals(Printer *p) {
    p->out = &p->functions;
    print_clearing(p, GLOBAL_shared, "slope_start_group");
    print_clearing(p, GLOBAL_static, "slope_start_thread");
    print_init(p);
    for (int i = 0; i < p->reached.globals.count; i++) print_global(p, p->reached.globals.at[i]);
}
