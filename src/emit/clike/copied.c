/* Elements of buffers that the groups of a kernel copy when they begin (opt/copies.c chooses them).
 *
 *     alignas(16) static __shared__ float weights_copy[39];
 *     slope_copy_elements(weights_copy, 39u, weights.data, weights.count);      at the start, before any thread can return
 *     ... weights_copy[i + 7] ... */
#include "emit/clike/clike.h"

void clike_declare_copies(Printer *p, const Func *func) {
    for (int i = 0; i < func->ncopies && p->dialect->copy_elements; i++) {
        const GroupCopy *copy = &func->copies[i];
        const Type *element = copy->owner->type->args[0];
        const char *wish = clike_format(p, "%s_copy", clike_global_name(p, copy->owner));
        const char *name = clike_unique(p, &p->names, wish);
        map_put(&p->arena, &p->copies, PTR_KEY(copy), (void *)(uintptr_t)name);
        text_printf(&p->globals, "alignas(16) %s%s;\n", p->dialect->shared,
                    clike_declare(p, element, clike_format(p, "%s[%lld]", name, (long long)copy->elements)));
    }
    if (p->dialect->copy_elements) p->shared_bytes += emit_copied_bytes(func);
}

const char *clike_copied(const Printer *p, const Inst *access) {
    const Func *func = p->at->func;
    if (!inst_has(access, INST_COPIED)) return NULL;
    const Global *owner = ir_owner(ir_resolve(access->args[0]));
    for (int i = 0; i < func->ncopies; i++)
        if (func->copies[i].owner == owner) return map_get(&p->copies, PTR_KEY(&func->copies[i]));
    return NULL;
}

bool clike_make_copies(Printer *p, const Func *func) {
    for (int i = 0; i < func->ncopies; i++) {
        const GroupCopy *copy = &func->copies[i];
        const char *buffer = clike_global_name(p, copy->owner), *name = map_get(&p->copies, PTR_KEY(copy));
        clike_line(p, "%s(%s, %lldu, %s.data, %s.count);", clike_helper(p, p->dialect->copy_elements), name,
                   (long long)copy->elements, buffer, buffer);
    }
    return func->ncopies > 0;
}
