/* Programs that have the library ready and nothing else: what a load begins with.
 *
 * The checker writes what it finds out about the library into the library's tree, together with what it finds
 * out about the program, and most of the time that a small program takes goes there, each time the same. So a
 * session keeps how a program was before its text was read: with the declarations that earlier programs asked
 * for, their headers checked. When such a program is freed, it is set back to that, byte for byte and at the
 * same addresses, and waits for the next text: nothing that it wrote is left, and nobody needs to know what
 * that was. Programs that live at the same time have one each.
 *
 * The first program of a session begins with what its text names, as far as words tell (library_expect), so
 * that the second finds a start already. Later ones are made anew when programs ask for much that is not in
 * them. What a start takes is not counted among what a program may take, so that programs may do the same
 * whatever came before them. */
#include "driver.h"

typedef struct Start {
    SlopeProgram program;
    ArenaImage *memory;
} Start;

enum { MOST_READY = 4 }; /* that wait: who has more programs at a time starts them anew */

static void free_start(SlopeProgram *program) {
    Allocator allocator = program->session->allocator;
    Start *start = program->start;
    arena_image_free(start->memory, allocator);
    allocator.resize(allocator.user, start, sizeof *start, 0);
}

static void free_ready(SlopeProgram *program) {
    Allocator allocator = program->session->allocator;
    free_start(program);
    arena_free(&program->arena);
    allocator.resize(allocator.user, program, sizeof *program, 0);
}

/* Without memory for it, the program is one like any other. */
static void save_start(SlopeProgram *program) {
    Allocator allocator = program->session->allocator;
    Start *start = allocator.resize(allocator.user, NULL, 0, sizeof *start);
    if (!start) return;
    start->memory = arena_save(&program->arena, allocator);
    program->start = start;
    start->program = *program;
    if (start->memory) return;
    free_start(program);
    program->start = NULL;
}

void driver_make_ready(SlopeProgram *program) {
    SlopeSession *session = program->session;
    size_t most_bytes = program->limits.most_bytes;
    names_init(&program->names, &program->arena, &session->names);
    sources_init(&program->sources, &program->arena, &session->sources);
    types_init(&program->types, &program->arena, &program->names);
    program->limits.most_bytes = 0;
    bool again = driver_begin(program);
    program->limits.most_bytes = most_bytes ? most_bytes + program->limits.bytes : 0;
    if (again) save_start(program);
}

SlopeProgram *driver_take_ready(SlopeSession *session) {
    SlopeProgram *program = session->ready;
    if (program) session->ready = program->next;
    return program;
}

static int count_ready(const SlopeSession *session) {
    int count = 0;
    for (const SlopeProgram *program = session->ready; program; program = program->next) count++;
    return count;
}

bool driver_set_back(SlopeProgram *program) {
    SlopeSession *session = program->session;
    Start *start = program->start;
    if (!start) return false;
    if (session->broken || count_ready(session) >= MOST_READY) {
        free_start(program);
        return false;
    }
    arena_restore(&program->arena, start->memory);
    *program = start->program;
    program->prev = NULL;
    program->next = session->ready;
    session->ready = program;
    return true;
}

void driver_free_ready(SlopeSession *session) {
    for (SlopeProgram *program; (program = driver_take_ready(session));) free_ready(program);
}
