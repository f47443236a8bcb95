/* See jitload.h. */
#include "jitload.h"
#include "opt/opt.h"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static bool beside_program(char *buffer, size_t size, const char *name) {
    ssize_t length = readlink("/proc/self/exe", buffer, size - 1);
    if (length < 0) return false;
    buffer[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(buffer, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    size_t used = strlen(buffer);
    return (size_t)snprintf(buffer + used, size - used, "/%s", name) < size - used;
}

const char *jit_runtime_library(char *buffer, size_t size) {
    return beside_program(buffer, size, "libslope-rt.a") ? buffer : NULL;
}

const EmitBackend *jit_load_backend(void) {
    char path[4096];
    if (!beside_program(path, sizeof path, "libslope-llvm.so")) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    union {
        void *data;
        EmitBackendFunction *function;
    } found = {library ? dlsym(library, emit_maker(EMIT_BACKEND_llvm)->symbol) : NULL};
    if (!found.data) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    return found.function();
}

bool jit_open(JitProgram *program, const EmitBackend *backend, const RuntimeConfig *config) {
    EmitError error;
    EmitJitConfig jit = {0};
    *program = (JitProgram){.backend = backend, .runtime = runtime_new(config)};
    jit.runtime = program->runtime;
    jit.symbols = runtime_symbols(&jit.nsymbols);
    program->jit = backend->jit_new(&jit, &error);
    if (!program->jit) fprintf(stderr, "%s\n", error.text);
    return program->jit != NULL;
}

void jit_legalize(Module *module, const EmitBackend *backend) {
    bool lacks = strcmp(backend->name, "interp") != 0;
    LegalOptions options = {.integers = lacks, .clamps = lacks, .halves = lacks, .zeros = lacks};
    for (int i = 0; i < module->funcs.count; i++) opt_legalize(module->funcs.at[i], options);
}

bool jit_compile(JitProgram *program, Module *module, const EmitOptions *options) {
    EmitError error;
    EmitTimes times = {0};
    jit_legalize(module, program->backend);
    bool fine = program->backend->jit_add(program->jit, module, options, &times, &error);
    if (!fine) fprintf(stderr, "%s\n", error.text);
    return fine;
}

void jit_close(JitProgram *program) {
    program->backend->jit_free(program->jit);
    runtime_free(program->runtime);
}
