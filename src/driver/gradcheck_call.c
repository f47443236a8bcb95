/* Calls: arguments into memory, the call, results out of it. */
#include "driver/gradcheck.h"

#include <stdlib.h>

/* ---- memory of arguments */

static void zero(char *memory, const Type *type) {
    if (memory) memset(memory, 0, (size_t)type_layout(type, LAYOUT_scalar).stride);
}

static void clear(Subject *s, Width width) {
    for (int i = 0; i < s->arguments.count; i++) {
        Form *form = &s->arguments.at[i].forms[width];
        zero(form->memory, form->type);
        zero(form->pair_memory, form->pair);
        zero(form->diff_memory, form->diff);
    }
}

static Form *form_of(Subject *s, int argument, Width width) {
    return &s->arguments.at[argument].forms[width];
}

/* The argument itself, for the function (plain) or for a derivative, which may take it in a pair. */
static char *primal_in(const Form *form, bool plain) {
    return form->pair_memory && !plain ? form->pair_memory + form->p_at : form->memory;
}

static char *diff_in(const Form *form) {
    return form->pair_memory ? form->pair_memory + form->d_at : form->diff_memory;
}

static TypeKind kind_in(TypeKind kind, Width width) {
    return width == WIDE && kind >= TYPE_half && kind <= TYPE_double ? TYPE_double : kind;
}

static void put_inputs(Subject *s, Width width, bool plain, const double *x) {
    clear(s, width);
    for (int i = 0; i < s->holes.count; i++) {
        const Hole *hole = &s->holes.at[i];
        char *at = primal_in(form_of(s, hole->argument, width), plain) + hole->at[width];
        memcpy(at, &hole->buffer, sizeof hole->buffer);
    }
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->in < 0) continue;
        char *at = primal_in(form_of(s, slot->argument, width), plain) + slot->at[width];
        gradcheck_put(kind_in(slot->kind, width), at, x[slot->in]);
    }
}

static void get_outputs(Subject *s, Width width, bool plain, double *y) {
    for (int j = 0; j < s->noutputs; j++) {
        const Slot *slot = &s->slots.at[s->outputs.at[j]];
        const char *at = primal_in(form_of(s, slot->argument, width), plain) + slot->at[width];
        y[j] = gradcheck_get(kind_in(slot->kind, width), at);
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

/* ---- the function itself */

static const char *trouble_of(const Check *check, HoldMode mode, int64_t recorded) {
    if (check->counts[HOLD_trouble] & HOLD_too_many) return "too many of its values carry no derivative";
    if (check->counts[HOLD_trouble] & HOLD_small_root)
        return "it takes the root of almost nothing, where the derivative is bounded by rule";
    bool same_path = mode == HOLD_record || check->counts[HOLD_values] == recorded;
    return same_path ? NULL : "it takes another path nearby";
}

const char *gradcheck_call(Check *check, Subject *s, const double *x, HoldMode mode, double *y) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, WIDE, true, x);
    for (int i = 0; i < s->arguments.count; i++) args[i] = form_of(s, i, WIDE)->memory;
    int64_t recorded = check->counts[HOLD_values];
    memset(check->counts, 0, sizeof check->counts);
    check->state.replay = mode == HOLD_replay;
    if (check->hold_memory) memcpy(check->hold_memory, &check->state, sizeof check->state);
    const char *wrong = invoke(check, s->call, args);
    check->steps += check->counts[HOLD_steps];
    if (!wrong) wrong = trouble_of(check, mode, recorded);
    if (mode == HOLD_replay) check->counts[HOLD_values] = recorded;
    if (!wrong) get_outputs(s, WIDE, true, y);
    return wrong;
}

/* ---- fwd_diff */

const char *gradcheck_call_fwd(Check *check, Subject *s, Width width, const double *x, const double *u,
                               double *y, double *dy) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, width, false, x);
    for (int i = 0; i < s->ninputs; i++) {
        const Slot *slot = &s->slots.at[s->inputs.at[i]];
        char *at = diff_in(form_of(s, slot->argument, width)) + slot->diff_at[width];
        gradcheck_put(kind_in(slot->diff_kind, width), at, u[i]);
    }
    for (int i = 0; i < s->arguments.count; i++) {
        const Form *form = form_of(s, i, width);
        args[i] = form->pair_memory ? form->pair_memory : form->memory;
    }
    const char *wrong = invoke(check, s->call_fwd[width], args);
    if (wrong) return wrong;
    get_outputs(s, width, false, y);
    for (int j = 0; j < s->noutputs; j++) {
        const Slot *slot = &s->slots.at[s->outputs.at[j]];
        const char *at = diff_in(form_of(s, slot->argument, width)) + slot->diff_at[width];
        dy[j] = gradcheck_get(kind_in(slot->diff_kind, width), at);
    }
    return NULL;
}

/* ---- bwd_diff: an output parameter is only its differential, and one that has none is not there */

static char *bwd_argument(const Argument *argument, Width width) {
    const Form *form = &argument->forms[width];
    if (argument->dir == DIR_out) return form->diff_memory;
    return form->pair_memory ? form->pair_memory : form->memory;
}

const char *gradcheck_call_bwd(Check *check, Subject *s, Width width, const double *x, const double *v,
                               double *dx) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, width, false, x);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        const Argument *argument = &s->arguments.at[slot->argument];
        const Form *form = &argument->forms[width];
        if (!slot->has_diff) continue;
        /* What stands in the differential of an `in` parameter is overwritten; a derivative that a user wrote may add. */
        double before = slot->output >= 0 ? v[slot->output] : s->bwd_is_custom ? 0 : 7;
        char *memory = argument->dir == DIR_out ? form->diff_memory : diff_in(form);
        gradcheck_put(kind_in(slot->diff_kind, width), memory + slot->diff_at[width], before);
    }
    int count = 0;
    for (int i = 0; i < s->arguments.count; i++) {
        char *argument = bwd_argument(&s->arguments.at[i], width);
        if (argument) args[count++] = argument;
    }
    const char *wrong = invoke(check, s->call_bwd[width], args);
    for (int i = 0; i < s->ninputs && !wrong; i++) {
        const Slot *slot = &s->slots.at[s->inputs.at[i]];
        const char *at = diff_in(form_of(s, slot->argument, width)) + slot->diff_at[width];
        dx[i] = gradcheck_get(kind_in(slot->diff_kind, width), at);
    }
    return wrong;
}
