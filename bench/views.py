#!/usr/bin/env python3
"""Kernels over views of tensors and their gradients: microseconds of the processor on one thread, one item at a time and with as many lanes as are chosen; what it
takes to compile the gradient (milliseconds); and how the gradients differ from differences of the kernel itself, in double.

    SLOPE_LIBRARY=build PYTHONPATH=python python3 bench/views.py [NAME...]
"""
import sys
import time
from pathlib import Path

import numpy as np
import slope

SOURCE = Path(__file__).resolve().parent / "views.slang"
MANY = 4096


class Index(tuple):
    """The shape of whole numbers below the last of these."""


# Of each kernel: threads of a group, groups, and the tensors: a shape, with a gradient; one in a list has none. The last is the result.
KERNELS = {
    "linear": ((16, 16), (8, 16), dict(w=(128, 96), b=(128,), x=(256, 96), y=(256, 128))),
    "splat": ((16, 16), (4, 4), dict(g=(64, 8), y=(64, 64, 3))),
    "convolution": ((16, 16), (6, 6), dict(w=(8, 4, 3, 3), x=(4, 98, 98), y=(8, 96, 96))),
    "hash_grid": (64, 64, dict(t=(8192, 2), p=[MANY, 2], y=(MANY, 16))),
    "attention": (32, 8, dict(q=(256, 16), keys=(256, 16), values=(256, 16), y=(256, 16))),
    "bundle": (64, 64, dict(cameras=(50, 9), points=(2000, 3), camera=Index((MANY, 50)), point=Index((MANY, 2000)), y=(MANY, 2))),
    "mixture": (64, 64, dict(weights=(25,), means=(25, 10), scales=(25, 10), x=[MANY, 10], y=(MANY,))),
    "network": (64, 64, dict(w0=(32, 16), b0=(32,), w1=(8, 32), b1=(8,), x=(MANY, 16), y=(MANY, 8))),
    "spring": (64, 64, dict(p=(MANY, 4), y=(MANY,))),
    "blur": ((16, 16), (16, 16), dict(w=(7,), x=(256, 256), y=(256, 256))),
    "inverses": (64, 64, dict(a=(MANY, 3, 3), y=(MANY, 3, 3))),
    "ggx": (64, 64, dict(m=(MANY, 2), d=[MANY, 4], y=(MANY,))),
    "quaternions": (64, 64, dict(q=(MANY, 4), p=(MANY, 3), y=(MANY, 3))),
    "harmonics": (64, 64, dict(c=(MANY, 3, 9), d=[MANY, 3], y=(MANY, 3))),
    "volume": (64, 64, dict(g=(MANY, 64, 2), y=(MANY,))),
    "bilinear": (64, 64, dict(t=(64, 64, 3), p=(MANY, 2), y=(MANY, 3))),
    "kalman": (64, 64, dict(z=(MANY, 32), p=(2,), y=(MANY,))),
}


def load(name, precision="float", **options):
    return slope.load(SOURCE, block=KERNELS[name][0], defines={"REAL": precision}, **options)


def tensors(name, precision="float"):
    """What the kernel is given: values, and for its result a seed in place of the gradient."""
    numbers, dtype, given = np.random.default_rng(0), {"float": "f4", "double": "f8"}[precision], {}
    for tensor, shape in KERNELS[name][2].items():
        if isinstance(shape, Index):
            given[tensor] = numbers.integers(0, shape[1], shape[0]).astype("i4")
            continue
        values = numbers.uniform(-0.5, 0.5, shape).astype(dtype)
        given[tensor] = values if isinstance(shape, list) else {"primal": values, "diff": np.zeros_like(values)}
    given["y"] = {"primal": np.zeros_like(given["y"]["primal"]), "diff": given["y"]["primal"]}
    return given


def groups_of(name, most=None):
    groups = KERNELS[name][1]
    return tuple(min(size, most or size) for size in (groups if isinstance(groups, tuple) else (groups,)))


def error_of_gradient(name, most=2, **options):
    """By how much it differs from a difference along one direction, of so many groups, in double."""
    module, groups, given, step = load(name, "double", **options), groups_of(name, most), tensors(name, "double"), 1e-6
    seed, numbers = given["y"]["diff"].copy(), np.random.default_rng(1)
    directions = {tensor: numbers.uniform(-1, 1, value["primal"].shape) for tensor, value in given.items() if isinstance(value, dict) and tensor != "y"}

    def weighed(by):
        moved = {tensor: value["primal"] + by * directions[tensor] if tensor in directions else value for tensor, value in given.items()}
        moved["y"] = np.zeros_like(seed)
        module[name].dispatch(*groups, **moved)
        return float((moved["y"] * seed).sum())

    wanted = (weighed(step) - weighed(-step)) / (2 * step)
    module[f"bwd_diff({name})"].dispatch(*groups, **given)
    found = sum(float((given[tensor]["diff"] * direction).sum()) for tensor, direction in directions.items())
    return abs(found - wanted) / max(abs(wanted), 1e-3)


def measure(name, expression, lanes):
    """Microseconds of a dispatch, and milliseconds to compile it."""
    kernel, given = load(name, threads=1, lanes=lanes, cache=False)[expression], tensors(name)
    seed = given["y"]["diff"].copy()
    start = time.thread_time()
    kernel.dispatch(*groups_of(name), **given)
    first, best, until = time.thread_time() - start, float("inf"), time.monotonic() + 0.2
    while time.monotonic() < until:
        given["y"]["diff"][...] = seed  # the gradient has taken it, and would skip what nothing comes back to
        start = time.thread_time()
        kernel.dispatch(*groups_of(name), **given)
        best = min(best, time.thread_time() - start)
    return best * 1e6, (first - best) * 1e3


def main():
    print(f"{'':12} {'primal: one':>12} {'lanes':>9} {'gradient: one':>14} {'lanes':>9} {'compile: one':>13} {'lanes':>6} {'error':>8}")
    for name in sys.argv[1:] or KERNELS:
        primal, gradient = ([measure(name, expression, lanes) for lanes in (1, "auto")] for expression in (name, f"bwd_diff({name})"))
        print(f"{name:12} {primal[0][0]:12.0f} {primal[1][0]:9.0f} {gradient[0][0]:14.0f} {gradient[1][0]:9.0f} {gradient[0][1]:13.0f} {gradient[1][1]:6.0f} "
              f"{error_of_gradient(name):8.0e}", flush=True)


if __name__ == "__main__":
    main()
