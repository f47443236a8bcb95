/* Buffers and atomic operations; and what is said of indices out of range, if somebody wants to know. */
#include "emit/interp/code.h"

/* ---- addresses: a is the buffer, its data and its count; `number` the size of an element */

static const Step *element(Slot *r, const Step *s) {
    uint64_t index = r[s->b].bits, count = r[s->a + 1].bits;
    char *data = r[s->a].address;
    r[s->to].address = index < count && data ? data + index * (uint64_t)s->number : NULL;
    return s + 1;
}

static const Step *element_unchecked(Slot *r, const Step *s) {
    r[s->to].address = (char *)((uintptr_t)r[s->a].address + r[s->b].bits * (uint64_t)s->number);
    return s + 1;
}

/* As the compiler has found out: if it is wrong, an access does not go unnoticed. */
static const Step *element_inside(Slot *r, const Step *s) {
    uint64_t index = r[s->b].bits, count = r[s->a + 1].bits;
    r[s->to].address = index < count ? r[s->a].address + index * (uint64_t)s->number : interp_nowhere();
    return s + 1;
}

/* `more` is the size of what is there: all of it must be in range. */
static const Step *bytes(Slot *r, const Step *s) {
    uint64_t offset = r[s->b].bits, count = r[s->a + 1].bits, last = s->more > 0 ? (uint64_t)s->more - 1 : 0;
    bool inside = count > last && offset < count - last && r[s->a].address;
    r[s->to].address = inside ? r[s->a].address + offset : NULL;
    return s + 1;
}

static const Step *length(Slot *r, const Step *s) {
    r[s->to].bits = r[s->a + 1].bits < UINT32_MAX ? r[s->a + 1].bits : UINT32_MAX;
    return s + 1;
}

static const Step *apart(Slot *r, const Step *s) {
    uint64_t a = (uint64_t)(uintptr_t)r[s->a].address, b = (uint64_t)(uintptr_t)r[s->b].address;
    uint64_t a_size = r[s->a + 1].bits * (uint64_t)s->number, b_size = r[s->b + 1].bits * (uint64_t)s->more;
    r[s->to].bits = a + a_size <= b || b + b_size <= a;
    return s + 1;
}

static const Step *first_element(Slot *r, const Step *s) {
    r[s->to].address = r[s->a].address;
    return s + 1;
}

static const Step *counter(Slot *r, const Step *s) {
    r[s->to].address = r[s->a].address ? r[s->a].address - RT_BUFFER_HEADER : NULL;
    return s + 1;
}

static const Step *new_buffer(Slot *r, const Step *s) {
    uint64_t count = r[s->a].bits;
    r[s->to].address = rt_made_take(context_of(r), (int64_t)(count * (uint64_t)s->number));
    r[s->to + 1].bits = count;
    return s + 1;
}

static bool is_checked(const Translator *t, const Inst *inst) {
    return !inst_has(inst, INST_UNCHECKED) && !t->options->unchecked;
}

static void element_address(Translator *t, const Inst *inst) {
    Known known = interp_known(t, inst, 0);
    const Type *type = inst->results[0]->type->args[0];
    bool of_bytes = inst->op == OP_buffer_bytes;
    uint32_t index = interp_use(t, inst, 1), to = interp_new_slots(t, 1);
    known.guarded = is_checked(t, inst);
    StepFunction *run = t->options->unchecked ? element_unchecked
                        : !known.guarded      ? element_inside
                        : of_bytes            ? bytes
                                              : element;
    Step *step = interp_step(t, run, to, known.slot, index);
    step->number = of_bytes ? 1 : type_layout(type, LAYOUT_scalar).stride;
    step->more = type_layout(type, LAYOUT_scalar).size;
    known.slot = to;
    interp_set(t, inst->results[0], known);
}

static int64_t stride_of(const Inst *inst, int operand) {
    const Type *type = inst->args[operand]->type;
    if (type->number == BUFFER_bytes || type->number == BUFFER_rw_bytes) return 1;
    return type_layout(type->args[0], LAYOUT_scalar).stride;
}

static void compare_buffers(Translator *t, const Inst *inst) {
    uint32_t a = interp_use(t, inst, 0), b = interp_use(t, inst, 1);
    Step *step = interp_step(t, apart, interp_result(t, inst), a, b);
    step->number = stride_of(inst, 0);
    step->more = stride_of(inst, 1);
}

static void counter_address(Translator *t, const Inst *inst) {
    uint32_t buffer = interp_use(t, inst, 0);
    Known known = {.slot = interp_new_slots(t, 1), .guarded = true};
    interp_step(t, counter, known.slot, buffer, 0);
    interp_set(t, inst->results[0], known);
}

