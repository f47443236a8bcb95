/* Calls: arguments into memory, the call, results out of it. */
#include "gradcheck/gradcheck.h"

#include <stdlib.h>

/* ---- memory of arguments */

static void zero(char *memory, const Type *type) {
    if (memory) memset(memory, 0, (size_t)type_layout(type, LAYOUT_scalar).stride);
}

static void clear_counterpart(const Hole *hole) {
    if (!hole->paired) return;
    size_t stride = (size_t)type_layout(hole->diff_element, LAYOUT_scalar).stride;
    memset(hole->diff_start - hole->before * stride, 0, stride * (size_t)(hole->before + hole->diff.count));
}

static void clear(Subject *s, Width width) {
    for (int i = 0; i < s->holes.count; i++) clear_counterpart(&s->holes.at[i]);
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

static TypeKind slot_kind(const Slot *slot, Width width) {
    return slot->hole >= 0 ? slot->kind : kind_in(slot->kind, width);
}

static TypeKind diff_kind(const Slot *slot, Width width) {
    return slot->hole >= 0 ? slot->diff_kind : kind_in(slot->diff_kind, width);
}

/* Where a derivative is put before a call, and where it is found after it. */
static char *diff_before(Subject *s, const Slot *slot, Width width) {
    if (slot->hole >= 0) return s->holes.at[slot->hole].diff_start + slot->diff_at[width];
    const Argument *argument = &s->arguments.at[slot->argument];
    return diff_in(&argument->forms[width]) + slot->diff_at[width];
}

static char *diff_after(Subject *s, const Slot *slot, Width width) {
    if (slot->hole < 0) return diff_before(s, slot, width);
    return (char *)s->holes.at[slot->hole].diff.data + slot->diff_at[width];
}

static void put_hole(Subject *s, const Hole *hole, Width width, bool plain) {
    const Form *form = form_of(s, hole->argument, width);
    size_t size = hole->is_pointer ? sizeof hole->buffer.data : sizeof hole->buffer;
    memcpy(primal_in(form, plain) + hole->at[width], &hole->buffer, size);
    if (hole->own) memcpy(primal_in(form, plain) + hole->diff_at[width], &hole->diff, size);
    else if (hole->paired && !plain) memcpy(diff_in(form) + hole->diff_at[width], &hole->diff, size);
}

static void put_inputs(Subject *s, Width width, bool plain, const double *x) {
    clear(s, width);
    for (int i = 0; i < s->holes.count; i++) put_hole(s, &s->holes.at[i], width, plain);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->in < 0) continue;
        char *memory = slot->hole >= 0 ? s->holes.at[slot->hole].start
                                       : primal_in(form_of(s, slot->argument, width), plain);
        gradcheck_put(slot_kind(slot, width), memory + slot->at[width], x[slot->in]);
        if (slot->own) gradcheck_put(slot_kind(slot, width), memory + slot->diff_at[width], x[slot->in]);
        else if ((slot->mirrored || slot->flag) && !plain)
            gradcheck_put(slot_kind(slot, width), diff_before(s, slot, width), x[slot->in]);
    }
}

static void get_outputs(Subject *s, Width width, bool plain, double *y) {
    for (int j = 0; j < s->noutputs; j++) {
        const Slot *slot = &s->slots.at[s->outputs.at[j]];
        const char *memory = slot->hole >= 0 ? s->holes.at[slot->hole].buffer.data
                                             : primal_in(form_of(s, slot->argument, width), plain);
        y[j] = gradcheck_get(slot_kind(slot, width), memory + slot->at[width]);
    }
}

static bool is_given(const Subject *s, const Slot *slot) {
    return slot->flag && slot->hole < 0 && s->arguments.at[slot->argument].dir != DIR_in;
}

static void get_flags(Subject *s, Width width) {
    for (int i = 0; i < s->slots.count; i++) {
        Slot *slot = &s->slots.at[i];
        if (!is_given(s, slot)) continue;
        const char *memory = form_of(s, slot->argument, width)->memory;
        slot->present = gradcheck_get(slot->kind, memory + slot->at[width]);
    }
}

/* ---- calling */

/* NULL, or what ended the call. */
static const char *invoke(Check *check, void *function, void *const *args) {
    for (int i = 0; i < check->restored.count; i++) {
        const Restored *restored = &check->restored.at[i];
        memcpy(restored->data, restored->pristine, restored->size);
    }
    driver_call(check->program, function, args);
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

static const char *call_held(Check *check, Subject *s, const double *x, HoldMode mode, double *y) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, WIDE, true, x);
    for (int i = 0; i < s->arguments.count; i++) args[i] = form_of(s, i, WIDE)->memory;
    int64_t recorded = check->counts[HOLD_values];
    memset(check->counts, 0, sizeof *check->counts * HOLD_random);
    check->state.mode = mode;
    if (check->hold_memory) memcpy(check->hold_memory, &check->state, sizeof check->state);
    const char *wrong = invoke(check, s->call, args);
    check->steps += check->counts[HOLD_steps];
    get_outputs(s, WIDE, true, y);
    if (mode == HOLD_record) get_flags(s, WIDE);
    if (!wrong) wrong = trouble_of(check, mode, recorded);
    if (mode != HOLD_record) check->counts[HOLD_values] = recorded;
    return wrong;
}

