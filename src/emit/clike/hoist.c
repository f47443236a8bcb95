/* Range checks out of loops. An innermost loop that counts, and whose accesses have indices that are linear in the counter, is printed twice:
 * before it, the first and the last index of every such access are tested; if all are in range, the copy without these checks
 * runs, which vectorises, otherwise the one with them. (emit/llvm/range.c does the same, and says why it is right.) In the former, indices
 * that might wrap around if they were not tested are computed in 64 bits, so that compilers see that they are linear. */
#include "emit/clike/clike.h"

enum { MOST_ACCESSES = 32, MOST_INSTS = 400, DEPTH = 12 };

typedef struct Search {
    Printer *p;
    const Inst *loop;
    const Val *counter;
    const char *low, *high; /* least and greatest value of the counter in the body ... */
    const char *range;      /* ... and their declaration */
    Inst *accesses[MOST_ACCESSES];
    int naccesses, ninsts;
    InstVec jumps; /* to the next round */
    bool suits, reads_buffers;
    Text test;
} Search;

static const Val *operand(const Inst *inst, int index) { return ir_resolve(inst->args[index]); }

static bool is_word(const Type *type) { return type->kind == TYPE_int || type->kind == TYPE_uint; }

/* ---- what is there */

static int64_t length_of(const Inst *elem) {
    const Type *whole = elem->args[0]->type->args[0];
    return whole->kind == TYPE_array ? type_length(whole) : 0;
}

static bool is_checked(Search *s, const Inst *inst) {
    int64_t known;
    if (inst_has(inst, INST_UNCHECKED) || (inst->op != OP_elem && inst->op != OP_buffer_elem)) return false;
    if (inst->op == OP_buffer_elem) return true;
    return length_of(inst) > 0 && !val_is_int(operand(inst, 1), &known) &&
           !clike_is_index_within(s->p, operand(inst, 1), length_of(inst));
}

static void look_at(void *user, Inst *inst) {
    Search *s = user;
    s->ninsts++;
    if (inst->op == OP_loop || s->ninsts > MOST_INSTS) s->suits = false;
    if (inst->op == OP_continue && inst->target == s->loop) vec_push(&s->p->arena, &s->jumps, inst);
    if (s->naccesses == MOST_ACCESSES || !is_checked(s, inst)) return;
    s->accesses[s->naccesses++] = inst;
    s->reads_buffers |= inst->op == OP_buffer_elem;
}

/* ---- expressions, in 64 bits */

static bool depends(const Search *s, const Val *v) { return inst_contains(s->loop, v); }

/* The value with the counter being that; NULL: it is not linear, or not known before the loop. */
static const char *value_at(Search *s, const Val *v, const char *counter, int depth) {
    int64_t known;
    Printer *p = s->p;
    if (val_is_int(v, &known)) return clike_format(p, "%lldLL", (long long)known);
    if (v == s->counter) return counter;
    if (!type_is_integer(v->type) || type_bits(v->type) < 32 || depth == 0) return NULL;
    if (!depends(s, v)) return clike_format(p, "(int64_t)%s", clike_in(p, p->at->values[v->id], LEVEL_unary));
    if (v->kind != VAL_inst) return NULL;
    const Inst *inst = v->inst;
    if (inst->op == OP_convert || inst->op == OP_bitcast)
        return value_at(s, operand(inst, 0), counter, depth - 1);
    const char *sign = inst->op == OP_add ? "+" : inst->op == OP_sub ? "-" : inst->op == OP_mul ? "*" : NULL;
    if (!sign || (inst->op == OP_mul && depends(s, operand(inst, 0)) && depends(s, operand(inst, 1))))
        return NULL;
    const char *a = value_at(s, operand(inst, 0), counter, depth - 1);
    const char *b = value_at(s, operand(inst, 1), counter, depth - 1);
    return a && b ? clike_format(p, "(%s %s %s)", a, sign, b) : NULL;
}

/* ---- the counter */

static void require(Search *s, const char *condition) {
    text_printf(&s->test, "%s%s", s->test.len ? " && " : "", condition);
}

static bool set_range(Search *s, const LoopTest *test, int64_t step) {
    Printer *p = s->p;
    const char *first = value_at(s, operand(s->loop, test->index), "", DEPTH),
               *limit = value_at(s, test->limit, "", DEPTH);
    if (!first || !limit || depends(s, test->limit)) return false;
    if (!test->or_equal) limit = clike_format(p, "%s %s 1LL", limit, test->up ? "-" : "+");
    s->low = clike_local(p, "least");
    s->high = clike_local(p, "most");
    s->range = clike_format(p, "const int64_t %s = %s, %s = %s;", s->low, test->up ? first : limit, s->high,
                            test->up ? limit : first);
    require(s, clike_format(p, "slope_counts(%s, %s, %lldLL)", s->low, s->high, (long long)step));
    return true;
}

