/* NVRTC that only pretends, libnvrtc.so.13: compiled code is its source, which is written to the file
 * FAKE_SOURCE. FAKE_LOG and FAKE_FAIL as in fake.h. */
#include "fake.h"
#include <stdint.h>

#define NVRTC_CALL(name, params) API name params;
#include "runtime/cuda.def"

API nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}
API nvrtcCreateProgram(void **program, const char *source, const char *name, int n, const char *const *a,
                       const char *const *b) {
    (void)name, (void)n, (void)a, (void)b;
    FILE *file = getenv("FAKE_SOURCE") ? fopen(getenv("FAKE_SOURCE"), "w") : NULL;
    if (file) {
        fputs(source, file);
        fclose(file);
    }
    *program = strdup(source);
    return called("nvrtcCreateProgram");
}
API nvrtcDestroyProgram(void **program) {
    free(*program);
    return called("nvrtcDestroyProgram");
}
API nvrtcCompileProgram(void *program, int noptions, const char *const *options) {
    char line[256] = "nvrtcCompileProgram";
    (void)program;
    int status = called(line);
    for (int i = 0; i < noptions; i++) snprintf(line, sizeof line, "    %s", options[i]), called(line);
    return status;
}
API nvrtcGetProgramLogSize(void *program, size_t *size) {
    (void)program;
    *size = 32;
    return 0;
}
API nvrtcGetProgramLog(void *program, char *log) {
    (void)program;
    snprintf(log, 32, "a mistake in line 3");
    return 0;
}
API nvrtcGetNumSupportedArchs(int *count) {
    *count = 2;
    return 0;
}
API nvrtcGetSupportedArchs(int *archs) {
    archs[0] = 80;
    archs[1] = 90;
    return 0;
}
API nvrtcGetCUBINSize(void *program, size_t *size) {
    *size = strlen(program) + 1;
    return 0;
}
API nvrtcGetCUBIN(void *program, char *code) {
    memcpy(code, program, strlen(program) + 1);
    return called("nvrtcGetCUBIN");
}
API nvrtcGetPTXSize(void *program, size_t *size) { return nvrtcGetCUBINSize(program, size); }
API nvrtcGetPTX(void *program, char *code) {
    memcpy(code, program, strlen(program) + 1);
    return called("nvrtcGetPTX");
}
