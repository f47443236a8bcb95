#!/usr/bin/env python3
"""What loops over items gain by doing several rounds at once (bench/loops.slang): nanoseconds per round and milliseconds to compile and begin, one round at a time, as many as
are chosen, and 8 and 16. Least processor's time of several runs, in turns.

    bench/loops.py [--build DIR] [--lanes 1,auto,8,16] [--runs N]
"""
import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOOPS = ("a loss", "its gradient", "a gradient for each", "Newton's method")
ROUNDS, REPEATS = 4000, 400


def seconds(slope, which, repeats, lanes):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([slope, "run", HERE / "loops.slang", "--no-cache", f"--bind=data=zeros:{ROUNDS}", f"--bind=result=zeros:{ROUNDS}",
                    f"--set=which={which}", f"--set=reps={repeats}", "--lanes", lanes], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=HERE.parent / "build", type=Path)
    parser.add_argument("--lanes", default="1,auto,8,16")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    ways = options.lanes.split(",")
    for which, name in enumerate(LOOPS):
        runs = [{way: (seconds(options.build / "slope", which, REPEATS, way), seconds(options.build / "slope", which, 0, way)) for way in ways}
                for _ in range(options.runs)]
        for way in ways:
            work, begin = (min(run[way][i] for run in runs) for i in range(2))
            print(f"{name:20} {way:5} {(work - begin) / REPEATS / ROUNDS * 1e9:7.1f} ns {begin * 1e3:6.0f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
