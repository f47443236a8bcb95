/* What to write instead: a change to the line of a message, for people under the source and for editors as
 * data. */
#include "diag.h"

/* NULL: there is no message that could have one. The first one stays. */
static Diagnostic *open_message(Diags *diags) {
    bool shown = !diags->muted && diags->has_pending && !diags->pending_dropped;
    return shown && diags->pending.at.path && !diags->pending.fix.text ? &diags->pending : NULL;
}

static int column_of(const Diagnostic *d, int byte) {
    Str line = d->at.text;
    return byte < d->at.byte ? d->at.column - diag_count_characters(line, byte, d->at.byte)
                             : d->at.column + diag_count_characters(line, d->at.byte, byte);
}

static void replace(Diags *diags, int from, int to, const char *text) {
    Diagnostic *d = &diags->pending;
    d->fix = (Fix){.text = format_text(diags->arena, "%s", text),
                   .column = column_of(d, from),
                   .end_column = column_of(d, to),
                   .from = from};
}

static bool stands_at(Str line, int at, const char *word) {
    int length = (int)strlen(word);
    return at >= 0 && at < line.len && diag_token_end(line, at) == at + length &&
           memcmp(line.at + at, word, (size_t)length) == 0;
}

void diag_fix_word(Diags *diags, const char *word, const char *text) {
    const Diagnostic *d = open_message(diags);
    if (!d) return;
    int places[] = {d->at.byte, d->at.byte + 1 /* behind a point */, d->extent.from};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (stands_at(d->at.text, places[i], word)) {
            replace(diags, places[i], places[i] + (int)strlen(word), text);
            return;
        }
}

void diag_fix_around(Diags *diags, const char *before, const char *after) {
    const Diagnostic *d = open_message(diags);
    if (!d || d->extent.line != d->at.line || d->extent.end_line != d->at.line) return;
    Str line = d->at.text;
    int from = d->extent.from, to = d->extent.to;
    if (from < 0 || to > line.len || from > to) return;
    replace(diags, from, to, format_text(diags->arena, "%s%.*s%s", before, to - from, line.at + from, after));
}

void diag_fix_insert(Diags *diags, const char *text) {
    const Diagnostic *d = open_message(diags);
    if (d) replace(diags, d->at.byte, d->at.byte, text);
}
