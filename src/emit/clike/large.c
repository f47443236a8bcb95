/* Variables that are too large for a stack: each has memory of its own, from where its function begins to
 * where it returns, so that compilers see that no two are the same. In a kernel that is cut into phases,
 * threads have it one after the other, but for what they keep from one phase to the next. */
#include "emit/clike/clike.h"

static void note_large(void *user, Inst *inst) {
    Printer *p = user;
    FuncState *at = p->at;
    if (inst->op != OP_var || !reach_is_large(inst->type)) return;
    int id = (int)inst->results[0]->id;
    if (at->uses[id] > 0 && !(at->crosses && at->crosses[id])) vec_push(&p->arena, &at->large, inst);
}

void clike_take_large(Printer *p) {
    FuncState *at = p->at;
    if (!p->dialect->has_heap) return;
    region_walk(at->func->body, note_large, p);
    for (int i = 0; i < at->large.count; i++) {
        const Inst *var = at->large.at[i];
        const Type *pointer = type_pointer(p->module->types, var->type);
        const char *name = clike_name_value(p, var->results[0]);
        clike_line(p, "%s = (%s)%s(sizeof(%s));", clike_declare(p, pointer, name), clike_type(p, pointer),
                   clike_helper(p, "slope_take_large"), clike_type(p, var->type));
        at->values[var->results[0]->id] = clike_value(name, LEVEL_primary);
    }
}

bool clike_begin_large(Printer *p, const Inst *var) {
    bool is_large = false;
    for (int i = 0; i < p->at->large.count; i++) is_large |= p->at->large.at[i] == var;
    if (is_large && !inst_has(var, INST_RAW))
        clike_line(p, "memset(%s, 0, sizeof(%s));", p->at->values[var->results[0]->id].text,
                   clike_type(p, var->type));
    return is_large;
}

void clike_give_large(Printer *p) {
    for (int i = 0; i < p->at->large.count; i++)
        clike_line(p, "free(%s);", p->at->values[p->at->large.at[i]->results[0]->id].text);
}
