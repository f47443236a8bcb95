/* Nests of loops that are functions of their own (opt/outline.c): their buffers are apart. Only of a pointer
 * that is a parameter can C be told so; it comes with the number of elements, and they are a buffer again in
 * the function.
 *
 *     static void f_loops(float *restrict to_at, uint64_t to_count, ...) {
 *         const Buffer_float to = {to_at, to_count}; */
#include "emit/clike/clike.h"

/* C++ has names with two underscores for itself. */
static const char *longer(Printer *p, const char *name, const char *end) {
    bool is_open = name[strlen(name) - 1] == '_';
    return clike_format(p, "%s%s%s", name, is_open ? "" : "_", end);
}

static const char *data_name(Printer *p, const char *name) { return longer(p, name, "at"); }

static const char *count_name(Printer *p, const char *name) { return longer(p, name, "count"); }

static bool take(Printer *p, const char *name) {
    return strcmp(clike_unique(p, &p->at->names, name), name) == 0;
}

const char *clike_name_apart(Printer *p, const char *wish) {
    const char *name = clike_local(p, wish);
    while (!take(p, data_name(p, name)) || !take(p, count_name(p, name))) name = clike_local(p, wish);
    return name;
}

const char *clike_declare_apart(Printer *p, const Param *param, const char *name) {
    const char *alone = clike_format(p, "%s %s", clike_helper(p, "SLOPE_RESTRICT"), data_name(p, name));
    return clike_format(p, "%s, uint64_t %s", clike_declare_data(p, param->type, alone), count_name(p, name));
}

const char *clike_parts_of_buffer(Printer *p, Value buffer) {
    const char *text = clike_in(p, buffer, LEVEL_primary);
    return clike_format(p, "%s.data, %s.count", text, text);
}

void clike_join_buffer(Printer *p, const Param *param, const char *name) {
    take(p, data_name(p, name));
    take(p, count_name(p, name));
    clike_line(p, "const %s = {%s, %s};", clike_declare_value(p, param->type, name), data_name(p, name),
               count_name(p, name));
}
