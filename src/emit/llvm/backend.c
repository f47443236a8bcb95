/* The entry of the shared object. */
#include "emit/llvm/llvm.h"
#include <llvm/Config/llvm-config.h>

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const EmitBackend *
slope_llvm_backend(void) {
    static const EmitBackend backend = {.name = "llvm",
                                        .version = LLVM_VERSION_STRING,
                                        .jit_new = jit_new,
                                        .jit_free = jit_free,
                                        .jit_add = jit_add,
                                        .jit_find = jit_find,
                                        .jit_call = jit_call,
                                        .forget = target_forget,
                                        .write = file_write,
                                        .make = file_make};
    return &backend;
}
