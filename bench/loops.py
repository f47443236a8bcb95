#!/usr/bin/env python3
"""What loops over items gain by doing several rounds at once: nanoseconds per round (bench/loops.slang) and milliseconds to compile and begin, one round at a time, as many as
are chosen, and 8 and 16. Least processor's time of several runs, in turns.

    bench/loops.py [--build DIR] [--lanes 1,auto,8,16] [--runs N]
    bench/loops.py [--build DIR] --programs [--precision float|double] [--runs N] [NAME...]      is any program slower than with one lane? Benchmarks, examples
    bench/loops.py [--build DIR] --arrays [--precision float|double] [--runs N] [NAME...]        ... gradients over flat arrays (bench/arrays.slang)
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run

LOOPS = ("a loss", "its gradient", "a gradient for each", "Newton's method")
ROUNDS, REPEATS = 4000, 400
EXAMPLES = ("brdf", "field", "network", "raster", "reversible", "splat", "spring")
SLOWER, LONGER = 1.02, 2.0
ARRAYS = {"dense": (200, 1), "rgb": (100, 100), "laplace": (120, 120), "tv": (120, 120), "pairs": (200, 1), "springs": (10000, 1), "soa": (10000, 1),
          "horner": (10000, 1), "softmax": (1000, 1), "attend": (200, 1), "bilinear": (5000, 100), "soft": (2000, 1), "conv1": (1000, 1), "recur": (10000, 1),
          "march": (2000, 1), "blend": (1000, 1), "matmul": (60, 1)}  # sizes; in kernels, `n` of the first is a product
NUMBERS, TIMES, MUCH = 40000, 200, 1.15


def seconds(command, folder=HERE):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def seconds_of_loop(slope, which, repeats, lanes):
    return seconds([slope, "run", HERE / "loops.slang", "--no-cache", f"--bind=data=zeros:{ROUNDS}", f"--bind=result=zeros:{ROUNDS}",
                    f"--set=which={which}", f"--set=reps={repeats}", "--lanes", lanes])


def survey_loops(options):
    ways = options.lanes.split(",")
    slope = options.build / "slope"
    for which, name in enumerate(LOOPS):
        runs = [{way: (seconds_of_loop(slope, which, REPEATS, way), seconds_of_loop(slope, which, 0, way)) for way in ways} for _ in range(options.runs)]
        for way in ways:
            work, begin = (min(run[way][i] for run in runs) for i in range(2))
            print(f"{name:20} {way:5} {(work - begin) / REPEATS / ROUNDS * 1e9:7.1f} ns {begin * 1e3:6.0f} ms", flush=True)


def figures_of_benchmark(program, name, lanes):
    """Milliseconds by what is measured."""
    os.environ["BENCH_LANES"] = lanes
    found = run.execute(name, [program, "slope"] if name in run.ROWS else [program])
    return dict(zip((*run.WORKS[:3], "compile"), found)) if name in run.ROWS else {"primal": found[0]}


def command_of_example(path):
    """As it stands in its first lines, without what it saves; those that say nothing run alone."""
    text = re.search(r"^// run:((?:.*\\\n)*.*\n(?://  .*\n)*)", path.read_text(), re.MULTILINE)
    words = text[1].replace("\\\n//", " ").replace("\n//", " ").split()[2:] if text else [path.name]
    return [word for i, word in enumerate(words) if "--save" not in words[max(i - 1, 0):i + 1]]


def figures_of_example(slope, name, lanes):
    folder = HERE.parent / "examples"
    command = [slope, "run", *command_of_example(folder / f"{name}.slang"), "--no-cache", "--threads", "1", "--lanes", lanes]
    return {"all": seconds(command, folder) * 1e3}


def compare(title, measure, runs):
    """Prints how long each work takes with as many lanes as are chosen, as a ratio to one; returns what is slower."""
    turns = [{lanes: measure(lanes) for lanes in ("1", "auto")} for _ in range(runs)]
    slower = []
    for work in turns[0]["1"]:
        one, several = (min(turn[lanes][work] for turn in turns) for lanes in ("1", "auto"))
        most = LONGER if work == "compile" else SLOWER
        mark = "!" if several > most * one else " "
        print(f"{title:24} {work:10} {one:10.3f} ms {several:10.3f} ms {several / one:6.2f}{mark}", flush=True)
        if mark == "!":
            slower.append(f"{several / one:.2f} {title} {work}")
    return slower


def survey_programs(options):
    slower, build = [], options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="slope-bench-") as folder:
        for name in (*run.PLAIN, *run.ROWS):
            if not options.names or name in options.names:
                program = run.compile_c(build, name, run.NATIVE, folder, options.precision)
                slower += compare(name, lambda lanes: figures_of_benchmark(program, name, lanes), options.runs)
    for name in EXAMPLES:
        if not options.names or f"examples/{name}" in options.names:
            slower += compare(f"examples/{name}", lambda lanes: figures_of_example(build / "slope", name, lanes), options.runs)
    print("slower, or longer to compile:", *slower, sep="\n    ")


def milliseconds_of_entry(slope, precision, entry, sizes, lanes):
    """What the run of a compiled kernel takes."""
    n, m = sizes if entry.endswith("_all") else (sizes[0] * (sizes[1] if sizes[0] == sizes[1] else 1), sizes[1])
    groups = str(TIMES) if entry.endswith("_all") else f"{(n + 63) // 64},{TIMES // 2}"
    data = [f"--bind={name}={'zeros' if name[0] == 'd' else 'random'}:{NUMBERS}" for name in ("A", "B", "I", "dA", "dB")]
    command = [slope, "run", "-w", HERE / "arrays.slang", f"-DT={precision}", "--entry", entry, "--threads", "1", "--dispatch", groups, "--lanes", lanes, f"--set=n={n}",
               f"--set=m={m}", *data, "--time", "--remarks"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    lanes = re.findall(r"does (\d+) (?:rounds|items) at once", found.stdout + found.stderr)
    return float(re.search(r"^run +([\d.]+)", found.stdout + found.stderr, re.MULTILINE)[1]), max(map(int, lanes), default=1)


def survey_arrays(options):
    slower, slope = [], options.build / "slope"
    entries = re.findall(r"^(ALL|EACH)\((\w+)\)", (HERE / "arrays.slang").read_text(), re.MULTILINE)
    for kind, name in entries:
        for entry in [f"{name}_all"] if kind == "ALL" else [f"{name}_each", f"{name}_value"]:
            if options.names and name not in options.names:
                continue
            turns = [[milliseconds_of_entry(slope, options.precision, entry, ARRAYS[name], lanes) for lanes in ("1", "auto")] for _ in range(options.runs)]
            one, several = (min(turn[i][0] for turn in turns) for i in range(2))
            mark = "!" if several > MUCH * one else " "
            print(f"{entry:18} {one:9.2f} ms {several:9.2f} ms {several / one:6.2f}{mark} {turns[0][1][1]} lanes", flush=True)
            if mark == "!":
                slower.append(f"{several / one:.2f} {entry}")
    print("slower:", *slower, sep="\n    ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=HERE.parent / "build", type=Path)
    parser.add_argument("--lanes", default="1,auto,8,16")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--precision", choices=run.PRECISIONS, default="float", help="of the benchmarks")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.programs:
        survey_programs(options)
    elif options.arrays:
        survey_arrays(options)
    else:
        survey_loops(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
