/* IR as text, through its parser, the verifier and all passes. What the verifier accepts every pass must
 * leave in order. */
#include "irtool.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>

static void must_be_sound(ToolSession *session, const char *after) {
    for (int i = 0; i < session->module->funcs.count; i++) {
        const char *wrong = ir_verify(&session->arena, session->module->funcs.at[i]);
        if (!wrong) continue;
        fprintf(stderr, "after %s: %s\n", after, wrong);
        abort();
    }
}

static bool is_sound(ToolSession *session) {
    for (int i = 0; i < session->module->funcs.count; i++)
        if (ir_verify(&session->arena, session->module->funcs.at[i])) return false;
    return true;
}

static void run_passes(ToolSession *session) {
    for (int pass = 0; tool_pass_name(pass); pass++) {
        int count = session->module->funcs.count;
        for (int i = 0; i < count; i++)
            if (session->module->funcs.at[i]->body)
                tool_run_pass(session->module->funcs.at[i], tool_pass_name(pass), NULL);
        must_be_sound(session, tool_pass_name(pass));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ToolSession session;
    Trap trap;
    if (size > 1 << 16) return 0;
    tool_begin(&session);
    session.arena.trap = &trap;
    if (setjmp(trap.at) == 0) {
        char *text = arena_take(&session.arena, size + 1);
        if (size) memcpy(text, data, size);
        bool fine = tool_parse(&session, "fuzz.ir", (Str){text, (int)size}) && session.diags.errors == 0;
        if (fine && is_sound(&session)) run_passes(&session);
    } else if (trap.why == TRAP_fault) {
        fprintf(stderr, "%s\n", trap.what);
        abort();
    }
    arena_free(&session.arena);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    return mutate_text(data, size, room, seed);
}
