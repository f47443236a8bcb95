#!/usr/bin/env python3
"""Speed of compiled programs against the same code in C, compiled by clang.

Each bench/NAME.c runs the kernel of NAME.slang and its own version of it, on one thread, on the same data. C is compiled
twice: as anyone would (`-O3`), and for this very machine (`-O3 -march=native`). A ratio above 1 means that Slope is slower.

    bench/run.py [--build DIR] [NAME...]
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAVOURS = {"-O3": ["-O3"], "-O3 native": ["-O3", "-march=native"]}
TOLERANCE = 1e-3  # relative; sums are taken in another order


def compiler():
    return next((name for name in ("clang-19", "clang") if shutil.which(name)), "clang")


def measure(build, name, flags, folder):
    """Milliseconds of Slope and of C."""
    program = Path(folder) / "bench"
    subprocess.run([compiler(), "-std=c17", *flags, "-fno-math-errno", "-D_GNU_SOURCE", f"-I{HERE.parent / 'include'}",
                    str(HERE / f"{name}.c"), "-o", str(program), f"-L{build}", "-lslope", "-lm", f"-Wl,-rpath,{build}"],
                   check=True)
    result = subprocess.run([str(program)], cwd=HERE, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{name}: {result.stderr.strip()}")
    slope, c, difference = map(float, result.stdout.split())
    if not difference <= TOLERANCE:
        sys.exit(f"{name}: the results differ by {difference}")
    return slope, c


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    build = Path(options.build).resolve()
    names = options.names or sorted(path.stem for path in HERE.glob("*.c"))
    print(f"{'':12} {'slope ms':>9}   " + "   ".join(f"{'clang ' + flavour:>18}  ratio" for flavour in FLAVOURS))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            times = [measure(build, name, flags, folder) for flags in FLAVOURS.values()]
        best = min(slope for slope, _ in times)
        print(f"{name:12} {best:9.3f}   " + "   ".join(f"{c:18.3f}  {best / c:5.2f}" for _, c in times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
