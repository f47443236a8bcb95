/* Elements that the threads of a warp write together (emit/whole.c):
 *
 *     if (i < count) { data[i].a = x; data[i].b = y; }      T element; element.a = x; element.b = y; slope_put_whole(data, count, i, element); */
#include "emit/clike/clike.h"

bool clike_take_shared(Printer *p, int64_t bytes) {
    return emit_take_shared(&p->reached, &p->sums, &p->shared_bytes, bytes);
}

bool clike_begin_whole(Printer *p, const Inst *store) {
    FuncState *at = p->at;
    WholeElement whole;
    if (!p->dialect->put_whole || at->func->group_size[0] == 0 || at->whole.access) return false;
    if (!emit_find_whole(store, &whole)) return false;
    const Val *element = whole.access->results[0];
    if (!at->values[element->id].guarded || !clike_take_shared(p, emit_whole_bytes(at->func, &whole)))
        return false;
    at->whole.access = whole.access;
    at->whole.last = whole.last;
    at->whole.name = clike_local(p, "element");
    clike_line(p, "%s;", clike_declare(p, element->type->args[0], at->whole.name));
    return true;
}

void clike_end_whole(Printer *p) {
    const Inst *access = p->at->whole.access;
    const char *data = clike_in(p, clike_operand(p, access, 0), LEVEL_primary);
    clike_line(p, "%s<%d>(%s.data, %s.count, %s, %s);", clike_helper(p, p->dialect->put_whole),
               emit_warps(p->at->func), data, data, clike_operand(p, access, 1).text, p->at->whole.name);
    p->at->whole.access = NULL;
}
