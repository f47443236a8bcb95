#!/usr/bin/env python3
"""What gradients of the benchmarks take to compile in a process that has compiled before, and to run when they are called alone: milliseconds and
nanoseconds of the processor (bench/warm.c).

    bench/warm.py [--build DIR] [--precision float|double] [--sessions N] [NAME...]
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run

FUNCTIONS = {"log_sum_exp": "gmm", "shade": "brdf", "error": "bundle", "residual": "residual", "color_at": "splat", "march": "march", "simulate": "ode",
             "fly": "particle", "weighted": "inverse", "loss of mlp": "mlp", "loss of lstm": "lstm", "loss of gmm": "gmm"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=lambda path: Path(path).resolve(), default=HERE.parent / "build")
    parser.add_argument("--precision", choices=run.PRECISIONS, default="float")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FUNCTIONS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "warm"
        subprocess.run([run.compiler(), "-std=gnu17", "-O2", f"-I{HERE.parent / 'include'}", HERE / "warm.c", "-o", program, f"-L{options.build}",
                        "-lslope", "-lm", f"-Wl,-rpath,{options.build}"], check=True)
        print(f"{'gradient of':14} {'compile':>8} {'call':>12}")
        for name in options.names or FUNCTIONS:
            source, function = FUNCTIONS[name], name.split(" of ")[0]
            found = subprocess.run([program, f"{source}.slang", f"bwd_diff({function})", options.precision, str(options.sessions)], cwd=HERE, check=True,
                                   capture_output=True, text=True).stdout.split()
            print(f"{name:14} {found[0]:>5} ms {found[1]:>9} ns", flush=True)


if __name__ == "__main__":
    main()
