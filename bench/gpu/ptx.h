/* For the benchmarks: kernels of PTX that Slope has made by LLVM, in place of those of the CUDA C++ beside
 * them, whose host functions call these (bench/gpu/run.py writes them so). The file is named by the variable
 * SLOPE_PTX; how long the driver took to load it goes to standard error. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <fstream>
#include <sstream>

static void ptx_check(CUresult status) {
    const char *text = "";
    if (status == CUDA_SUCCESS) return;
    cuGetErrorString(status, &text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static CUmodule ptx_module() {
    static CUmodule module;
    if (module) return module;
    std::stringstream text;
    text << std::ifstream(getenv("SLOPE_PTX")).rdbuf();
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, 256 << 20); /* for tapes */
    const auto start = std::chrono::steady_clock::now();
    ptx_check(cuModuleLoadData(&module, text.str().c_str()));
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    fprintf(stderr, "loaded in %.1f ms\n", spent.count());
    return module;
}

static cudaError_t ptx_set(const char *name, const void *value, size_t size, size_t offset = 0) {
    CUdeviceptr address;
    ptx_check(cuModuleGetGlobal(&address, nullptr, ptx_module(), name));
    ptx_check(cuMemcpyHtoD(address + offset, value, size));
    return cudaSuccess;
}

template <typename... Args> static void ptx_launch(const char *name, dim3 groups, dim3 size, Args... args) {
    static CUfunction function;
    void *pointers[] = {(void *)&args..., nullptr};
    if (!function) ptx_check(cuModuleGetFunction(&function, ptx_module(), name));
    ptx_check(cuLaunchKernel(function, groups.x, groups.y, groups.z, size.x, size.y, size.z, 0, 0, pointers,
                             nullptr));
}
