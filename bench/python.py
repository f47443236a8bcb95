#!/usr/bin/env python3
"""What a call from Python costs: of one number, and per row of a million, against numpy and (where it is) PyTorch; all in one run.

    SLOPE_LIBRARY=build PYTHONPATH=python python3 bench/python.py
"""
import time

import numpy as np
import slope

PROGRAM = """
[Differentiable] float wave(float x, float y) { return sin(x) * y + x * x; }
[Differentiable] float3 reflected(float3 d, float3 n) { return d - 2 * dot(d, n) * n; }
"""
ROWS = 1_000_000


def seconds(call, least=0.2):
    """The best of five, each long enough to be measured."""
    count, best = 1, float("inf")
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        spent = time.perf_counter() - start
        if spent > least / 5:
            break
        count *= 2
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def show(name, figures, unit, scale):
    print(f"{name:28}" + "".join(f"{label} {value * scale:9.2f} {unit}   " for label, value in figures))


def main():
    m = slope.compile(PROGRAM)
    gradient = slope.grad(m.wave)
    show("a call", [("slope", seconds(lambda: m.wave(1.0, 2.0))), ("numpy", seconds(lambda: np.sin(1.0) * 2.0 + 1.0))], "us", 1e6)
    show("a gradient", [("slope", seconds(lambda: gradient(1.0, 2.0)))], "us", 1e6)
    generator = np.random.default_rng(1)
    x, y = (generator.random(ROWS, dtype=np.float32) for _ in range(2))
    d, n = (generator.random((ROWS, 3), dtype=np.float32) for _ in range(2))
    per_row = 1e9 / ROWS
    wave = [("slope", seconds(lambda: m.wave(x, y))), ("numpy", seconds(lambda: np.sin(x) * y + x * x))]
    mirror = [("slope", seconds(lambda: m.reflected(d, n))),
              ("numpy", seconds(lambda: d - 2 * np.sum(d * n, 1, keepdims=True) * n))]
    slopes = [("slope", seconds(lambda: gradient(x, y)))]
    try:
        import torch
    except ImportError:
        torch = None
    if torch:
        tx, ty, td, tn = map(torch.from_numpy, (x, y, d, n))
        leaf = tx.clone().requires_grad_()
        wave.append(("torch", seconds(lambda: torch.sin(tx) * ty + tx * tx)))
        mirror.append(("torch", seconds(lambda: td - 2 * (td * tn).sum(1, keepdim=True) * tn)))
        slopes.append(("torch", seconds(lambda: torch.autograd.grad((torch.sin(leaf) * ty + leaf * leaf).sum(), leaf))))
        if hasattr(torch, "compile"):
            compiled = torch.compile(lambda a, b: torch.sin(a) * b + a * a)
            wave.append(("torch.compile", seconds(lambda: compiled(tx, ty))))
    show("wave, per row", wave, "ns", per_row)
    show("its gradient, per row", slopes, "ns", per_row)
    show("reflected, per row", mirror, "ns", per_row)


if __name__ == "__main__":
    main()
