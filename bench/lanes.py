#!/usr/bin/env python3
"""What lanes gain: each kernel of bench/lanes.slang over many items, on one thread, one item at a time and several at once. Figures are
nanoseconds per item, the best of several dispatches, how much faster than one by one, and than one by one where LLVM makes no vectors of its own (-O1), and the time to compile as a multiple; results
are compared. The row `C` is the same written in C with `#pragma omp simd`, for the machine, its gradients by hand. See docs/benchmarks.md.

    bench/lanes.py [--build DIR] [--lanes 4,8,16] [KERNEL...]
    bench/lanes.py [--build DIR] --batch                          functions by slope_call and slope_call_batch (lanes_batch.c)
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

KERNELS = {"ggx": 1 << 18, "invert": 1 << 18, "particle": 1 << 13, "march": 1 << 17, "splat": 1 << 16, "mlp": 1 << 17}
SIMD = ["-fopenmp-simd", "-ffp-contract=fast", "-fno-trapping-math"]
TOLERANCE, IN_C = 2e-3, 1e-2  # sums are taken in another order; other formulas in C


def measure(program, kernel, widths):
    command = [program, run.HERE / "lanes.slang", kernel, str(KERNELS[kernel]), *map(str, widths)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [[float(word) for word in line.split()] for line in lines]


def run_batch(build):
    with tempfile.TemporaryDirectory(prefix="slope-bench-") as folder:
        return subprocess.run([run.compile_c(build, "lanes_batch", run.NATIVE, folder), run.HERE / "lanes.slang"]).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(run.HERE.parent / "build"))
    parser.add_argument("--lanes", default="4,8,16")
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("kernels", nargs="*", default=list(KERNELS))
    options = parser.parse_args()
    if options.batch:
        return run_batch(Path(options.build).resolve())
    widths = [int(width) for width in options.lanes.split(",")]
    wrong = 0
    print(f"{'kernel':10} {'lanes':>6} {'ns':>10} {'faster':>8} {'scalar':>8} {'compile':>8}")
    with tempfile.TemporaryDirectory(prefix="slope-bench-") as folder:
        program = run.compile_c(Path(options.build).resolve(), "lanes", [*run.NATIVE, *SIMD], folder)
        for kernel in options.kernels:
            rows = measure(program, kernel, widths)
            scalar = rows.pop(1)[2]
            for lanes, compile_time, nanoseconds, difference in rows:
                bad = not difference <= (TOLERANCE if lanes else IN_C)
                wrong += bad
                name = f"{lanes:6.0f}" if lanes else f"{'C':>6}"
                print(f"{kernel:10} {name} {nanoseconds:10.2f} {rows[0][2] / nanoseconds:8.2f} {scalar / nanoseconds:8.2f} {compile_time / rows[0][1]:8.2f}"
                      + (f"  differs by {difference:g}" if bad else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
