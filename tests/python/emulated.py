"""A GPU that is none: CUDA source compiled by g++ and run thread by thread, tensors of the CPU in place of those of a device.

What Python hands to the driver (arguments, their order, their layout) is the same, so that it is tested where there is no GPU.
"""
import ctypes
import subprocess

import torch
from slope import cuda

SHIM = r"""
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
struct Index { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static Index blockIdx, threadIdx, blockDim = {256, 1, 1}, gridDim;
#define __device__
#define __global__
#define __noinline__
#define __shared__
#define __constant__
#define __launch_bounds__(size)
#define __CUDACC_RTC__
#define int64_t other_int64_t
#define intptr_t other_intptr_t
#define uint64_t other_uint64_t
#define asm(...) lane = 0
#define static_assert(...)
static int __ffs(int value) { return __builtin_ffs(value); }
static bool __isLocal(void *p) { char here; return llabs((char *)p - &here) < 1 << 20; } // of the stack
static unsigned __activemask() { return 1; }
static void __syncwarp() {}
static void __syncthreads() {}
static bool __all_sync(unsigned, bool value) { return value; }
template <class T> T __shfl_xor_sync(unsigned, T value, int) { return value; }
static void __match_all_sync(unsigned, unsigned long long, int *same) { *same = 1; }
template <class T> T __shfl_sync(unsigned, T value, int) { return value; }
template <class T> T __shfl_down_sync(unsigned, T value, int) { return value; }
template <class T> T atomicAdd(T *to, T value) { T old = *to; *to += value; return old; }
template <class T> T atomicSub(T *to, T value) { T old = *to; *to -= value; return old; }
template <class T> T atomicCAS(T *to, T expected, T value) { T old = *to; if (old == expected) *to = value; return old; }
static void __threadfence() {}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static float __int_as_float(int bits) { float value; memcpy(&value, &bits, 4); return value; }
static void __trap() { abort(); }
extern "C" void __assertfail(const char *, const char *, unsigned, const char *, size_t) { abort(); }
"""
ENTRY = r"""
template <class... A, size_t... I> static void call(void (*kernel)(A...), void **values, std::index_sequence<I...>) {
    kernel(*(A *)values[I]...);
}
template <class... A> static void spread(void (*kernel)(A...), void **values) {
    call(kernel, values, std::index_sequence_for<A...>());
}
extern "C" void run(unsigned groups, unsigned threads, void **values) {
    for (blockIdx.x = 0; blockIdx.x < groups; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) spread(slope::NAME, values);
}
"""


class Driver:
    """What of the driver is called besides launches."""

    def call(self, name, address, memory, size, stream):
        assert name == "cuMemcpyHtoDAsync_v2"
        ctypes.memmove(address, memory, size.value)


class Device(cuda.Device):
    def __init__(self, folder):
        self.folder, self.index, self.place, self.capability, self.has_heap = folder, 0, torch.device("cpu"), (9, 0), True
        self.driver, self.launches = Driver(), 0

    def current(self):
        return cuda.contextlib.nullcontext()

    def load(self, code):
        return ctypes.CDLL(code.image)

    def function(self, module, symbol):
        return module.run

    def variable(self, module, symbol):
        name, size = symbol.decode().split(":")
        find = getattr(module, f"where_{name}")
        find.restype = ctypes.c_void_p
        return find(), int(size)

    def stream(self):
        return None

    def launch(self, function, groups, threads, arguments):
        self.launches += 1
        function(groups, threads, arguments)


def compile_source(folder, source, names):
    """A library of the host in place of code for a device; what is asked for by name are uniforms, all of four bytes here."""
    number = len(list(folder.iterdir()))
    file, library = folder / f"{number}.cpp", folder / f"{number}.so"
    uniforms = "".join(f'extern "C" void *where_{name.split("::")[1]}() {{ return &{name.lstrip("&")}; }}\n' for name in names)
    file.write_text(SHIM + source + ENTRY.replace("NAME", f"slope_{cuda.ROWS}") + uniforms)
    subprocess.run(["g++", "-shared", "-fPIC", "-std=c++17", "-w", str(file), "-o", str(library)], check=True)
    return cuda.Code(str(library), {name: f"{name.split('::')[1]}:4".encode() for name in names})


def emulate(monkeypatch, folder):
    """Tensors of the CPU are now those of a device, which is given back."""
    from slope import _derivatives, _module, _types
    device = Device(folder)

    def on_device(value):
        if isinstance(value, (dict, list, tuple)):
            return any(map(on_device, value.values() if isinstance(value, dict) else value))
        return isinstance(value, (torch.Tensor, cuda.DeviceArray))

    for module in (_types, _module, _derivatives):
        monkeypatch.setattr(module, "on_device", on_device)
    monkeypatch.setattr(cuda.Device, "find", classmethod(lambda cls, index: device))
    monkeypatch.setattr(cuda, "compile_source", lambda source, names, *_: compile_source(folder, source, names))
    monkeypatch.setattr("slope.torch.memory_of", lambda tensor, name: tensor.detach())
    return device
