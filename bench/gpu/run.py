#!/usr/bin/env python3
"""Gradients on a GPU: those of Slope against gradients written by hand in CUDA, PyTorch, torch.compile and JAX. Nanoseconds per item, medians.

Slope's is what `slope build -target cuda` makes. It and the version by hand are compiled by nvcc in one program, with the same options, and compared
before they are measured. The column "/hand" is Slope's time over that by hand; a second pair of columns has both with --use_fast_math. Frameworks
that are not installed, or that cannot do it, have no number. --llvm compares Slope's kernels as nvcc compiles them with PTX by LLVM, and how long the compilers take.
See docs/gpu.md.

    bench/gpu/run.py [--llvm] [--build DIR] [--arch ARCH] [--no-frameworks] [--seconds N] [NAME...]
"""
import argparse
import datetime
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = ("ggx", "splat", "particle", "mlp", "mlp_tensor", "mlp_struct", "filter", "gmm", "lstm")
OWN = ("brdf", "march", "ode", "inverse", "bundle", "nbody", "matmul")
FLAGS = {"": [], "fast": ["--use_fast_math"]}
LLVM = [f"-L{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/lib64/stubs", "-lcuda", "-w"]
KINDS = {"torch": "PyTorch", "compile": "torch.compile", "jax": "JAX"}
TARGET = 1.2


def build(options, name, kind, folder):
    """The program that measures it, or None."""
    code, program = Path(folder) / f"{name}.{'llvm' if kind == 'llvm' else 'slope'}.cu", Path(folder) / f"{name}{kind}"
    command = ["nvcc", "-O3", f"-arch={options.arch}", *(LLVM if kind == "llvm" else FLAGS[kind]), "-include", code, HERE / f"{name}.cu", "-o", program]
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


# ---- PTX by LLVM

def by_driver(text):
    """The host functions of Slope's CUDA C++ set and launch what is in PTX."""
    text = re.sub(r"cudaMemcpyToSymbolAsync\(slope::(\w+), value, sizeof slope::\w+, 0, cudaMemcpyHostToDevice, stream\)",
                  lambda found: f'ptx_set("_ZN5slope{len(found[1])}{found[1]}E", value, sizeof *value)', text)
    text = text.replace("cudaMemcpyToSymbolAsync(slope_host, &host, sizeof host, 0, cudaMemcpyHostToDevice, stream)",
                        'ptx_set("_ZN5slope10slope_hostE", &host, 24, 8)')
    text = re.sub(r"slope::(\w+)<<<groups, (dim3\([^)]*\)), 0, stream>>>\((.*)\);",
                  lambda found: f'ptx_launch("{found[1]}", groups, {found[2]}{", " if found[3] else ""}{found[3]});', text)
    return f'#include "{HERE}/ptx.h"\n{text}'


def compile_time(options, name, compiler, folder):
    """Milliseconds from the program to code that is loaded: what `slope run` needs for a kernel, less opening the GPU."""
    command = [Path(options.build) / "slope", "run", "--device", "cuda", "--device-code", compiler, HERE / f"{name}.slang", "--time"]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=dict(os.environ, CUDA_CACHE_DISABLE="1", SLOPE_CACHE=""))
    times = dict(re.findall(r"^(.*?) +([\d.]+) +[\d.]+$", result.stdout + result.stderr, re.MULTILINE))
    wanted = ("compile for GPU", "load LLVM", "translate", "LLVM passes", "machine code")
    return sum(float(times.get(stage, 0)) for stage in wanted), result.stderr if result.returncode else ""


def compare_llvm(options):
    print(f"{'ns per item':10}{'items':>9}{'nvcc':>10}{'LLVM':>10}{'/nvcc':>7}{'by hand':>10}   compiled in ms: {'NVRTC':>8}{'LLVM':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            for target, code in {"cuda": f"{name}.slope.cu", "ptx": f"{name}.ptx"}.items():
                subprocess.run([Path(options.build) / "slope", "build", HERE / f"{name}.slang", "-target", target, "-o", f"{folder}/{code}"], check=True)
            (Path(folder) / f"{name}.llvm.cu").write_text(by_driver((Path(folder) / f"{name}.slope.cu").read_text()))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            programs = {(name, kind): pool.submit(build, options, name, kind, folder) for name in options.names for kind in ("", "llvm")}
        for name in options.names:
            times = {}
            for kind in ("", "llvm"):
                program = programs[name, kind].result()
                result = program and subprocess.run([program], capture_output=True, text=True, env=dict(os.environ, SLOPE_PTX=f"{folder}/{name}.ptx"))
                times[kind] = result.stdout.split() if result else []
                if not result or result.returncode or len(times[kind]) != 5:
                    print(f"{name} {kind}: {result and result.stdout + result.stderr}", file=sys.stderr)
                    times[kind] = [name, "0", "nan", "nan", "nan"]
            compiled = [compile_time(options, name, compiler, folder) for compiler in ("nvrtc", "llvm")]
            nvcc, llvm, hand = float(times[""][2]), float(times["llvm"][2]), float(times[""][3])
            print(f"{name:10} {times[''][1]:>9} {number(nvcc)} {number(llvm)} {llvm / nvcc:6.2f} {number(hand)}                    "
                  + " ".join(f"{time:8.0f}" for time, _ in compiled), "".join(problem for _, problem in compiled)[:300], flush=True)


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
    parser.add_argument("--llvm", action="store_true")
    parser.add_argument("--seconds", type=int, default=240, help="how long frameworks may take to compile")
    parser.add_argument("names", nargs="*", default=SHARED + OWN)
    options = parser.parse_args()
    if options.llvm:
        print(f"{device()}, {datetime.date.today()}")
        compare_llvm(options)
        return
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
