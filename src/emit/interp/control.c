/* Control flow: from nested regions to jumps. A loop has one set of slots for the values that it carries: its
 * regions see them there, and its results are what they hold at the end. */
#include "emit/interp/code.h"

/* ---- steps */

static const Step *move(Slot *r, const Step *s) {
    r[s->to] = r[s->a];
    return s + 1;
}

static const Step *move_lanes(Slot *r, const Step *s) {
    memcpy(&r[s->to], &r[s->a], sizeof(Slot) * (size_t)s->lanes);
    return s + 1;
}

static const Step *jump(Slot *r, const Step *s) {
    (void)r;
    return s->target;
}

/* To the next round: everything that goes on and on comes through here. */
static const Step *jump_back(Slot *r, const Step *s) {
    look_at_stop(context_of(r));
    return s->target;
}

static const Step *jump_unless(Slot *r, const Step *s) { return r[s->a].integer ? s + 1 : s->target; }

typedef struct SwitchRow {
    int64_t value;
    const Step *target;
} SwitchRow;

typedef struct SwitchTable {
    int count;
    SwitchRow rows[]; /* the last is the default */
} SwitchTable;

static const Step *jump_by_value(Slot *r, const Step *s) {
    const SwitchTable *table = s->data;
    int64_t value = r[s->a].integer;
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].value == value) return table->rows[i].target;
    return table->rows[table->count].target;
}

const Step *interp_unreachable(Slot *r, const Step *s) {
    (void)s;
    interp_end(r, INTERP_unreachable, "the program came to a place that is never reached");
}

/* ---- labels */

static Label *new_label(Translator *t) { return arena_new(t->scratch, Label); }

/* A jump to what follows it anyway is taken out, unless somebody else goes there already. */
static void drop_needless_jump(Translator *t, const Label *label) {
    int last = t->steps.count - 1;
    if (t->labelled > last || t->jumps.count == 0) return;
    const Jump *there = &vec_last(&t->jumps);
    if (there->where || there->step != last || there->label != label || t->steps.at[last].run != jump) return;
    t->steps.count--;
    t->jumps.count--;
}

static void put_label(Translator *t, Label *label) {
    drop_needless_jump(t, label);
    label->at = t->labelled = t->steps.count;
    t->block = NULL;
}

static void add_jump(Translator *t, StepFunction *run, uint32_t condition, const Label *label) {
    interp_step(t, run, 0, condition, 0);
    vec_push(t->scratch, &t->jumps, ((Jump){.step = t->steps.count - 1, .label = label}));
}

/* ---- values that go along */

static bool overlap(uint32_t a, uint32_t a_count, uint32_t b, uint32_t b_count) {
    return a < b + b_count && b < a + a_count;
}

/* Does a copy overwrite what a later one takes? */
static bool is_in_the_way(const Copies *copies) {
    for (int i = 0; i < copies->count; i++)
        for (int k = i + 1; k < copies->count; k++)
            if (overlap(copies->at[i].to, copies->at[i].count, copies->at[k].from, copies->at[k].count))
                return true;
    return false;
}

static void move_slots(Translator *t, Copy copy) {
    if (copy.to == copy.from) return;
    interp_step(t, copy.count == 1 ? move : move_lanes, copy.to, copy.from, 0)->lanes = (int)copy.count;
}

void interp_moves(Translator *t, const Copies *copies) {
    uint32_t next = t->next;
    bool by_way = is_in_the_way(copies);
    VEC(Copy) second = {0};
    for (int i = 0; i < copies->count; i++) {
        Copy copy = copies->at[i];
        if (by_way) {
            uint32_t between = interp_new_slots(t, (int)copy.count);
            vec_push(t->scratch, &second, ((Copy){copy.to, between, copy.count}));
            copy.to = between;
        }
        move_slots(t, copy);
    }
    for (int i = 0; i < second.count; i++) move_slots(t, second.at[i]);
    t->next = next;
}

/* The operands of an instruction go to slots that follow each other. */
static void move_operands(Translator *t, const Inst *inst, uint32_t to) {
    Copies copies = {0};
    uint32_t next = t->next;
    for (int i = 0; i < inst->nargs; i++) {
        uint32_t count = (uint32_t)interp_slots(inst->args[i]->type);
        vec_push(t->scratch, &copies, ((Copy){to, interp_use(t, inst, i), count}));
        to += count;
    }
    interp_moves(t, &copies);
    t->next = next;
}

static uint32_t slots_for(Translator *t, Val *const *values, int count) {
    uint32_t first = t->next;
    for (int i = 0; i < count; i++)
        interp_set(t, values[i], (Known){.slot = interp_new_slots(t, interp_slots(values[i]->type))});
    return first;
}

static void see_at(Translator *t, Val *const *values, int count, uint32_t slot) {
    for (int i = 0; i < count; i++) {
        interp_set(t, values[i], (Known){.slot = slot});
        slot += (uint32_t)interp_slots(values[i]->type);
    }
}

/* ---- if, switch, block */

