/* Globals. Uniforms are variables that the host sets, laid out as C does it whatever the program says;
 * constants are static. How uniforms are set, and where static and group-shared variables are and begin anew,
 * is up to the dialect. */
#include "emit/clike/clike.h"

const char *clike_global_name(Printer *p, const Global *global) {
    const char *name = map_get(&p->global_names, PTR_KEY(global));
    if (name) return name;
    name = clike_unique(p, &p->names, clike_free_name(p, global->name->text));
    map_put(&p->arena, &p->global_names, PTR_KEY(global), (void *)(uintptr_t)name);
    return name;
}

/* Threads that wait for each other run in turns, each with variables of its own. */
void clike_find_copies(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        int threads = func->group_size[0] * func->group_size[1] * func->group_size[2];
        bool has_copies = clike_is_cut(p, func) && (clike_needs(p, func) & NEEDS_STATICS);
        if (has_copies && threads > p->static_copies) p->static_copies = threads;
    }
}

const char *clike_static_place(Printer *p, const Global *global) {
    const char *name = clike_global_name(p, global);
    if (!p->static_copies) return name;
    return clike_format(p, "%s[%s]", name, clike_helper(p, "slope_local"));
}

typedef struct Image {
    Val *const *data;
    int ndata, next;
} Image;

static void print_object(Printer *p, Text *text, Image *image, const Type *type) {
    if (type_is_scalar(type)) {
        const Val *v = image->next < image->ndata ? image->data[image->next++] : NULL;
        if (type->kind == TYPE_half && !p->dialect->language->has_places_only)
            text_printf(text, "%u", v ? half_from_double(v->real) : 0u);
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

static const char *end_of_literal(const char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* Strings end up as literals, mostly. What is inside a literal or the name of a field is something else. */
static bool is_mentioned(const Printer *p, const char *name) {
    size_t length = strlen(name);
    for (const char *at = p->functions.len ? p->functions.at : "", *word = at; *at; at = word) {
        if (*at == '"') word = end_of_literal(at);
        else if (!clike_is_word_char(*at)) word = at + 1;
        else {
            while (clike_is_word_char(*word)) word++;
            bool is_field = at > p->functions.at && (at[-1] == '.' || at[-1] == '>');
            if (!is_field && (size_t)(word - at) == length && strncmp(at, name, length) == 0) return true;
        }
    }
    return false;
}

static const char *qualifier(Printer *p, const ReachedGlobal *info) {
    switch ((GlobalKind)info->global->kind) {
    case GLOBAL_const: return info->init ? p->dialect->computed : p->dialect->constant;
    case GLOBAL_static:
    case GLOBAL_shared: {
        const char *space =
            info->global->kind == GLOBAL_static ? p->dialect->thread_local_ : p->dialect->shared;
        if (space && strstr(space, "SLOPE_THREAD_LOCAL")) clike_helper(p, "SLOPE_THREAD_LOCAL");
        return space;
    }
    case GLOBAL_uniform: break;
    }
    return "";
}

static void print_global(Printer *p, const ReachedGlobal *info) {
    const Global *global = info->global;
    const char *name = clike_global_name(p, global);
    if (global->kind == GLOBAL_const && !is_mentioned(p, name)) return;
    bool has_copies = global->kind == GLOBAL_static && p->static_copies;
    if (has_copies) name = clike_format(p, "%s[%d]", name, p->static_copies);
    const char *declaration = clike_declare(p, global->type, name);
    if (global->kind == GLOBAL_static && !p->dialect->thread_local_) return;
    Text text = {.arena = &p->arena};
    text_add(&text, str_of(qualifier(p, info)));
    text_add(&text, str_of(declaration));
    if (info->init && p->dialect->language->has_places_only)
        text_printf(&text, " = %s()", clike_func_name(p, info->init->func));
    else if (global->data && global->ndata && !clike_is_nothing(global->type)) {
        Image image = {global->data, global->ndata, 0};
        text_add(&text, STR(" = "));
        print_object(p, &text, &image, global->type);
    }
    if (global->kind == GLOBAL_uniform) {
        p->dialect->uniform(p, global, text.at);
        return;
    }
    text_add(&text, STR(";\n"));
    text_add(&p->globals, text_str(&text));
}

bool clike_has_globals(const Printer *p, GlobalKind kind) {
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

void clike_no_thread(Printer *p) {
    clike_line(p, "const SlopeThread thread = %s;", clike_helper(p, "SLOPE_ZERO"));
}

bool clike_inits_take_thread(const Printer *p, GlobalKind kind) {
    for (int i = 0; i < p->reached.globals.count; i++) {
        const ReachedGlobal *info = p->reached.globals.at[i];
        if (info->global->kind == kind && info->init && clike_takes_thread(p, info->init->func)) return true;
    }
    return false;
}

const char *clike_start_thread(Printer *p, const Func *func, const char *thread) {
    bool is_given = !p->dialect->thread_local_ || clike_inits_take_thread(p, GLOBAL_static);
    if (!is_given) thread = "";
    else if (!clike_takes_thread(p, func)) thread = "NULL";
    return clike_format(p, "slope_start_thread(%s)", thread);
}

/* Where a thread is not always given, who has none uses no variable that is computed of it. */
void clike_inits(Printer *p, GlobalKind kind, const char *thread) {
    bool maybe_none = kind == GLOBAL_static && p->dialect->thread_local_;
    for (int i = 0; i < p->reached.globals.count; i++) {
        const ReachedGlobal *info = p->reached.globals.at[i];
        if (info->global->kind != kind || !info->init) continue;
        bool takes_thread = clike_takes_thread(p, info->init->func);
        clike_line(p, "%s%s(%s);", takes_thread && maybe_none ? "if (thread) " : "",
                   clike_func_name(p, info->init->func), takes_thread ? thread : "");
    }
}

void clike_print_start(Printer *p, const Start *start) {
    const char *owner = start->owner ? start->owner : "";
    if (!clike_has_globals(p, start->kind)) return;
    text_printf(&p->prototypes, "%s;\n", start->head);
    clike_line(p, "%s {", start->head);
    p->indent++;
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (global->kind != start->kind) continue;
        bool is_static = global->kind == GLOBAL_static;
        const char *name = is_static ? clike_static_place(p, global) : clike_global_name(p, global);
        name = clike_format(p, "%s%s", owner, name);
        clike_line(p, "%s%s%s, sizeof %s);", start->clear ? start->clear : "memset(&", name,
                   start->clear ? "" : ", 0", name);
    }
    if (start->end) clike_line(p, "%s", start->end);
    else clike_inits(p, start->kind, start->thread);
    p->indent--;
    clike_line(p, "}\n");
}

void clike_declare_globals(Printer *p) {
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (global->kind == GLOBAL_uniform) p->dialect->declare_uniform(p, global);
    }
}

void clike_find_init(Printer *p) { p->has_init = has_computed(p); }

void clike_globals(Printer *p) {
    p->out = &p->functions;
    p->dialect->start(p);
    for (int i = 0; i < p->reached.globals.count; i++) print_global(p, p->reached.globals.at[i]);
}
