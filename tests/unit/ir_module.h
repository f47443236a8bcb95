/* What unit tests of the IR start from: an empty module, and the message that was reported last. */
#ifndef SLOPE_TEST_IR_MODULE_H
#define SLOPE_TEST_IR_MODULE_H

#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static Arena arena;
static Names names;
static Types types;
static Sources sources;
static Diags diags;
static Module *module;
static const char *message;

static inline void keep_message(void *user, const Diagnostic *diagnostic) {
    (void)user;
    message =
        format_text(&arena, "%d:%d: %s", diagnostic->at.line, diagnostic->at.column, diagnostic->message);
}

static inline int set_up(void **state) {
    (void)state;
    arena_init(&arena, allocator_system, NULL);
    names_init(&names, &arena, NULL);
    types_init(&types, &arena, &names);
    sources_init(&sources, &arena, NULL);
    diags_init(&diags, &arena, &sources);
    diags.sink = keep_message;
    message = "";
    module = module_new(&arena, &types, &names, &diags);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    arena_free(&arena);
    return 0;
}

static inline bool parse(const char *text) {
    bool fine = ir_parse(module, source_add(&sources, name_from(&names, "text"), str_of(text)));
    diags_flush(&diags);
    return fine;
}

static inline const char *print_func(const Func *func) {
    Text text = {.arena = &arena};
    ir_print_func(&text, func);
    return text.at;
}

#endif
