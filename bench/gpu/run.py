#!/usr/bin/env python3
"""Gradients on a GPU: those of Slope against gradients written by hand in CUDA, PyTorch, torch.compile and JAX. Nanoseconds per item, medians.

Slope's is what `slope build -target cuda` makes. It and the version by hand are compiled by nvcc in one program, with the same options, and compared
before they are measured. The column "/hand" is Slope's time over that by hand; a second pair of columns has both with --use_fast_math. Frameworks
that are not installed, or that cannot do it, have no number. See docs/gpu.md.

    bench/gpu/run.py [--build DIR] [--arch ARCH] [--no-frameworks] [--seconds N] [NAME...]
"""
import argparse
import datetime
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = ("ggx", "splat", "particle", "mlp", "filter")
OWN = ("brdf", "march", "ode", "inverse", "bundle", "nbody")
FLAGS = {"": [], "fast": ["--use_fast_math"]}
KINDS = {"torch": "PyTorch", "compile": "torch.compile", "jax": "JAX"}
TARGET = 1.2


def build(options, name, kind, folder):
    """The program that measures it, or None."""
    code, program = Path(folder) / f"{name}.slope.cu", Path(folder) / f"{name}{kind}"
    command = ["nvcc", "-O3", f"-arch={options.arch}", *FLAGS[kind], "-include", code, HERE / f"{name}.cu", "-o", program]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        print(f"{name}: {result.stderr[-2000:]}", file=sys.stderr)
    return None if result.returncode else program


def build_all(options, folder):
    for name in options.names:
        subprocess.run([Path(options.build) / "slope", "build", HERE / f"{name}.slang", "-target", "cuda", "-o", f"{folder}/{name}.slope.cu"],
                       check=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = {(name, kind): pool.submit(build, options, name, kind, folder) for name in options.names for kind in FLAGS}
    return {key: program.result() for key, program in programs.items()}


class Framework:
    """A process that has everything compiled when it is `ready`."""

    def __init__(self, kind, names):
        self.kind, self.names = kind, names
        self.process = subprocess.Popen([sys.executable, HERE / "frameworks.py", kind, *names], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.ready = threading.Event()
        threading.Thread(target=self.wait, daemon=True).start()

    def wait(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                self.ready.set()
                return

    def measure(self, name):
        try:
            print(name, file=self.process.stdin, flush=True)
            return float(self.process.stdout.readline().split()[1])
        except (ValueError, IndexError, OSError):
            return None


def start_frameworks(options):
    found = [kind for kind in KINDS if importlib.util.find_spec("jax" if kind == "jax" else "torch")]
    if options.no_frameworks:
        return []
    return [Framework(kind, [name]) for kind in found for name in options.names]


def measure_programs(programs, rows):
    for (name, kind), program in programs.items():
        if not program:
            continue
        result = subprocess.run([program], capture_output=True, text=True)
        words = result.stdout.split()
        if result.returncode or len(words) != 5:
            print(f"{name}: {result.stdout.strip()} {result.stderr.strip()}", file=sys.stderr)
        if len(words) == 5:
            rows[name]["items"] = int(words[1])
            rows[name][f"slope{kind}"], rows[name][f"hand{kind}"] = float(words[2]), float(words[3])


def measure_frameworks(frameworks, seconds, rows):
    end = datetime.datetime.now() + datetime.timedelta(seconds=seconds)
    for framework in frameworks:
        framework.ready.wait(max(0, (end - datetime.datetime.now()).total_seconds()))
    for framework in frameworks:
        if not framework.ready.is_set():
            framework.process.kill()
    for framework in frameworks:
        for name in framework.names:
            rows[name][framework.kind] = framework.measure(name) if framework.ready.is_set() else None
        framework.process.kill()


def number(value):
    return f"{'-':>9}" if value is None else f"{value:9.4f}" if value < 100 else f"{value:9.0f}"


def show(names, rows):
    print(f"{'ns per item':10}{'items':>9}{'slope':>10}{'by hand':>9}{'/hand':>7} {'fast':>10}{'by hand':>9}{'/hand':>7}  "
          + " ".join(f"{title:>13}" for title in KINDS.values()))
    for name in names:
        row = rows[name]
        cells = f"{name:10} {row.get('items', 0):9}"
        for kind in FLAGS:
            slope, hand = row.get(f"slope{kind}"), row.get(f"hand{kind}")
            ratio = f"{slope / hand:6.2f}{'!' if slope / hand > TARGET else ' '}" if slope and hand else f"{'-':>7}"
            cells += f" {number(slope)}{number(hand)}{ratio} "
        print(cells + " ".join(f"{number(row.get(kind)):>13}" for kind in KINDS), flush=True)


def device():
    result = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
    return result.stdout.strip() or "no GPU"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=HERE.parent.parent / "build")
    parser.add_argument("--arch", default="native")
    parser.add_argument("--no-frameworks", action="store_true")
    parser.add_argument("--seconds", type=int, default=240, help="how long frameworks may take to compile")
    parser.add_argument("names", nargs="*", default=SHARED + OWN)
    options = parser.parse_args()
    rows = {name: {} for name in options.names}
    with tempfile.TemporaryDirectory() as folder:
        programs = build_all(options, folder)
        measure_programs(programs, rows)
        print(f"{device()}, {datetime.date.today()}")
        show(options.names, rows)
        frameworks = start_frameworks(options)
        if frameworks:
            measure_frameworks(frameworks, options.seconds, rows)
            show(options.names, rows)


main()