static Step *simple(Translator *t, const Inst *inst, StepFunction *run) {
    uint32_t operand = interp_use(t, inst, 0);
    return interp_step(t, run, interp_result(t, inst), operand, 0);
}

/* ---- atomics: whatever it is, by comparing and exchanging until nobody came between */

#define EXCHANGE(bits)                                                                                       \
    case bits / 8: {                                                                                         \
        uint##bits##_t found = (uint##bits##_t) * expected;                                                  \
        bool done =                                                                                          \
            __atomic_compare_exchange_n((uint##bits##_t *)(void *)at, &found, (uint##bits##_t)wanted, false, \
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                 \
        *expected = found;                                                                                   \
        return done;                                                                                         \
    }

/* False: there was something else, which is now expected. */
static bool exchange(char *at, int size, uint64_t *expected, uint64_t wanted) {
    switch (size) {
        EXCHANGE(8)
        EXCHANGE(16)
        EXCHANGE(32)
    default: EXCHANGE(64)
    }
}

static Slot changed(AtomicKind kind, const Type *type, Slot old, Slot operand) {
    static const Op ops[] = {[ATOMIC_add] = OP_add, [ATOMIC_min] = OP_min, [ATOMIC_max] = OP_max,
                             [ATOMIC_and] = OP_and, [ATOMIC_or] = OP_or,   [ATOMIC_xor] = OP_xor};
    return kind == ATOMIC_exchange ? operand : interp_compute(ops[kind], type, type, old, operand, old);
}

static const Step *change(Slot *r, const Step *s) {
    char *at = r[s->a].address;
    int size = (int)s->number;
    Slot old = {0}, operand = r[s->b];
    if (at) {
        uint64_t raw = interp_load(s->type, at, size).bits;
        do old = interp_load(s->type, (const char *)&raw, size);
        while (!exchange(at, size, &raw, changed((AtomicKind)s->what, s->type, old, operand).bits));
    }
    r[s->to] = old;
    return s + 1;
}

/* Compares bits. */
static const Step *compare_and_swap(Slot *r, const Step *s) {
    char *at = r[s->a].address;
    uint64_t raw = r[s->b].bits;
    if (at) exchange(at, (int)s->number, &raw, r[s->c].bits);
    r[s->to] = at ? interp_load(s->type, (const char *)&raw, (int)s->number) : (Slot){0};
    return s + 1;
}

static void atomic(Translator *t, const Inst *inst) {
    Known address = interp_known(t, inst, 0);
    uint32_t b = interp_use(t, inst, 1), c = inst->nargs > 2 ? interp_use(t, inst, 2) : 0;
    bool swaps = inst->op == OP_atomic_cas;
    Step *step = interp_step(t, swaps ? compare_and_swap : change, interp_result(t, inst), address.slot, b);
    step->c = c;
    step->what = inst->index;
    step->type = inst->results[0]->type;
    step->number = type_layout(step->type, LAYOUT_scalar).size;
}

bool interp_buffer(Translator *t, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_buffer_elem:
    case OP_buffer_bytes: element_address(t, inst); return true;
    case OP_buffer_counter: counter_address(t, inst); return true;
    case OP_buffers_apart: compare_buffers(t, inst); return true;
    case OP_buffer_length: simple(t, inst, length); return true;
    case OP_buffer_pointer: simple(t, inst, first_element); return true;
    case OP_buffer_new:
        simple(t, inst, new_buffer)->number =
            type_layout(inst->results[0]->type->args[0], LAYOUT_scalar).stride;
        return true;
    case OP_atomic:
    case OP_atomic_cas: atomic(t, inst); return true;
    default: return false;
    }
}

/* ---- indices out of range, told */

const RtSite *interp_site(Translator *t, Loc loc) {
    RtSite *site = map_get(&t->sites, (uint64_t)loc + 1);
    if (site) return site;
    site = arena_new(t->arena, RtSite);
    site->loc = loc;
    map_put(t->arena, &t->sites, (uint64_t)loc + 1, site);
    return site;
}

static const Step *watch_address(Slot *r, const Step *s) {
    if (!r[s->a].address) rt_outside(context_of(r), (RtSite *)(uintptr_t)s->data);
    return s + 1;
}

void interp_watch(Translator *t, const Inst *inst) {
    if (!t->options->watch || inst->op == OP_field || inst->op == OP_elem) return; /* no access yet */
    for (int i = 0; i < inst->nargs; i++) {
        Known known = interp_known(t, inst, i);
        if (known.guarded) interp_step(t, watch_address, 0, known.slot, 0)->data = interp_site(t, inst->loc);
    }
}
