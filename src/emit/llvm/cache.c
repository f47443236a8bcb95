/* Machine code of earlier runs. It is found by all that it depends on: the LLVM module as it was translated,
 * how that is to be compiled, and by what. The driver keeps it, see EmitCache. */
#define _GNU_SOURCE /* dladdr */
#include "emit/llvm/llvm.h"
#include <dlfcn.h>
#include <llvm-c/BitWriter.h>
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The file that this code is in: another build may choose other passes. */
static bool own_file(struct stat *out) {
    Dl_info info;
    void *self;
    const EmitBackend *(*function)(void) = slope_llvm_backend;
    memcpy(&self, &function, sizeof self); /* ISO C has no such cast */
    return dladdr(self, &info) && info.dli_fname && stat(info.dli_fname, out) == 0;
}

/* As text in `head`; the length that it has, or would have. */
static int describe(const Translation *t, const EmitOptions *options, char *head, size_t room) {
    struct stat own;
    if (!own_file(&own)) return -1;
    char *cpu = LLVMGetTargetMachineCPU(t->machine),
         *features = LLVMGetTargetMachineFeatureString(t->machine);
    int length = snprintf(
        head, room, "LLVM %s, built %lld.%09ld %lld, for %s %s, level %d, floats %d, sanitize %d\n",
        LLVM_VERSION_STRING, (long long)own.st_mtim.tv_sec, own.st_mtim.tv_nsec, (long long)own.st_size, cpu,
        features, options->level, (int)options->floats, options->sanitize);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return length;
}

CacheKey cache_key(const Translation *t, const EmitOptions *options) {
    int length = describe(t, options, NULL, 0);
    if (length < 0) return (CacheKey){0};
    LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(t->llvm);
    size_t size = LLVMGetBufferSize(code);
    CacheKey key = {malloc((size_t)length + 1 + size), (size_t)length + size};
    if (key.bytes) {
        describe(t, options, key.bytes, (size_t)length + 1);
        memcpy(key.bytes + length, LLVMGetBufferStart(code), size);
    }
    LLVMDisposeMemoryBuffer(code);
    return key;
}

LLVMMemoryBufferRef cache_find(const EmitCache *cache, const CacheKey *key) {
    size_t size;
    char *bytes = key->bytes ? cache->find(cache->user, key->bytes, key->size, &size) : NULL;
    if (!bytes) return NULL;
    LLVMMemoryBufferRef object = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, "cached");
    free(bytes);
    return object;
}

void cache_keep(const EmitCache *cache, const CacheKey *key, LLVMMemoryBufferRef object) {
    if (key->bytes)
        cache->keep(cache->user, key->bytes, key->size, LLVMGetBufferStart(object),
                    LLVMGetBufferSize(object));
}
