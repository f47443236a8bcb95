/* Code as bytes and files: LLVM IR, assembly, objects, and shared libraries and programs, which the system's
 * C compiler links. */
#include "emit/llvm/llvm.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct Bytes {
    char *at; /* NUL behind the last; NULL: none */
    size_t size;
} Bytes;

static Bytes bytes_copy(const char *data, size_t size, EmitError *error) {
    Bytes bytes = {malloc(size + 1), size};
    if (!bytes.at) {
        error_set(error, "out of memory");
        return bytes;
    }
    memcpy(bytes.at, data, size);
    bytes.at[size] = '\0';
    return bytes;
}

/* ---- files */

static bool write_all(int file, const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_file(const char *path, int file, Bytes bytes, EmitError *error) {
    bool fine = file >= 0 && write_all(file, bytes.at, bytes.size);
    int reason = errno;
    if (file >= 0 && close(file) != 0) {
        fine = false;
        reason = errno;
    }
    if (!fine) error_set(error, "cannot write '%s': %s", path, strerror(reason));
    return fine;
}

static Bytes read_file(const char *path, EmitError *error) {
    Bytes bytes = {0};
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &about) == 0) {
        bytes.size = (size_t)about.st_size;
        bytes.at = calloc(1, bytes.size + 1);
        size_t have = 0;
        while (bytes.at && have < bytes.size) {
            ssize_t got = read(file, bytes.at + have, bytes.size - have);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            have += (size_t)got;
        }
        if (have < bytes.size) {
            free(bytes.at);
            bytes.at = NULL;
        }
    }
    if (!bytes.at) error_set(error, "cannot read '%s': %s", path, strerror(errno));
    if (file >= 0) close(file);
    return bytes;
}

/* ---- machine code */

static void name_everywhere(LLVMModuleRef module, const char *name, const char *value) {
    unsigned length = (unsigned)strlen(name);
    LLVMAttributeRef named =
        LLVMCreateStringAttribute(LLVMGetModuleContext(module), name, length, value, (unsigned)strlen(value));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !LLVMGetStringAttributeAtIndex(f, of_function, name, length))
            LLVMAddAttributeAtIndex(f, of_function, named);
}

/* Whoever compiles the text has to know the processor: a sine of eight floats is passed them in one register,
 * and in two where the processor has none of that size, which the library's sine does not expect. */
static void name_processor(const Translation *t) {
    char *cpu = LLVMGetTargetMachineCPU(t->machine),
         *features = LLVMGetTargetMachineFeatureString(t->machine);
    name_everywhere(t->llvm, "target-cpu", cpu);
    name_everywhere(t->llvm, "target-features", features);
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(cpu);
}

static Bytes print_module(const Translation *t, EmitError *error) {
    name_processor(t);
    char *text = LLVMPrintModuleToString(t->llvm);
    Bytes bytes = bytes_copy(text, strlen(text), error);
    LLVMDisposeMessage(text);
    return bytes;
}

static Bytes machine_code(const Translation *t, LLVMCodeGenFileType type, EmitError *error) {
    char *message = NULL;
    LLVMMemoryBufferRef buffer;
    if (LLVMTargetMachineEmitToMemoryBuffer(t->machine, t->llvm, type, &message, &buffer)) {
        error_set(error, "no machine code: %s", message);
        LLVMDisposeMessage(message);
        return (Bytes){0};
    }
    Bytes bytes = bytes_copy(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer), error);
    LLVMDisposeMemoryBuffer(buffer);
    return bytes;
}

/* ---- shared libraries and programs */

