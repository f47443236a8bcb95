/* Range checks out of loops. An innermost loop that counts, and whose accesses have indices that are linear in the counter,
 * is emitted twice: before it, the first and the last index of every such access are tested; if all are in range, the copy
 * without these checks runs, which vectorises like C, otherwise the one with them.
 *
 *     for (i = first; i < end; i += step) ... a[base + factor * i] ...
 *
 * Indices are computed modulo 2^32 in the program. base and factor are, too, and then taken as signed numbers; if
 * base + factor * i, computed without overflow, is within 0 .. 2^31 - 1 (2^32 - 1, unsigned) at both ends of i's range, it is
 * so in between, and equal to what the program computes. The counter may have 64 bits (those of reversed loops have: they
 * count what is left) if both ends of its range are found to fit into 32; what is converted to 32 bits may be computed in 64 before.
 * Indices of 64 bits are left alone, unless converted from 32.
 *
 * Loops of a few rounds are unrolled by LLVM, which then knows indices into arrays; for these alone no test is made, nor is it
 * for those of reversed loops, many of which are short as well, and a clamped index costs less than the test. */
#include "emit/llvm/llvm.h"

enum { MAX_ACCESSES = 32, MAX_INSTS = 400, MAX_TERMS = 64, SHORT_TRIP = 16 };

typedef struct Linear {
    LLVMValueRef base, factor; /* i32; factor NULL: 0 */
} Linear;

typedef struct Search {
    Emitter *e;
    const Inst *loop;
    const Val *counter;     /* parameter of the body */
    LLVMValueRef low, high; /* i64: least and greatest value of the counter in the body */
    LLVMValueRef safe;      /* i1: everything so far is in range */
    InstVec jumps;          /* to the next round */
    Inst *accesses[MAX_ACCESSES];
    int naccesses, ninsts, terms;
    bool suits, reads_buffers;
} Search;

/* ---- what does not change in the loop */

static const Val *resolved(const Inst *inst, int index) { return ir_resolve(inst->args[index]); }

/* Can the value be computed before the loop? What is inside the loop is emitted there once more. */
static bool prepare(Search *s, const Val *v) {
    if (!inst_contains(s->loop, v)) return true;
    if (v->kind != VAL_inst || ++s->terms > MAX_TERMS) return false;
    const Inst *inst = v->inst;
    if (!inst_is_steady(inst)) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (!prepare(s, resolved(inst, i))) return false;
    emit_inst(s->e, inst);
    return true;
}

static LLVMValueRef value_of(Search *s, const Val *v) {
    return val_is_const(v) ? emit_constant(s->e, v) : s->e->at->values[v->id].value;
}

static bool is_word(const Type *type) { return type->kind == TYPE_int || type->kind == TYPE_uint; }

static bool is_long(const Type *type) { return type->kind == TYPE_int64 || type->kind == TYPE_uint64; }

/* ---- the counter */

static const Val *yielded(const Region *region, int index) {
    const Inst *end = region->last;
    return end && end->op == OP_yield && index < end->nargs ? resolved(end, index) : NULL;
}

static LLVMValueRef as_i64(Search *s, const Val *v) {
    return LLVMBuildIntCast2(s->e->builder, value_of(s, v), s->e->i64, type_is_signed(v->type), "");
}

static void require(Search *s, LLVMValueRef condition) {
    s->safe = s->safe ? LLVMBuildAnd(s->e->builder, s->safe, condition, "") : condition;
}

static LLVMValueRef plus(Search *s, LLVMValueRef value, int64_t more) {
    return LLVMBuildAdd(s->e->builder, value, emit_i64(s->e, more), "");
}

/* The value, of 64 bits, is within -2^31 .. 2^31 - 1. */
static void require_small(Search *s, const Val *v) {
    LLVMBuilderRef b = s->e->builder;
    LLVMValueRef value = value_of(s, v), narrow = LLVMBuildTrunc(b, value, s->e->i32, "");
    require(s, LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildSExt(b, narrow, s->e->i64, ""), value, ""));
}

/* Sets the range of the counter from `counter < limit` (below) or `limit < counter`; `or_equal` for <=. The counter must not
 * wrap around where it leaves the range. */
