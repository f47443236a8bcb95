/* The targets by name, from the rows of targets.def. */
#include "emit/clike/clike.h"
#include "emit/interp/interp.h"

enum {
    JUMPS = TARGET_JUMPS,
    POINTERS = TARGET_POINTERS,
    GROWING_TAPES = TARGET_GROWING_TAPES,
    BARRIERS = TARGET_BARRIERS,
    RECURSION = TARGET_RECURSION,
    WAVES = TARGET_WAVES,
    SOURCE = TARGET_SOURCE,
    LINKED = TARGET_LINKED,
    COMPILED = TARGET_COMPILED,
    MANY_THREADS = TARGET_MANY_THREADS,
    CHECKED = TARGET_CHECKED,
    OWN_THREADS = TARGET_OWN_THREADS,
    PLAIN_SUMS = TARGET_PLAIN_SUMS,
    DEVICE = TARGET_DEVICE,
    LANES = TARGET_LANES,
    KEEPS_ORDER = TARGET_KEEPS_ORDER,
    STARTS = TARGET_STARTS,
    HEADERS = TARGET_HEADERS,
    INTEGERS = BACKEND_LACKS_INTEGERS,
    SHORT = BACKEND_LACKS_SHORT,
    HALVES = BACKEND_LACKS_HALVES,
    ZEROS = BACKEND_LACKS_ZEROS,
    CLAMPS = BACKEND_LACKS_CLAMPS,
    UNUSED = BACKEND_LACKS_UNUSED,
};

static const EmitTarget targets[] = {
#define TARGET(id, name, extension, backend, capabilities)                                                   \
    {name, extension, EMIT_##id, EMIT_BACKEND_##backend, capabilities},
#include "emit/targets.def"
};

static const EmitMaker makers[] = {
#define BACKEND(id, library, function, lacks) {library, "slope_" #id "_backend", lacks, function},
#include "emit/targets.def"
};

const EmitTarget *emit_target(int index) {
    return index >= 0 && index < (int)(sizeof targets / sizeof *targets) ? &targets[index] : NULL;
}

const EmitTarget *emit_find_target(const char *name) {
    for (int i = 0; emit_target(i); i++)
        if (strcmp(targets[i].name, name) == 0) return &targets[i];
    return NULL;
}

const EmitTarget *emit_header_target(const EmitTarget *target) {
    return target->capabilities & TARGET_SOURCE ? target : &targets[EMIT_c];
}

const EmitMaker *emit_maker(EmitBackendId id) { return &makers[id]; }

uint32_t emit_target_lacks(const EmitTarget *target) {
    bool has_pointers = (target->capabilities & TARGET_POINTERS) != 0;
    return emit_maker(target->backend)->lacks | (has_pointers ? 0 : BACKEND_LACKS_VIEWS);
}
