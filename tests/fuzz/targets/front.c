/* A program as text, through everything up to the code generator: check, derivatives in both modes of
 * whatever the text names, all passes, C. Whatever comes of it, a message or code, is fine. */
#include "slope.h"
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FUNCTIONS = 6, PROGRAMS_PER_SESSION = 500, INTERNAL_FAULT = 7004 };

/* Of a fault only: it comes with the report of the fuzzer. */
static void show_fault(void *user, const SlopeDiagnostic *diagnostic) {
    (void)user;
    if (diagnostic->code == INTERNAL_FAULT)
        fprintf(stderr, "E%d: %s\n", diagnostic->code, diagnostic->message);
}

static int no_file(void *user, const char *path, const char **bytes, size_t *size) {
    (void)user, (void)path, (void)bytes, (void)size;
    return ENOENT;
}

/* What is broken in the compiler is a finding, not an answer. */
static SlopeStatus expect(SlopeStatus status) {
    if (status == SLOPE_STATUS_fault) abort();
    return status;
}

static void derive(SlopeProgram *program, const char *mode, const char *name, size_t length) {
    char expression[160];
    SlopeFunction *function;
    snprintf(expression, sizeof expression, "%s(%.*s)", mode, (int)length, name);
    expect(slope_find_function(program, expression, &function));
}

/* A name before a parenthesis that is followed by a body somewhere: good enough. */
static void derive_all(SlopeProgram *program, const char *text) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, "ifferentiable]")) && count < MOST_FUNCTIONS; at++) {
        const char *open = strchr(at, '('), *end = open;
        if (!open) break;
        while (end > at && end[-1] == ' ') end--;
        const char *start = end;
        while (start > at && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
        if (start == end || end - start > 100) continue;
        derive(program, "fwd_diff", start, (size_t)(end - start));
        derive(program, "bwd_diff", start, (size_t)(end - start));
        count++;
    }
}

static void compile(SlopeProgram *program) {
    SlopeBlob *blob;
    SlopeBuildOptions options = {.target = "c"};
    if (expect(slope_dump(program, NULL, NULL, &blob)) == SLOPE_STATUS_ok) slope_blob_free(blob);
    if (expect(slope_build(program, &options, &blob)) == SLOPE_STATUS_ok) slope_blob_free(blob);
}

static SlopeSession *new_session(void) {
    SlopeConfig config;
    SlopeSession *session;
    slope_config_init(&config);
    config.report = show_fault;
    config.read_file = no_file;
    config.release_file = NULL;
    config.limit_memory = 512;
    config.limit_time = 5;
    if (slope_session_new(&config, &session) != SLOPE_STATUS_ok) abort();
    return session;
}

/* One for many programs, as a host has it: reading the library takes longer than most of them. */
static SlopeSession *a_session(void) {
    static SlopeSession *session;
    static int programs;
    if (programs++ % PROGRAMS_PER_SESSION == 0) {
        slope_session_free(session);
        session = new_session();
    }
    return session;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    SlopeSession *session = a_session();
    SlopeProgram *program = NULL;
    char *text = malloc(size + 1);
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (expect(slope_load_text(session, "fuzz.slang", text, size, &program)) == SLOPE_STATUS_ok &&
        expect(slope_check(program)) == SLOPE_STATUS_ok) {
        derive_all(program, text);
        compile(program);
    }
    slope_program_free(program);
    slope_clear_messages(session);
    free(text);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    return mutate_text(data, size, room, seed);
}
