#!/usr/bin/env python3
"""Is anything slower with lanes? The functions of tests/diff with their gradients, as kernels over many items on one thread, or in loops over them (--rounds), one by one and
with as many lanes as the estimate of opt/lanes_cost.c chooses (0), or as are given. Of each kernel: how many lanes, how many times as fast, the time to compile
as a multiple, nanoseconds per item and milliseconds to compile with one; the least processor's time, taken in turns. At the end come the
kernels that are slower, and those that take more than twice as long to compile.

    bench/lanes_survey.py [--build DIR] [--of N] [--first N] [--lanes 0,8,16] [--group 64] [--rounds] [-j N] [NAME...]    one file of N; only those with a NAME in theirs
"""
import argparse
import concurrent.futures
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]
import through_lanes
from bench.run import NATIVE, compile_c

TESTS = HERE.parent / "tests"
ITEMS = 1 << 14
SLOWER, LONGER = 0.97, 2.0
LIMIT = 60


def survey(program, path, options, folder):
    """Rows: name, lanes, how many times as fast, how many times the time to compile, nanoseconds, milliseconds, why not more lanes, how many were asked for"""
    text, rows = path.read_text(), []
    for number, function in enumerate(through_lanes.functions(text)):
        source = Path(folder) / f"{abs(hash(path))}-{number}.slang"
        source.write_text(text + "\n" + through_lanes.kernel(number, *function, threads=options.group, rounds=options.rounds and ITEMS)[0])
        widths = options.lanes.split(",")
        command = [program, source, path.parent, f"lanes_kernel{number}", str(ITEMS), *widths]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode or not done.stdout:
            continue  # a function that has no backward derivative
        lines = [line.split(" ", 3) for line in done.stdout.splitlines()[-1 - len(widths):]]
        (_, compile_one, one, _), *others = [(int(lanes), float(compiled), float(run), why) for lanes, compiled, run, why in lines]
        for width, (lanes, compiled, several, why) in zip(widths, others):
            name = f"{path.relative_to(TESTS)} {function[1]}"
            rows.append((name, lanes, one / several, compiled / compile_one, one, compile_one, why, width))
    return rows


def show(row):
    name, lanes, faster, longer, nanoseconds, milliseconds, why, _ = row
    print(f"{lanes:5} {faster:7.2f} {longer:8.2f} {nanoseconds:9.1f} {milliseconds:7.1f}  {name}{': ' + why if why else ''}", flush=True)


def summarize(rows):
    wide = [row for row in rows if row[1] > 1]
    if wide:
        print(f"{len(rows)} kernels, {len(wide)} with lanes: {statistics.median(row[2] for row in wide):.2f} times as fast in the median, "
              f"{statistics.median(row[3] for row in wide):.2f} times as long to compile; "
              f"all: {sum(row[3] * row[5] for row in rows) / sum(row[5] for row in rows):.2f} times")
    print("slower:", *sorted(f"{row[2]:.2f} {row[0]}" for row in wide if row[2] < SLOWER), sep="\n    ")
    print("longer to compile:", *sorted(f"{row[3]:.2f} {row[0]}" for row in rows if row[3] > LONGER), sep="\n    ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--lanes", default="0")
    parser.add_argument("--group", type=int, default=64)
    parser.add_argument("--rounds", action="store_true")
    parser.add_argument("-j", type=int, default=1, dest="jobs")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    files = sorted(path for path in (TESTS / "diff").rglob("*.slang") if "lib" not in path.parts)[options.first::options.of]
    files = [path for path in files if not options.names or any(name in str(path) for name in options.names)]
    rows = []
    print(f"{'lanes':>5} {'faster':>7} {'compile':>8} {'ns':>9} {'ms':>7}")
    with tempfile.TemporaryDirectory(prefix="slope-bench-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        program = compile_c(Path(options.build).resolve(), "lanes_survey", NATIVE, folder)
        for found in pool.map(lambda path: survey(program, path, options, folder), files):
            rows += found
            for row in found:
                show(row)
    for width in options.lanes.split(","):
        print(f"lanes {width if width != '0' else 'chosen'}:", end=" ")
        summarize([row for row in rows if row[7] == width])


if __name__ == "__main__":
    main()
