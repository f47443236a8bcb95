#!/usr/bin/env python3
"""What a call from Python costs: of one number, and per row of a million, against numpy and (where it is) PyTorch; all in one run.

    SLOPE_LIBRARY=build PYTHONPATH=python python3 bench/python.py [--one-core]    only what lanes gain on one core
"""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import slope

PROGRAM = """
[Differentiable] float wave(float x, float y) { return sin(x) * y + x * x; }
[Differentiable] float3 reflected(float3 d, float3 n) { return d - 2 * dot(d, n) * n; }
[Differentiable] float orbit(float3 p) {
    float3 v = float3(0.1, 0.2, 0.3);
    for (int i = 0; i < 16; i++) { v -= 0.1 * p / (dot(p, p) + 0.5); p += 0.1 * v; }
    return length(p);
}
"""
ROWS = 1_000_000


def seconds(call, least=0.2, clock=time.perf_counter):
    """The best of five, each long enough to be measured."""
    count, best = 1, float("inf")
    while True:
        start = clock()
        for _ in range(count):
            call()
        spent = clock() - start
        if spent > least / 5:
            break
        count *= 2
    for _ in range(5):
        start = clock()
        for _ in range(count):
            call()
        best = min(best, (clock() - start) / count)
    return best


def show(name, figures, unit, scale):
    print(f"{name:28}" + "".join(f"{label} {value * scale:9.2f} {unit}   " for label, value in figures))


def torch_if_there():
    try:
        import torch
        return torch
    except ImportError:
        return None


def torch_wave(torch, x, y, wait):
    """The same in PyTorch, as it is and compiled; `wait` is until all is done."""
    found = [("torch", seconds(lambda: (torch.sin(x) * y + x * x, wait())))]
    if hasattr(torch, "compile"):
        compiled = torch.compile(lambda a, b: torch.sin(a) * b + a * a)
        found.append(("torch.compile", seconds(lambda: (compiled(x, y), wait()))))
    return found


def torch_slopes(torch, x, y, wait):
    leaf = x.clone().requires_grad_()
    found = [("torch", seconds(lambda: (torch.autograd.grad((torch.sin(leaf) * y + leaf * leaf).sum(), leaf), wait())))]
    if hasattr(torch, "compile"):
        compiled = torch.compile(lambda a, b: (torch.sin(a) * b + a * a).sum())
        found.append(("torch.compile", seconds(lambda: (torch.autograd.grad(compiled(leaf, y), leaf), wait()))))
    return found


C = """
#include <math.h>
void wave(const float *x, const float *y, float *out, long n) { for (long i = 0; i < n; i++) out[i] = sinf(x[i]) * y[i] + x[i] * x[i]; }
"""


def in_c(x, y):
    """A loop in C over the same rows; seconds, or None without a compiler."""
    compiler, out = shutil.which("cc"), np.empty_like(x)
    if not compiler:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "wave.so")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-lm"], input=C.encode(), check=True)
        wave = ctypes.CDLL(library).wave
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
    return seconds(lambda: wave(*pointers, ctypes.c_long(x.size)), clock=time.process_time)


def on_one_core(x, y, d, n, per_row):
    """With the lanes that seem best, and one row at a time; time of the processor."""
    modules = [("slope", slope.compile(PROGRAM, threads=1)), ("one lane", slope.compile(PROGRAM, threads=1, lanes=1))]
    c = in_c(x, y)
    calls = {
        "wave, per row, on one core": lambda m: m.wave(x, y),
        "its gradient": lambda m: slope.grad(m.wave)(x, y),
        "reflected": lambda m: m.reflected(d, n),
        "orbit": lambda m: m.orbit(d),
        "its gradient ": lambda m: slope.grad(m.orbit)(d),
    }
    for name, call in calls.items():
        others = [("C", c)] if c and name.startswith("wave") else []
        show(name, [(kind, seconds(lambda module=module: call(module), clock=time.process_time)) for kind, module in modules] + others, "ns", per_row)


def on_gpu(torch, m, gradient, x, y, per_row):
    wait = torch.cuda.synchronize
    calls = {"wave, per row, on a GPU": (lambda: m.wave(x, y), torch_wave), "its gradient": (lambda: gradient(x, y), torch_slopes)}
    for name, (call, others) in calls.items():
        show(name, [("slope", seconds(lambda: (call(), wait()))), *others(torch, x, y, wait)], "ns", per_row)
    small = x[:1]
    show("a call on a GPU", [("slope", seconds(lambda: m.wave(small, small))), ("torch", seconds(lambda: torch.sin(small)))], "us", 1e6)


def main():
    generator = np.random.default_rng(1)
    x, y = (generator.random(ROWS, dtype=np.float32) for _ in range(2))
    d, n = (generator.random((ROWS, 3), dtype=np.float32) for _ in range(2))
    per_row = 1e9 / ROWS
    on_one_core(x, y, d, n, per_row)
    if "--one-core" in sys.argv:
        return
    m = slope.compile(PROGRAM)
    gradient = slope.grad(m.wave)
    show("a call", [("slope", seconds(lambda: m.wave(1.0, 2.0))), ("numpy", seconds(lambda: np.sin(1.0) * 2.0 + 1.0))], "us", 1e6)
    show("a gradient", [("slope", seconds(lambda: gradient(1.0, 2.0)))], "us", 1e6)
    wave = [("slope", seconds(lambda: m.wave(x, y))), ("numpy", seconds(lambda: np.sin(x) * y + x * x))]
    mirror = [("slope", seconds(lambda: m.reflected(d, n))),
              ("numpy", seconds(lambda: d - 2 * np.sum(d * n, 1, keepdims=True) * n))]
    slopes = [("slope", seconds(lambda: gradient(x, y)))]
    torch = torch_if_there()
    if torch:
        tx, ty, td, tn = map(torch.from_numpy, (x, y, d, n))
        wave += torch_wave(torch, tx, ty, lambda: None)
        mirror.append(("torch", seconds(lambda: td - 2 * (td * tn).sum(1, keepdim=True) * tn)))
        slopes += torch_slopes(torch, tx, ty, lambda: None)
    show("wave, per row", wave, "ns", per_row)
    show("its gradient, per row", slopes, "ns", per_row)
    show("reflected, per row", mirror, "ns", per_row)
    if torch and torch.cuda.is_available():
        on_gpu(torch, m, gradient, tx.cuda(), ty.cuda(), per_row)


if __name__ == "__main__":
    main()
