/* What is known about a code: the row of diag.def, and for those that users meet first cause, example and
 * remedy. */
#include "diag.h"

static const struct {
    int code;
    const char *cause, *example, *remedy;
} rows[] = {
#define EXPLAIN(code, cause, example, remedy) {code, cause, example, remedy},
#include "diag/explain.def"
#undef EXPLAIN
};

static const struct {
    Severity severity;
    int code;
    const char *text;
} messages[] = {
#define DIAG(name, severity, code, text) {SEVERITY_##severity, code, text},
#include "diag/diag.def"
#undef DIAG
};

bool diag_explain(int code, Explanation *out) {
    *out = (Explanation){0};
    for (int i = 0; i < DIAG_COUNT && code > 0; i++)
        if (messages[i].code == code)
            *out = (Explanation){.severity = messages[i].severity, .code = code, .message = messages[i].text};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code != code) continue;
        out->cause = rows[i].cause;
        out->example = *rows[i].example ? rows[i].example : NULL;
        out->remedy = rows[i].remedy;
    }
    return out->message != NULL;
}
