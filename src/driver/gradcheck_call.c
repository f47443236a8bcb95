/* Calls: arguments into memory, the call, results out of it. */
#include "driver/gradcheck.h"

#include <stdlib.h>

/* ---- memory of arguments */

static void zero(char *memory, const Type *type) {
    if (memory) memset(memory, 0, (size_t)type_layout(type, LAYOUT_scalar).stride);
}

static void clear(Subject *s) {
    for (int i = 0; i < s->arguments.count; i++) {
        Argument *argument = &s->arguments.at[i];
        zero(argument->narrow_memory, argument->type);
        zero(argument->wide_memory, argument->wide);
        zero(argument->pair_memory, argument->pair);
        zero(argument->diff_memory, argument->diff);
    }
}

/* Where derivatives take the argument itself: in a pair, or plainly. */
static char *primal_of(const Argument *argument) {
    return argument->pair_memory ? argument->pair_memory + argument->p_at : argument->narrow_memory;
}

static char *diff_of(const Argument *argument) {
    return argument->pair_memory ? argument->pair_memory + argument->d_at : argument->diff_memory;
}

static void put_holes(Subject *s) {
    for (int i = 0; i < s->holes.count; i++) {
        const Hole *hole = &s->holes.at[i];
        const Argument *argument = &s->arguments.at[hole->argument];
        memcpy(primal_of(argument) + hole->narrow, &hole->buffer, sizeof hole->buffer);
        memcpy(argument->wide_memory + hole->wide, &hole->buffer, sizeof hole->buffer);
    }
}

static TypeKind wide_kind(TypeKind kind) {
    return kind >= TYPE_half && kind <= TYPE_double ? TYPE_double : kind;
}

static void put_inputs(Subject *s, const double *x) {
    clear(s);
    put_holes(s);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        const Argument *argument = &s->arguments.at[slot->argument];
        if (slot->in < 0) continue;
        gradcheck_put(slot->kind, primal_of(argument) + slot->narrow, x[slot->in]);
        gradcheck_put(wide_kind(slot->kind), argument->wide_memory + slot->wide, x[slot->in]);
    }
}

/* ---- calling */

/* NULL, or what ended the call. */
static const char *invoke(Check *check, CallFunction function, void *const *args) {
    for (int i = 0; i < check->restored.count; i++) {
        const Restored *restored = &check->restored.at[i];
        memcpy(restored->data, restored->pristine, restored->size);
    }
    function(args);
    char *error = runtime_take_error(check->session->runtime);
    if (!error) return NULL;
    const char *text = format_text(check->arena, "%s", error);
    free(error);
    return text;
}

enum { FEW_ARGS = 16 };

static void **room_for_args(Check *check, const Subject *s, void **few) {
    return s->arguments.count < FEW_ARGS ? few : arena_array(check->arena, void *, s->arguments.count + 1);
}

const char *gradcheck_call_wide(Check *check, Subject *s, const double *x, HoldMode mode, double *y) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, x);
    for (int i = 0; i < s->arguments.count; i++) args[i] = s->arguments.at[i].wide_memory;
    int64_t recorded = check->counts[HOLD_values];
    memset(check->counts, 0, sizeof check->counts);
    check->state.replay = mode == HOLD_replay;
    char *state = driver_uniform_address(check->program, check->hold);
    if (state) memcpy(state, &check->state, sizeof check->state);
    const char *wrong = invoke(check, s->call_wide, args);
    check->steps += check->counts[HOLD_steps];
    if (wrong) {
        check->counts[HOLD_values] = recorded;
        return wrong;
    }
    if (check->counts[HOLD_trouble] & HOLD_too_many) return "too many of its values carry no derivative";
    if (check->counts[HOLD_trouble] & HOLD_small_root)
        return "it takes the root of almost nothing, where the derivative is bounded by rule";
    bool same_path = mode == HOLD_record || check->counts[HOLD_values] == recorded;
    check->counts[HOLD_values] = mode == HOLD_record ? check->counts[HOLD_values] : recorded;
    if (!same_path) return "it takes another path nearby";
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->output >= 0)
            y[slot->output] =
                gradcheck_get(TYPE_double, s->arguments.at[slot->argument].wide_memory + slot->wide);
    }
    return NULL;
}

const char *gradcheck_call_fwd(Check *check, Subject *s, const double *x, const double *u, double *y,
                               double *dy) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, x);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->input >= 0)
            gradcheck_put(slot->diff_kind, diff_of(&s->arguments.at[slot->argument]) + slot->diff,
                          u[slot->input]);
    }
    for (int i = 0; i < s->arguments.count; i++) {
        const Argument *argument = &s->arguments.at[i];
        args[i] = argument->pair_memory ? argument->pair_memory : argument->narrow_memory;
    }
    const char *wrong = invoke(check, s->call_fwd, args);
    for (int i = 0; i < s->slots.count && !wrong; i++) {
        const Slot *slot = &s->slots.at[i];
        const Argument *argument = &s->arguments.at[slot->argument];
        if (slot->output < 0) continue;
        y[slot->output] = gradcheck_get(slot->kind, primal_of(argument) + slot->narrow);
        dy[slot->output] = gradcheck_get(slot->diff_kind, diff_of(argument) + slot->diff);
    }
    return wrong;
}

/* What bwd_diff takes for an argument; NULL: it is not among the parameters. */
static char *bwd_argument(const Argument *argument) {
    if (argument->dir == DIR_out) return argument->diff ? argument->diff_memory : NULL;
    return argument->pair_memory ? argument->pair_memory : argument->narrow_memory;
}

static char *bwd_diff_memory(const Argument *argument) {
    return argument->dir == DIR_out ? argument->diff_memory : diff_of(argument);
}

const char *gradcheck_call_bwd(Check *check, Subject *s, const double *x, const double *v, double *dx) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, x);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->diff < 0) continue;
        /* What stands in the differential of an `in` parameter is overwritten; a derivative that a user wrote may add. */
        double before = slot->output >= 0 ? v[slot->output] : s->bwd_is_custom ? 0 : 7;
        gradcheck_put(slot->diff_kind, bwd_diff_memory(&s->arguments.at[slot->argument]) + slot->diff,
                      before);
    }
    int count = 0;
    for (int i = 0; i < s->arguments.count; i++) {
        char *argument = bwd_argument(&s->arguments.at[i]);
        if (argument) args[count++] = argument;
    }
    const char *wrong = invoke(check, s->call_bwd, args);
    for (int i = 0; i < s->slots.count && !wrong; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->input >= 0)
            dx[slot->input] =
                gradcheck_get(slot->diff_kind, diff_of(&s->arguments.at[slot->argument]) + slot->diff);
    }
    return wrong;
}