/* Does no result depend on the roots that are trouble? */
static bool roots_lead_nowhere(Check *check, Subject *s, const double *x, const double *y) {
    if (check->counts[HOLD_trouble] != HOLD_small_root) return false;
    double *other = arena_array(check->arena, double, s->noutputs);
    call_held(check, s, x, HOLD_shift, other);
    bool same = check->counts[HOLD_trouble] == HOLD_small_root;
    return same && memcmp(y, other, sizeof *y * (size_t)s->noutputs) == 0;
}

const char *gradcheck_call(Check *check, Subject *s, const double *x, HoldMode mode, double *y) {
    const char *wrong = call_held(check, s, x, mode, y);
    return wrong && roots_lead_nowhere(check, s, x, y) ? NULL : wrong;
}

const char *gradcheck_call_shaken(Check *check, Subject *s, const double *x, double *y) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    put_inputs(s, WIDE, true, x);
    for (int i = 0; i < s->arguments.count; i++) args[i] = form_of(s, i, WIDE)->memory;
    if (check->hold_memory) memcpy(check->hold_memory, &check->state, sizeof check->state);
    const char *wrong = invoke(check, s->call_shaken, args);
    if (!wrong) get_outputs(s, WIDE, true, y);
    return wrong;
}

static Width memory_of(Width code) { return code == SHAKEN ? WIDE : code; }

/* ---- fwd_diff */

const char *gradcheck_call_fwd(Check *check, Subject *s, Width width, const double *x, const double *u,
                               double *y, double *dy) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    void *function = s->call_fwd[width];
    width = memory_of(width);
    put_inputs(s, width, false, x);
    for (int i = 0; i < s->ninputs; i++) {
        const Slot *slot = &s->slots.at[s->inputs.at[i]];
        gradcheck_put(diff_kind(slot, width), diff_before(s, slot, width), u[i]);
    }
    for (int i = 0; i < s->arguments.count; i++) {
        const Form *form = form_of(s, i, width);
        args[i] = form->pair_memory ? form->pair_memory : form->memory;
    }
    const char *wrong = invoke(check, function, args);
    if (wrong) return wrong;
    get_outputs(s, width, false, y);
    for (int j = 0; j < s->noutputs; j++) {
        const Slot *slot = &s->slots.at[s->outputs.at[j]];
        dy[j] = gradcheck_get(diff_kind(slot, width), diff_after(s, slot, width));
    }
    return NULL;
}

/* ---- bwd_diff: an output parameter is only its differential, and one that has none is not there */

static char *bwd_argument(const Argument *argument, Width width) {
    const Form *form = &argument->forms[width];
    if (argument->dir == DIR_out) return form->diff_memory;
    return form->pair_memory ? form->pair_memory : form->memory;
}

bool gradcheck_is_left(Subject *s, Width width, int input, const double *v, double found) {
    width = memory_of(width);
    const Slot *slot = &s->slots.at[s->inputs.at[input]];
    if (slot->hole < 0 || slot->output < 0) return false;
    if (gradcheck_round(diff_kind(slot, width), v[slot->output]) != found) return false;
    const Hole *hole = &s->holes.at[slot->hole];
    double was = gradcheck_get(slot->kind, hole->start + slot->at[width]),
           is = gradcheck_get(slot->kind, (char *)hole->buffer.data + slot->at[width]);
    return was != is;
}

const char *gradcheck_call_bwd(Check *check, Subject *s, Width width, const double *x, const double *v,
                               double *dx) {
    void *few[FEW_ARGS], **args = room_for_args(check, s, few);
    void *function = s->call_bwd[width];
    width = memory_of(width);
    put_inputs(s, width, false, x);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        const Argument *argument = &s->arguments.at[slot->argument];
        const Form *form = &argument->forms[width];
        if (!slot->has_diff && !is_given(s, slot)) continue;
        char *at =
            argument->dir == DIR_out ? form->diff_memory + slot->diff_at[width] : diff_before(s, slot, width);
        if (!slot->has_diff) {
            gradcheck_put(slot->kind, at, slot->present);
            continue;
        }
        /* What stands in the differential of an `in` parameter is overwritten; a derivative that a user wrote
         * may add. */
        double before = slot->output >= 0 ? v[slot->output] : s->bwd_is_custom ? 0 : 7;
        gradcheck_put(diff_kind(slot, width), at, before);
    }
    int count = 0;
    for (int i = 0; i < s->arguments.count; i++) {
        char *argument = bwd_argument(&s->arguments.at[i], width);
        if (argument) args[count++] = argument;
    }
    const char *wrong = invoke(check, function, args);
    for (int i = 0; i < s->ninputs && !wrong; i++) {
        const Slot *slot = &s->slots.at[s->inputs.at[i]];
        dx[i] = gradcheck_get(diff_kind(slot, width), diff_after(s, slot, width));
    }
    return wrong;
}