static bool run_linker(char *const *command, EmitError *error) {
    pid_t child;
    int status = 0;
    int reason = posix_spawnp(&child, command[0], NULL, NULL, command, environ);
    if (reason != 0) {
        error_set(error, "a C compiler is needed to link, and '%s' cannot be run: %s", command[0],
                  strerror(reason));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        error_set(error, "a C compiler is needed to link, and there is no '%s'", command[0]);
    else error_set(error, "'%s' could not link the program", command[0]);
    return false;
}

enum { LONGEST_PATH = 4096 }; /* that the system takes */

/* What is made, by way of files in a folder of its own. */
typedef struct Link {
    const Translation *t;
    const char *runtime;
    bool is_program, sanitizes;
    char folder[LONGEST_PATH], object[LONGEST_PATH], start[LONGEST_PATH], result[LONGEST_PATH];
} Link;

static bool link_files(const Link *link, EmitError *error) {
    if (link->t->uses_runtime && !link->runtime) {
        error_set(error, "the program needs Slope's runtime, and there is no libslope-rt.a to link");
        return false;
    }
    const char *command[12] = {"cc", link->is_program ? "-O1" : "-shared", "-o", link->result, link->object};
    int count = 5;
    if (link->is_program) command[count++] = link->start;
    if (link->is_program && link->sanitizes) command[count++] = "-fsanitize=address";
    if (link->t->uses_runtime) command[count++] = link->runtime;
    command[count++] = "-lm";
    command[count] = "-pthread";
    return run_linker((char *const *)(uintptr_t)command, error);
}

/* Where a program starts: one group of `main`. */
static bool write_start(const Link *link, EmitError *error) {
    char text[] = "void slope_main(unsigned, unsigned, unsigned);\n"
                  "int main(void) { slope_main(1, 1, 1); return 0; }\n";
    if (!link->is_program) return true;
    if (!LLVMGetNamedFunction(link->t->llvm, "slope_main")) {
        error_set(error, "a program starts at a function main, which there is not");
        return false;
    }
    int file = open(link->start, O_WRONLY | O_CREAT | O_EXCL, 0600);
    return write_file(link->start, file, (Bytes){text, sizeof text - 1}, error);
}

static bool join_path(char *out, const char *folder, const char *name) {
    return snprintf(out, LONGEST_PATH, "%s/%s", folder, name) < LONGEST_PATH;
}

static bool name_files(Link *link) {
    return join_path(link->object, link->folder, "program.o") &&
           join_path(link->start, link->folder, "start.c") &&
           join_path(link->result, link->folder, "program");
}

static bool open_link(Link *link, EmitError *error) {
    const char *place = getenv("TMPDIR");
    if (!place || !*place) place = "/tmp";
    bool fits = join_path(link->folder, place, "slope-XXXXXX") && name_files(link);
    if (fits && mkdtemp(link->folder)) return name_files(link);
    error_set(error, "cannot make a folder in '%s': %s", place, strerror(fits ? errno : ENAMETOOLONG));
    return false;
}

static void close_link(const Link *link) {
    unlink(link->object);
    unlink(link->start);
    unlink(link->result);
    rmdir(link->folder);
}

static Bytes linked(const Translation *t, const EmitOptions *options, const EmitFile *file,
                    EmitError *error) {
    Link link = {.t = t,
                 .runtime = file->runtime_library,
                 .is_program = file->format == EMIT_exe,
                 .sanitizes = options->sanitize};
    Bytes object = machine_code(t, LLVMObjectFile, error), result = {0};
    if (object.at && open_link(&link, error)) {
        int out = open(link.object, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (write_file(link.object, out, object, error) && write_start(&link, error) &&
            link_files(&link, error))
            result = read_file(link.result, error);
        close_link(&link);
    }
    free(object.at);
    return result;
}

/* ---- entries */

static Bytes make(const Translation *t, const EmitOptions *options, const EmitFile *file, EmitError *error) {
    switch (file->format) {
    case EMIT_llvm_ir: return print_module(t, error);
    case EMIT_ptx:
    case EMIT_asm: return machine_code(t, LLVMAssemblyFile, error);
    case EMIT_obj: return machine_code(t, LLVMObjectFile, error);
    case EMIT_shared:
    case EMIT_exe: return linked(t, options, file, error);
    default: break; /* of other backends */
    }
    return (Bytes){0};
}

static Bytes make_anew(Translation *t, const EmitOptions *options, const EmitFile *file, EmitTimes *times,
                       EmitError *error) {
    Bytes bytes = {0};
    bool for_device = file->target && (file->target->capabilities & TARGET_DEVICE);
    bool fine = translation_optimise(t, options, times, error) && (!for_device || device_lower(t, error));
    double start = milliseconds();
    if (fine) bytes = make(t, options, file, error);
    if (times) times->machine += milliseconds() - start;
    return bytes;
}

static Bytes find_or_make(Translation *t, const EmitOptions *options, const EmitFile *file, EmitTimes *times,
                          EmitError *error) {
    Bytes bytes = {0};
    if (!file->cache) return make_anew(t, options, file, times, error);
    CacheKey key = cache_key(t, options);
    size_t size;
    char *known = key.bytes ? file->cache->find(file->cache->user, key.bytes, key.size, &size) : NULL;
    if (known) bytes = bytes_copy(known, size, error);
    else {
        bytes = make_anew(t, options, file, times, error);
        if (bytes.at && key.bytes)
            file->cache->keep(file->cache->user, key.bytes, key.size, bytes.at, bytes.size);
    }
    free(known);
    free(key.bytes);
    return bytes;
}

char *file_make(Module *module, const EmitOptions *options, const EmitFile *file, size_t *size,
                EmitTimes *times, EmitError *error) {
    Translation t;
    bool for_device = file->target && (file->target->capabilities & TARGET_DEVICE);
    TranslateWish wish = {.device = for_device ? file : NULL};
    if (!translate(module, options, &wish, &t, times, error)) return NULL;
    Bytes bytes = find_or_make(&t, options, file, times, error);
    translation_free(&t);
    *size = bytes.size;
    return bytes.at;
}

bool file_write(Module *module, const EmitOptions *options, const EmitFile *file, EmitTimes *times,
                EmitError *error) {
    Bytes bytes;
    bytes.at = file_make(module, options, file, &bytes.size, times, error);
    if (!bytes.at) return false;
    mode_t rights = file->target->capabilities & TARGET_LINKED ? 0777 : 0666;
    bool fine = write_file(file->path, open(file->path, O_WRONLY | O_CREAT | O_TRUNC, rights), bytes, error);
    free(bytes.at);
    return fine;
}
