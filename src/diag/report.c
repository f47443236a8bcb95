/* Reporting: from a row of diag.def and its arguments to a complete message in the sink.
 *
 * A message stays pending until the next one (or diags_flush) so that notes can be added to it. What is
 * dropped (a repetition, a silenced warning, anything past the limit) takes its notes with it. The first
 * error past the limit gives the sink one last message without a place that says so; it and those after it
 * still count. */
#include "diag.h"

#include <stdio.h>

typedef struct Row {
    const char *name;
    Severity severity;
    int code;
    const char *text;
} Row;

static const Row rows[] = {
#define DIAG(name, severity, code, text) {#name, SEVERITY_##severity, code, text},
#include "diag/diag.def"
#undef DIAG
};

void diags_init(Diags *diags, Arena *arena, Sources *sources) {
    *diags = (Diags){.arena = arena, .sources = sources};
}

void diags_begin(Diags *diags) {
    diags->errors = diags->warnings = diags->muted = 0;
    diags->round++;
}

void diags_flush(Diags *diags) {
    if (!diags->has_pending) return;
    diags->has_pending = false;
    diags->pending.notes = diags->notes.at;
    diags->pending.nnotes = diags->notes.count;
    if (diags->sink) diags->sink(diags->user, &diags->pending);
    diags->notes.count = 0;
}

static const char *fill_in(Diags *diags, const char *format, va_list args) {
    Text text = {.arena = diags->arena};
    text_vprintf(&text, format, args);
    return text.at ? text.at : "";
}

/* The same row at the same place; where there is no place, with the same words. Errors are told again to who
 * asks again. */
static bool is_repetition(Diags *diags, DiagId id, Severity severity, Loc at, const char *message) {
    uint64_t place =
        at ? at : (hash_bytes(message, strlen(message), diags->round) & UINT32_MAX) | (uint64_t)1 << 32;
    uint64_t key = ((uint64_t)id + 1) << 33 | place; /* exact: two messages must never be taken for one */
    uintptr_t now = (uintptr_t)diags->round + 1, last = (uintptr_t)map_get(&diags->seen, key);
    map_put(diags->arena, &diags->seen, key, (void *)now);
    return last == now || (last && severity != SEVERITY_error);
}

static void open_message(Diags *diags, DiagId id, Severity severity, Span span, const char *message) {
    const Row *row = &rows[id];
    diags->pending = (Diagnostic){.severity = severity,
                                  .code = row->code,
                                  .name = row->name,
                                  .message = message,
                                  .at = source_position(diags->sources, span.at)};
    diags->pending.extent = diag_extent(diags->sources, &diags->pending.at, span);
    diags->has_pending = true;
}

static void say_limit(Diags *diags) {
    const char *message = format_text(diags->arena, rows[DIAG_error_limit].text, diags->limit);
    open_message(diags, DIAG_error_limit, SEVERITY_note, (Span){0}, message);
    diags_flush(diags);
}

/* Counts the message; true if it is to be shown. */
static bool count_message(Diags *diags, Severity severity) {
    bool past_limit = diags->limit && diags->errors > diags->limit;
    if (severity == SEVERITY_error) {
        diags->errors++;
        if (!diags->limit || diags->errors <= diags->limit) return true;
        if (!past_limit) say_limit(diags);
        return false;
    }
    if (!past_limit) diags->warnings++;
    return !past_limit;
}

static void report(Diags *diags, DiagId id, Span span, va_list args) {
    Severity severity = rows[id].severity;
    assert(severity != SEVERITY_note);
    if (diags->muted) {
        diags->swallowed += severity == SEVERITY_error;
        return;
    }
    diags_flush(diags);
    diags->pending_dropped = true;
    if (severity == SEVERITY_warning && diags->no_warnings) return;
    if (severity == SEVERITY_warning && diags->warnings_as_errors) severity = SEVERITY_error;
    const char *message = fill_in(diags, rows[id].text, args);
    diags->failures += severity == SEVERITY_error;
    if (is_repetition(diags, id, severity, span.at, message) || !count_message(diags, severity)) return;
    diags->pending_dropped = false;
    open_message(diags, id, severity, span, message);
}

static Span span_of_token(Loc at) { return (Span){at, at, at}; }

void diag_report(Diags *diags, DiagId id, Loc at, ...) {
    va_list args;
    va_start(args, at);
    report(diags, id, span_of_token(at), args);
    va_end(args);
}

void diag_portable(Diags *diags, Loc at, const char *what) {
    if (diags->portable) diag_report(diags, DIAG_not_portable, at, what);
}

void diag_report_span(Diags *diags, Span span, DiagId id, ...) {
    va_list args;
    va_start(args, id);
    report(diags, id, span, args);
    va_end(args);
}

void diag_note(Diags *diags, DiagId id, Loc at, ...) {
    assert(rows[id].severity == SEVERITY_note);
    if (diags->muted || !diags->has_pending || diags->pending_dropped) return;
    va_list args;
    va_start(args, at);
    DiagNote note = {.message = fill_in(diags, rows[id].text, args),
                     .at = source_position(diags->sources, at)};
    va_end(args);
    note.extent = diag_extent(diags->sources, &note.at, span_of_token(at));
    vec_push(diags->arena, &diags->notes, note);
}

int diag_fill(char *out, size_t size, DiagId id, ...) {
    va_list args;
    va_start(args, id);
    vsnprintf(out, size, rows[id].text, args);
    va_end(args);
    return rows[id].code;
}