static void set_range(Search *s, const Val *first, const Val *limit, bool below, bool or_equal,
                      int64_t step) {
    bool sign = type_is_signed(first->type);
    int64_t least = sign ? INT32_MIN : 0, greatest = sign ? INT32_MAX : UINT32_MAX;
    if (is_long(first->type)) require_small(s, first), require_small(s, limit);
    LLVMValueRef start = as_i64(s, first), end = plus(s, as_i64(s, limit), or_equal ? 0 : below ? -1 : 1);
    s->low = below ? start : end;
    s->high = below ? end : start;
    require(s, LLVMBuildICmp(s->e->builder, below ? LLVMIntSLE : LLVMIntSGE, plus(s, end, step),
                             emit_i64(s->e, below ? greatest : least), ""));
}

static bool is_short(const Val *first, const Val *limit, int64_t step) {
    int64_t from, to;
    if (!val_is_int(first, &from) || !val_is_int(limit, &to)) return false;
    int64_t distance = to > from ? to - from : from - to;
    return distance / (step < 0 ? -step : step) <= SHORT_TRIP;
}

/* The condition of the loop is, or has as one of its parts, a comparison of a counter with something fixed. */
static bool find_counter(Search *s, const Val *condition) {
    if (!condition || condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and) return find_counter(s, resolved(inst, 0)) || find_counter(s, resolved(inst, 1));
    LoopTest test;
    if (inst->op == OP_ne || !loop_comparison(s->loop, inst, &test)) return false;
    if (!is_word(test.limit->type) && test.limit->type->kind != TYPE_int64) return false;
    LoopSteps steps = loop_steps(s->loop, s->jumps.at, s->jumps.count, test.index);
    int64_t step = steps.least;
    if (!steps.known || step != steps.greatest || step == 0 || (step > 0) != test.up) return false;
    const Val *first = resolved(s->loop, test.index);
    if (step > INT32_MAX || step < INT32_MIN || !prepare(s, test.limit)) return false;
    bool is_reversed = !is_word(test.limit->type);
    if (!s->reads_buffers && (is_reversed || is_short(first, test.limit, step))) return false;
    s->counter = s->loop->regions[1]->params[test.index];
    set_range(s, first, test.limit, test.up, test.or_equal, step);
    return true;
}

/* ---- linear indices */

static bool linear(Search *s, const Val *v, Linear *result);

static LLVMValueRef product(Search *s, LLVMValueRef a, LLVMValueRef b) {
    return a && b ? LLVMBuildMul(s->e->builder, a, b, "") : NULL;
}

static LLVMValueRef sum(Search *s, LLVMValueRef a, LLVMValueRef b, bool negative) {
    if (!b) return a;
    if (negative) b = LLVMBuildNeg(s->e->builder, b, "");
    return a ? LLVMBuildAdd(s->e->builder, a, b, "") : b;
}

static bool linear_inst(Search *s, const Inst *inst, Linear *result) {
    Linear a, b;
    bool is_binary = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul;
    if (inst->op == OP_convert || inst->op == OP_bitcast) return linear(s, resolved(inst, 0), result);
    if (!is_binary || !linear(s, resolved(inst, 0), &a) || !linear(s, resolved(inst, 1), &b)) return false;
    if (inst->op == OP_mul) {
        if (a.factor && b.factor) return false;
        result->base = product(s, a.base, b.base);
        result->factor = a.factor ? product(s, a.factor, b.base) : product(s, b.factor, a.base);
        return true;
    }
    result->base = sum(s, a.base, b.base, inst->op == OP_sub);
    result->factor = sum(s, a.factor, b.factor, inst->op == OP_sub);
    return true;
}

/* Of 64 bits, the lower 32. */
static bool linear(Search *s, const Val *v, Linear *result) {
    if ((!is_word(v->type) && !is_long(v->type)) || ++s->terms > MAX_TERMS) return false;
    if (v == s->counter) {
        *result = (Linear){emit_i32(s->e, 0), emit_i32(s->e, 1)};
        return true;
    }
    if (inst_contains(s->loop, v) && v->kind == VAL_inst && linear_inst(s, v->inst, result)) return true;
    *result = (Linear){0};
    if (!prepare(s, v)) return false;
    result->base = LLVMBuildIntCast2(s->e->builder, value_of(s, v), s->e->i32, false, "");
    return true;
}

/* ---- accesses */

