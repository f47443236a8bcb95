/* Whole objects: copies, also between memory of different layout rules, and the sum of differentials. */
#include "emit/interp/code.h"

/* A part of an object in two places. */
typedef struct Pair {
    char *to;
    const char *from;
    LayoutRules to_rules, from_rules;
} Pair;

typedef void (*OnPart)(const Type *type, Pair pair);

static Pair part_at(Pair pair, int64_t to, int64_t from) {
    pair.to += to;
    pair.from += from;
    return pair;
}

static void for_parts(const Type *type, Pair pair, OnPart on_part) {
    if (type->kind == TYPE_array) {
        int64_t to = type_element_stride(type, pair.to_rules),
                from = type_element_stride(type, pair.from_rules);
        for (int64_t i = 0; i < type_length(type); i++)
            for_parts(type->args[0], part_at(pair, i * to, i * from), on_part);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            int64_t to = type_field_offset(type, i, pair.to_rules),
                    from = type_field_offset(type, i, pair.from_rules);
            for_parts(type_record(type)->fields[i].type, part_at(pair, to, from), on_part);
        }
    } else {
        on_part(type, pair);
    }
}

static void copy_part(const Type *type, Pair pair) {
    Slot value[interp_slots(type)];
    interp_load_value(type, pair.from_rules, pair.from, value);
    interp_store_value(type, pair.to_rules, pair.to, value);
}

static void add_part(const Type *type, Pair pair) {
    const Type *element = type_element(type);
    if (!type_is_float(element)) return; /* has no differential */
    Slot old[interp_slots(type)], more[interp_slots(type)];
    interp_load_value(type, pair.to_rules, pair.to, old);
    interp_load_value(type, pair.from_rules, pair.from, more);
    for (int i = 0; i < type_count(type); i++)
        old[i] = interp_compute(OP_add, element, element, old[i], more[i], old[i]);
    interp_store_value(type, pair.to_rules, pair.to, old);
}

/* ---- steps: a is where to, b where from; `more` is the size of what is there */

static const Step *copy_bytes(Slot *r, const Step *s) {
    char *to = r[s->a].address;
    const char *from = r[s->b].address;
    if (to && from) memmove(to, from, (size_t)s->more);
    else if (to) memset(to, 0, (size_t)s->more);
    return s + 1;
}

static Pair pair_of(const Slot *r, const Step *s) {
    return (Pair){r[s->a].address, r[s->b].address, (LayoutRules)(s->what & 15), (LayoutRules)(s->what >> 4)};
}

static const Step *copy_parts(Slot *r, const Step *s) {
    Pair pair = pair_of(r, s);
    if (pair.to && pair.from) for_parts(s->type, pair, copy_part);
    else if (pair.to) memset(pair.to, 0, (size_t)s->more);
    return s + 1;
}

static const Step *add_parts(Slot *r, const Step *s) {
    Pair pair = pair_of(r, s);
    if (pair.to && pair.from) for_parts(s->type, pair, add_part);
    return s + 1;
}

static const Step *clear(Slot *r, const Step *s) {
    if (r[s->a].address) memset(r[s->a].address, 0, (size_t)s->more);
    return s + 1;
}

/* ---- translation */

/* Layouts of both are made here, since they are not while several threads run. */
static void add_step(Translator *t, StepFunction *run, const Type *type, Known to, Known from) {
    Step *step = interp_step(t, run, 0, to.slot, from.slot);
    type_layout(type, (LayoutRules)from.rules);
    step->more = type_layout(type, (LayoutRules)to.rules).size;
    step->type = type;
    step->what = to.rules | from.rules << 4;
}

void interp_copy(Translator *t, const Type *type, Known to, Known from) {
    add_step(t, to.rules == from.rules ? copy_bytes : copy_parts, type, to, from);
}

void interp_zero(Translator *t, const Type *type, Known address) {
    add_step(t, clear, type, address, address);
}

void interp_accumulate(Translator *t, const Type *type, Known to, Known from) {
    add_step(t, add_parts, type, to, from);
}
