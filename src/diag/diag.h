/* diag: every message that Slope can give, and how it is shown.
 *
 * A message is a row of diag.def; `diag_report` fills in its text and hands it to the sink, `diag_note` adds
 * a note to the message reported last. One cause, one message: a second report of the same row at the same
 * place is dropped, and so is every error after the limit. Nothing here prints: the sink belongs to the
 * driver. */
#ifndef SLOPE_DIAG_H
#define SLOPE_DIAG_H

#include "base/base.h"

typedef enum Severity { SEVERITY_note, SEVERITY_warning, SEVERITY_error } Severity;

typedef enum DiagId {
#define DIAG(name, severity, code, text) DIAG_##name,
#include "diag/diag.def"
#undef DIAG
    DIAG_COUNT
} DiagId;

/* The text that a message is about, up to but not including its end. */
typedef struct Extent {
    int line, column, end_line, end_column;
    int from, to; /* what is underlined: bytes of the line of the message's position */
} Extent;

/* What to write instead of a part of the line of the message; nothing is replaced by an insertion. */
typedef struct Fix {
    const char *text;       /* NULL: none */
    int column, end_column; /* of what is replaced */
    int from;               /* its first byte in the line */
} Fix;

/* One message with its notes, complete, as the sink gets it. Valid during the call. */
typedef struct DiagNote {
    const char *message;
    Position at; /* path NULL: no place */
    Extent extent;
} DiagNote;
typedef struct Diagnostic {
    Severity severity;
    int code;         /* 1234 of E1234 or W1234 */
    const char *name; /* row of diag.def */
    const char *message;
    Position at;
    Extent extent;
    Fix fix;
    const DiagNote *notes;
    int nnotes;
} Diagnostic;

typedef struct Diags {
    Arena *arena;
    Sources *sources;
    void (*sink)(void *user, const Diagnostic *diagnostic);
    void *user;
    int errors, warnings; /* so far */
    int failures;         /* all errors there ever were, also those that were not shown once more */
    int limit;            /* errors shown at most; 0: all */
    int muted;            /* > 0: nothing is reported or counted (trial runs of the checker) */
    int swallowed;        /* errors that were not reported because of `muted` */
    bool warnings_as_errors, no_warnings;
    bool portable; /* warn of what other compilers of the language refuse */
    Map seen;
    uint32_t round;     /* counts diags_begin */
    Diagnostic pending; /* reported last, still open for notes */
    bool has_pending, pending_dropped;
    VEC(DiagNote) notes;
} Diags;

/* report.c */
void diags_init(Diags *diags, Arena *arena, Sources *sources);
/* Errors are counted, and the limit holds, from here on; an error, and a message without a place, may be said
 * once more. */
void diags_begin(Diags *diags);
/* The arguments are those of the row's text, as for printf. */
void diag_portable(Diags *diags, Loc at, const char *what); /* if that is asked for */
void diag_report(Diags *diags, DiagId id, Loc at, ...);
void diag_report_span(Diags *diags, Span span, DiagId id, ...);
void diag_note(Diags *diags, DiagId id, Loc at, ...);
/* A row by itself, for who cannot report: there is no memory left. Text and code of the row. */
int diag_fill(char *out, size_t size, DiagId id, ...);
void diags_flush(Diags *diags); /* hands over the pending message; call at the end of every stage */

/* extent.c */
Extent diag_extent(Sources *sources, const Position *at, Span span);
int diag_token_end(Str line, int at);
int diag_count_characters(Str line, int from, int to);

/* fix.c: what to write, for the message reported last. They do nothing where its line is not as they expect
 * it. */
void diag_fix_word(Diags *diags, const char *word,
                   const char *text); /* instead of a word where the message is, or begins */
void diag_fix_around(Diags *diags, const char *before, const char *after); /* around what it is about */
void diag_fix_insert(Diags *diags, const char *text);                      /* where it is */

/* render.c */
typedef struct RenderStyle {
    bool colour;
} RenderStyle;
/* `path:line:col: error E1234: message`, the source line, a caret and what it is about underlined, then the
 * notes likewise. */
void diag_render_text(Text *out, const Diagnostic *diagnostic, RenderStyle style);
void diag_render_json(Text *out, const Diagnostic *diagnostic); /* one object, one line */

/* explain.c */
typedef struct Explanation {
    Severity severity;
    int code;
    const char *message;                  /* the text of its row, with %s and the like */
    const char *cause, *example, *remedy; /* NULL: not known */
} Explanation;
bool diag_explain(int code, Explanation *out); /* false: there is no such code */

/* nearest.c: "did you mean" */
/* The candidate nearest to `name` by edit distance, or NULL if none is near enough. */
Name diag_nearest(Name name, const Name *candidates, int count);

#endif