static LLVMValueRef index_at(Search *s, Linear index, LLVMValueRef counter) {
    LLVMBuilderRef b = s->e->builder;
    LLVMValueRef base = LLVMBuildSExt(b, index.base, s->e->i64, "");
    if (!index.factor) return base;
    LLVMValueRef factor = LLVMBuildSExt(b, index.factor, s->e->i64, "");
    return LLVMBuildAdd(b, base, LLVMBuildMul(b, factor, counter, ""), "");
}

static void require_index(Search *s, Linear index, LLVMValueRef limit) {
    require(s, LLVMBuildICmp(s->e->builder, LLVMIntULT, index_at(s, index, s->low), limit, ""));
    if (index.factor)
        require(s, LLVMBuildICmp(s->e->builder, LLVMIntULT, index_at(s, index, s->high), limit, ""));
}

static int64_t known_length(const Type *whole) {
    return whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
}

/* The index of an access in 32 bits, whatever it is converted to. */
static const Val *narrow_index(const Inst *inst) {
    const Val *index = resolved(inst, 1);
    bool is_convert = index->kind == VAL_inst && index->inst->op == OP_convert;
    return is_convert && is_word(index->inst->args[0]->type) ? resolved(index->inst, 0) : index;
}

static bool require_access(Search *s, const Inst *inst) {
    Emitter *e = s->e;
    Linear index;
    const Val *narrow = narrow_index(inst);
    LLVMValueRef limit;
    s->terms = 0;
    if (!is_word(narrow->type) || !linear(s, narrow, &index)) return false;
    int64_t most = type_is_signed(narrow->type) ? (int64_t)1 << 31 : (int64_t)1 << 32;
    if (inst->op == OP_elem) {
        int64_t length = known_length(inst->args[0]->type->args[0]);
        limit = emit_i64(e, length < most ? length : most);
    } else {
        if (!prepare(s, resolved(inst, 0))) return false;
        LLVMValueRef count = LLVMBuildExtractValue(e->builder, value_of(s, resolved(inst, 0)), 1, "");
        LLVMValueRef args[] = {count, emit_i64(e, most)};
        limit = emit_intrinsic(e, "llvm.umin", &e->i64, 1, args, 2);
    }
    require_index(s, index, limit);
    return true;
}

static bool is_checked_access(const Inst *inst) {
    bool has_lanes = inst->nresults == 1 && inst->results[0]->type->kind == TYPE_vector;
    if (inst_has(inst, INST_UNCHECKED) || has_lanes) return false;
    if (inst->op == OP_elem) {
        int64_t length = known_length(inst->args[0]->type->args[0]), index;
        return length > 0 && !val_is_int(resolved(inst, 1), &index);
    }
    return inst->op == OP_buffer_elem;
}

static void look_at(void *user, Inst *inst) {
    Search *s = user;
    s->ninsts++;
    if (inst->op == OP_loop || s->ninsts > MAX_INSTS) s->suits = false;
    if (inst->op == OP_continue && inst->target == s->loop) vec_push(&s->e->arena, &s->jumps, inst);
    if (!is_checked_access(inst) || s->naccesses == MAX_ACCESSES) return;
    s->accesses[s->naccesses++] = inst;
    s->reads_buffers |= inst->op == OP_buffer_elem;
}

/* ---- the entry */

static bool suits(Search *s) {
    for (int i = 0; i < s->loop->nregions; i++) region_walk(s->loop->regions[i], look_at, s);
    return s->suits && s->naccesses > 0;
}

LLVMValueRef emit_range_test(Emitter *e, const Inst *loop) {
    if (e->options->level < 2 || e->options->unchecked || e->at->within_range) return NULL;
    Search s = {.e = e, .loop = loop, .suits = true};
    if (!suits(&s) || !find_counter(&s, yielded(loop->regions[0], 0))) return NULL;
    int covered = 0;
    for (int i = 0; i < s.naccesses; i++) {
        if (!require_access(&s, s.accesses[i])) continue;
        map_put(&e->arena, &e->at->covered, PTR_KEY(s.accesses[i]), e);
        covered++;
    }
    return covered > 0 ? s.safe : NULL;
}

bool emit_is_in_range(const Emitter *e, const Inst *inst) {
    return e->at->within_range && map_has(&e->at->covered, PTR_KEY(inst));
}
