/* Whole objects. */
#include "emit/interp/code.h"

/* ---- steps: a is where to, b where from; `more` is the size of what is there */

static const Step *copy_bytes(Slot *r, const Step *s) {
    char *to = r[s->a].address;
    const char *from = r[s->b].address;
    if (to && from) memmove(to, from, (size_t)s->more);
    else if (to) memset(to, 0, (size_t)s->more);
    return s + 1;
}

static const Step *clear(Slot *r, const Step *s) {
    if (r[s->a].address) memset(r[s->a].address, 0, (size_t)s->more);
    return s + 1;
}

/* ---- translation */

static void add_step(Translator *t, StepFunction *run, const Type *type, Known to, Known from) {
    Step *step = interp_step(t, run, 0, to.slot, from.slot);
    step->more = type_layout(type, LAYOUT_scalar).size;
}

void interp_copy(Translator *t, const Type *type, Known to, Known from) {
    add_step(t, copy_bytes, type, to, from);
}

void interp_zero(Translator *t, const Type *type, Known address) {
    add_step(t, clear, type, address, address);
}