static void within(Translator *t, const Region *region, Around around) {
    around.up = t->around;
    t->around = &around;
    interp_region(t, region);
    t->around = around.up;
}

static void arm(Translator *t, const Inst *inst, int region, Label *end, uint32_t results) {
    within(t, inst->regions[region],
           (Around){.owner = inst, .on_yield = end, .on_break = end, .yielded = results, .broken = results});
}

static void choose(Translator *t, const Inst *inst) {
    Label *otherwise = new_label(t), *end = new_label(t);
    uint32_t results = slots_for(t, inst->results, inst->nresults);
    add_jump(t, jump_unless, interp_use(t, inst, 0), otherwise);
    arm(t, inst, 0, end, results);
    put_label(t, otherwise);
    arm(t, inst, 1, end, results);
    put_label(t, end);
}

static int count_values(const Inst *inst) {
    int count = 0;
    for (int i = 0; i < inst->ncases; i++) count += inst->cases[i].nvalues;
    return count;
}

static void add_row(Translator *t, SwitchTable *table, int64_t value, const Label *label) {
    SwitchRow *row = &table->rows[table->count++];
    row->value = value;
    vec_push(t->scratch, &t->jumps, ((Jump){.where = &row->target, .label = label}));
}

static void choose_by_value(Translator *t, const Inst *inst) {
    const Type *type = inst->args[0]->type;
    size_t rows = (size_t)count_values(inst) + 1;
    SwitchTable *table = arena_take(t->arena, sizeof *table + rows * sizeof *table->rows);
    Label *end = new_label(t);
    uint32_t results = slots_for(t, inst->results, inst->nresults);
    interp_step(t, jump_by_value, 0, interp_use(t, inst, 0), 0)->data = table;
    for (int i = 0; i <= inst->ncases; i++) {
        Label *begin = new_label(t);
        put_label(t, begin);
        for (int k = 0; i < inst->ncases && k < inst->cases[i].nvalues; k++)
            add_row(t, table, number_wrap(inst->cases[i].values[k], type), begin);
        if (i == inst->ncases) add_row(t, table, 0, begin);
        arm(t, inst, i, end, results);
    }
    table->count--; /* the default is none of them */
    put_label(t, end);
}

static void simple_block(Translator *t, const Inst *inst) {
    Label *end = new_label(t);
    arm(t, inst, 0, end, slots_for(t, inst->results, inst->nresults));
    put_label(t, end);
}

/* ---- loop */

static void loop(Translator *t, const Inst *inst) {
    const Region *condition = inst->regions[0], *body = inst->regions[1];
    const Region *step = inst->nregions > 2 ? inst->regions[2] : NULL;
    Label *begin = new_label(t), *next = new_label(t), *end = new_label(t);
    uint32_t carried = slots_for(t, inst->results, inst->nresults);
    move_operands(t, inst, carried);
    put_label(t, begin);
    see_at(t, condition->params, condition->nparams, carried);
    see_at(t, body->params, body->nparams, carried);
    within(t, condition, (Around){.owner = inst, .on_break = end, .broken = carried, .is_condition = true});
    within(t, body,
           (Around){.owner = inst,
                    .on_yield = next,
                    .on_break = end,
                    .on_continue = next,
                    .yielded = carried,
                    .broken = carried});
    put_label(t, next);
    if (step) {
        Label *again = new_label(t);
        see_at(t, step->params, step->nparams, carried);
        within(t, step,
               (Around){
                   .owner = inst, .on_yield = again, .on_break = end, .yielded = carried, .broken = carried});
        put_label(t, again);
    }
    add_jump(t, jump_back, 0, begin);
    put_label(t, end);
}

/* ---- ends */

static Around *around_of(Translator *t, const Inst *inst) {
    Around *around = t->around;
    while (around && around->owner != inst->target) around = around->up;
    if (!around) interp_fail(t, inst->loc, "a jump leaves a statement that is not around it");
    return around;
}

static void leave(Translator *t, const Inst *inst, uint32_t to, const Label *label) {
    move_operands(t, inst, to);
    add_jump(t, jump, 0, label);
}

static void yield(Translator *t, const Inst *inst) {
    const Around *around = t->around;
    if (around->is_condition) add_jump(t, jump_unless, interp_use(t, inst, 0), around->on_break);
    else leave(t, inst, around->yielded, around->on_yield);
}

bool interp_control(Translator *t, const Inst *inst) {
    const Around *around;
    switch ((Op)inst->op) {
    case OP_if: choose(t, inst); return true;
    case OP_switch: choose_by_value(t, inst); return true;
    case OP_loop: loop(t, inst); return true;
    case OP_block: simple_block(t, inst); return true;
    case OP_yield: yield(t, inst); return true;
    case OP_break:
        around = around_of(t, inst);
        leave(t, inst, around->broken, around->on_break);
        return true;
    case OP_continue:
        around = around_of(t, inst);
        leave(t, inst, around->yielded, around->on_continue);
        return true;
    case OP_unreachable: interp_step(t, interp_unreachable, 0, 0, 0); return true;
    default: return false;
    }
}