/* The condition of the loop is, or has as one of its parts, a comparison of a counter with something fixed. */
static bool find_counter(Search *s, const Val *condition) {
    LoopTest test;
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and) return find_counter(s, operand(inst, 0)) || find_counter(s, operand(inst, 1));
    if (inst->op == OP_ne || !loop_comparison(s->loop, inst, &test)) return false;
    if (test.limit->type->kind != TYPE_int && test.limit->type->kind != TYPE_int64) return false;
    LoopSteps steps = loop_steps(s->loop, s->jumps.at, s->jumps.count, test.index);
    if (!steps.known || steps.least != steps.greatest || steps.least == 0) return false;
    if ((steps.least > 0) != test.up || steps.least > INT32_MAX || steps.least < INT32_MIN) return false;
    s->counter = s->loop->regions[1]->params[test.index];
    return set_range(s, &test, steps.least);
}

/* ---- accesses */

/* The index in 32 bits, whatever it is converted to. */
static const Val *narrow_index(const Inst *inst) {
    const Val *index = operand(inst, 1);
    bool is_convert = index->kind == VAL_inst && index->inst->op == OP_convert;
    return is_convert && is_word(index->inst->args[0]->type) ? operand(index->inst, 0) : index;
}

static bool require_access(Search *s, const Inst *inst) {
    Printer *p = s->p;
    const Val *index = narrow_index(inst), *whole = operand(inst, 0);
    if (!is_word(index->type) || (inst->op == OP_buffer_elem && depends(s, whole))) return false;
    const char *first = value_at(s, index, s->low, DEPTH), *last = value_at(s, index, s->high, DEPTH);
    if (!first || !last) return false;
    const char *count =
        inst->op == OP_elem
            ? clike_format(p, "%lldu", (long long)length_of(inst))
            : clike_format(p, "%s.count", clike_in(p, p->at->values[whole->id], LEVEL_primary));
    const char *test = clike_format(p, "slope_spans(%s, %s, %s)", first, last, count);
    if (!s->test.at || !strstr(s->test.at, test)) require(s, test);
    return true;
}

/* ---- indices in 64 bits */

/* Nobody takes the value for this; restored when the loop is printed again. */
static void release(Search *s, const Val *v) {
    FuncState *at = s->p->at;
    if (val_is_const(v)) return;
    vec_push(&s->p->arena, &at->released, v);
    if (--at->uses[v->id] > 0 || v->kind != VAL_inst || !depends(s, v)) return;
    for (int i = 0; i < v->inst->nargs; i++) release(s, operand(v->inst, i));
}

/* The index as the body says it; NULL: as everywhere. */
static const char *wide_index(Search *s, const Inst *access) {
    const Val *index = narrow_index(access);
    bool is_computed = index->kind == VAL_inst &&
                       (index->inst->op == OP_add || index->inst->op == OP_sub || index->inst->op == OP_mul);
    if (!is_computed || !depends(s, index) || clike_cannot_wrap(s->p, index)) return NULL;
    const char *counter = s->p->at->values[s->counter->id].text;
    if (type_bits(s->counter->type) < 64) counter = clike_format(s->p, "(int64_t)%s", counter);
    const char *text = value_at(s, index, counter, DEPTH); /* in parentheses, which are not needed here */
    release(s, operand(access, 1));
    return clike_format(s->p, "%.*s", (int)strlen(text) - 2, text + 1);
}

void clike_end_range(Printer *p) {
    FuncState *at = p->at;
    for (int i = 0; i < at->released.count; i++) at->uses[at->released.at[i]->id]++;
    at->released.count = 0;
    at->covered = NULL;
}

const char *clike_range_test(Printer *p, const Inst *loop) {
    const Inst *yield = loop->regions[0]->last;
    Search s = {.p = p, .loop = loop, .suits = true, .test = {.arena = &p->arena}};
    if (!p->dialect->hoists || p->options->unchecked || p->at->covered || yield->op != OP_yield) return NULL;
    for (int i = 0; i < loop->nregions; i++) region_walk(loop->regions[i], look_at, &s);
    if (!s.suits || !s.reads_buffers || !find_counter(&s, operand(yield, 0))) return NULL;
    Map *covered = arena_new(&p->arena, Map);
    bool any = false;
    for (int i = 0; i < s.naccesses; i++) {
        if (!require_access(&s, s.accesses[i])) continue;
        map_put(&p->arena, covered, PTR_KEY(s.accesses[i]), "");
        any |= s.accesses[i]->op == OP_buffer_elem;
    }
    if (!any) return NULL;
    clike_helper(p, "slope_counts"); /* only now: compilers warn of functions that nobody calls */
    clike_helper(p, "slope_spans");
    clike_line(p, "%s", s.range);
    for (int i = 0; i < s.naccesses; i++) {
        const char *text = map_has(covered, PTR_KEY(s.accesses[i])) ? wide_index(&s, s.accesses[i]) : NULL;
        if (text) map_put(&p->arena, covered, PTR_KEY(s.accesses[i]), (void *)(uintptr_t)text);
    }
    p->at->covered = covered;
    return s.test.at;
}

const char *clike_covered_index(const Printer *p, const Inst *access) {
    const char *text = p->at->covered ? map_get(p->at->covered, PTR_KEY(access)) : NULL;
    return text && *text ? text : NULL;
}

bool clike_is_covered(const Printer *p, const Inst *access) {
    return p->at->covered && map_has(p->at->covered, PTR_KEY(access));
}
