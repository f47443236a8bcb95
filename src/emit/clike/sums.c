/* Sums that a group of threads keeps until it ends (emit/sums.c finds them), row by row (emit/together.c). */
#include "emit/clike/clike.h"

static void add_terms(Printer *p, Text *values, const SumTerms *terms) {
    for (int i = 0; i < terms->count; i++)
        text_printf(values, "%s%s", i ? " + " : "",
                    clike_in(p, clike_operand(p, terms->at[i], 1), LEVEL_sum));
}

static void print_row(Printer *p, const SumRow *row) {
    Text values = {.arena = &p->arena};
    for (int i = 0; i < row->count; i++) {
        if (i) text_add(&values, STR(", "));
        add_terms(p, &values, &row->terms[i]);
    }
    const char *data = clike_in(p, clike_operand(p, row->access, 0), LEVEL_primary);
    clike_line(p, "%s<%d, %s>(%s.data, %s.count, sizeof *%s.data, %s, %lld, %lld, %lld, {%s});",
               clike_helper(p, "slope_group_sums"), row->count, row->varies ? "true" : "false", data, data,
               data, clike_operand(p, row->access, 1).text, (long long)row->step, (long long)row->offset,
               (long long)row->distance, values.at);
}

bool clike_sum(Printer *p, const Inst *inst) {
    SumRows rows;
    if (!emit_sums_together(&p->arena, &p->at->sums, inst, &rows)) return false;
    for (int i = 0; i < rows.count; i++) print_row(p, &rows.at[i]);
    return true;
}

/* ---- addresses that nobody needs */

typedef struct Addresses {
    Printer *p;
    VEC(const Inst *) all;
} Addresses;

static void note_inst(void *user, Inst *inst) {
    Addresses *addresses = user;
    if (op_has(inst->op, OP_PART) || inst->op == OP_atomic)
        vec_push(&addresses->p->arena, &addresses->all, inst);
}

void clike_find_summed(Printer *p) {
    Addresses addresses = {.p = p};
    p->at->sums = (SumsTogether){.sums = &p->sums, .uses = p->at->uses};
    if (!p->sums.any) return;
    p->at->summed = arena_array(&p->arena, int, p->at->func->nvals + 1);
    region_walk(p->at->func->body, note_inst, &addresses);
    for (int i = addresses.all.count - 1; i >= 0; i--) {
        const Inst *inst = addresses.all.at[i];
        const Val *address = ir_resolve(inst->args[0]);
        if (val_is_const(address)) continue;
        bool counts =
            inst->op == OP_atomic ? emit_sum_waits(&p->at->sums, inst) : clike_is_summed(p, inst->results[0]);
        p->at->summed[address->id] += counts;
    }
}

bool clike_is_summed(const Printer *p, const Val *address) {
    const FuncState *at = p->at;
    return at->summed && at->uses[address->id] > 0 && at->summed[address->id] == at->uses[address->id];
}
