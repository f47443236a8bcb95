/* Tensors that the program makes. A call from outside frees those that it has made when it ends, but for what
 * it returns, which is the caller's; a kernel does so after each group. Those that constants hold stay. */
#include "emit/clike/clike.h"

/* The function that makes a buffer of so many elements. */
static const char *maker(Printer *p, const Type *buffer) {
    const char *type = clike_type(p, buffer), *name = clike_format(p, "%s_new", type);
    if (!clike_begin_helper(p, name)) return name;
    const char *make = clike_helper(p, "slope_make");
    text_printf(&p->helpers,
                "static inline %s %s(uint32_t count) {\n    %s b;\n"
                "    b.data = (%s)%s((uint64_t)count * sizeof *b.data);\n    b.count = count;\n"
                "    return b;\n}\n",
                type, name, type, clike_declare_data(p, buffer, ""), make);
    return name;
}

void clike_make_buffer(Printer *p, const Inst *inst) {
    if (!p->dialect->has_heap) clike_fail(p, inst->loc, "this target does not make tensors; pass them in");
    const char *count = clike_operand(p, inst, 0).text;
    clike_set_statement(p, inst, clike_format(p, "%s(%s)", maker(p, inst->results[0]->type), count));
}

bool clike_makes(const Printer *p, const Func *func) { return (clike_needs(p, func) & NEEDS_MADE) != 0; }

void clike_name_made(Printer *p, const Func *func, Map *taken) {
    if (!clike_makes(p, func)) return;
    clike_unique(p, taken, "before");
    clike_unique(p, taken, "returned");
}

void clike_begin_made(Printer *p, const Func *func) {
    if (!clike_makes(p, func)) return;
    clike_helper(p, "slope_made");
    clike_line(p, "const SlopeMade *before = slope_made;");
}

void clike_end_made(Printer *p, const Func *func) {
    if (clike_makes(p, func)) clike_line(p, "%s(before);", clike_helper(p, "slope_free_made"));
}

static bool may_return(const Func *func) {
    bool may = false;
    for (int i = 0; i < func->nresults; i++) may |= reach_may_hold_made(func->results[i]);
    return may;
}

void clike_return_made(Printer *p, const Func *func, const char *const *names) {
    if (may_return(func))
        clike_line(p, "%s(&returned, sizeof returned);", clike_helper(p, "slope_return_made"));
    for (int i = 0; i < func->nparams; i++)
        if (reach_may_return_made(&func->params[i]))
            clike_line(p, "%s(%s, sizeof(%s));", clike_helper(p, "slope_return_made"), names[i],
                       clike_type(p, func->params[i].type));
}

void clike_keep_made(Printer *p, GlobalKind kind) {
    bool any = false;
    for (int i = 0; i < p->reached.globals.count; i++) {
        const ReachedGlobal *info = p->reached.globals.at[i];
        any |= info->global->kind == kind && info->init && clike_makes(p, info->init->func);
    }
    if (any) clike_line(p, "%s();", clike_helper(p, "slope_keep_made"));
}
