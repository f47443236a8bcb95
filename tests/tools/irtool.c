/* irtool FILE [PASS,...]: reads IR text, runs passes, prints the result.
 *
 * The passes come from the command line, or from a line `; RUN-PASSES: ssa,dce` of the file; none: the text
 * is only read and printed. Every function is verified after reading and after each pass; a pass that breaks
 * one is named. `print` in the list is no pass: it prints what there is so far. `widen` adds a copy in double
 * of each function, or says in a comment why there is none, and `hold` changes these copies. Exit status: 0
 * fine, 1 not. */
#include "irtool.h"
#include "gradcheck/copy.h"
#include "opt/opt.h"

#include <stdio.h>
#include <stdlib.h>

static Str passes_in_text(Str text) {
    static const char key[] = "; RUN-PASSES:";
    for (int i = 0; i + (int)sizeof key < text.len; i++) {
        if (strncmp(text.at + i, key, sizeof key - 1) != 0) continue;
        const char *start = text.at + i + sizeof key - 1, *end = start;
        while (*end && *end != '\n') end++;
        return (Str){start, (int)(end - start)};
    }
    return STR("");
}

static bool verify_all(Arena *arena, const Module *module, const char *after) {
    for (int i = 0; i < module->funcs.count; i++) {
        const char *wrong = ir_verify(arena, module->funcs.at[i]);
        if (!wrong) continue;
        fprintf(stderr, "after %s: %s\n", after, wrong);
        return false;
    }
    return true;
}

static void print_module(Arena *arena, const Module *module) {
    Text text = {.arena = arena};
    ir_print_module(&text, module);
    fputs(text.at ? text.at : "", stdout);
}

static void widen_all(Module *module) {
    Widener widener = {.module = module};
    int count = module->funcs.count;
    for (int i = 0; i < count; i++)
        if (!gradcheck_widen(&widener, module->funcs.at[i], false))
            printf("; no copy of %s: %s\n", module->funcs.at[i]->name->text, widener.wrong);
}

static void hold_all(Arena *arena, Module *module) {
    VEC(Func *) roots = {0};
    for (int i = 0; i < module->funcs.count; i++) {
        Func *func = module->funcs.at[i];
        bool is_copy = str_ends(str_of(func->name->text), ".wide");
        if (is_copy && func->body) vec_push(arena, &roots, func);
    }
    gradcheck_hold(module, roots.at, roots.count);
}

static bool run_pass(Arena *arena, Module *module, const char *name) {
    if (strcmp(name, "print") == 0) return print_module(arena, module), true;
    if (strcmp(name, "widen") == 0) return widen_all(module), verify_all(arena, module, name);
    if (strcmp(name, "hold") == 0) return hold_all(arena, module), verify_all(arena, module, name);
    int count = module->funcs.count; /* not those that a pass adds */
    for (int i = 0; i < count; i++) {
        if (!module->funcs.at[i]->body) continue;
        if (!tool_run_pass(module->funcs.at[i], name, NULL)) {
            fprintf(stderr, "there is no pass '%s'\n", name);
            return false;
        }
    }
    return verify_all(arena, module, name);
}

static bool run_passes(Arena *arena, Module *module, Str list) {
    for (int i = 0; i < list.len;) {
        int start = i;
        while (i < list.len && list.at[i] != ',' && list.at[i] != ' ') i++;
        char *name = format_text(arena, "%.*s", i - start, list.at + start);
        if (i > start && !run_pass(arena, module, name)) return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv) {
    ToolSession session;
    Str text;
    bool fine = tool_open(&session, argc > 1 ? argv[1] : "-", &text) &&
                verify_all(&session.arena, session.module, "reading") &&
                run_passes(&session.arena, session.module, argc > 2 ? str_of(argv[2]) : passes_in_text(text));
    diags_flush(&session.diags);
    if (fine) print_module(&session.arena, session.module);
    arena_free(&session.arena);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
