/* What tests of the emitter share: finding the plugin, and a program in memory. */
#ifndef JITLOAD_H
#define JITLOAD_H

#include "emit/emit.h"
#include "runtime/runtime.h"

/* The LLVM emitter, from the folder above that of the running program; NULL after a message on stderr. */
const EmitBackend *jit_load_backend(void);
const char *jit_runtime_library(char *buffer, size_t size); /* libslope-rt.a beside it */

void jit_legalize(
    Module *module,
    const EmitBackend *backend); /* as the driver does before code is made; jit_compile does it */

typedef struct JitProgram {
    const EmitBackend *backend;
    Runtime *runtime;
    EmitJit *jit;
} JitProgram;

/* False after a message on stderr. */
bool jit_open(JitProgram *program, const EmitBackend *backend, const RuntimeConfig *config);
bool jit_compile(JitProgram *program, Module *module, const EmitOptions *options);
void jit_close(JitProgram *program);

#endif
