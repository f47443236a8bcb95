#!/usr/bin/env python3
"""Random differentiable programs, each checked against itself; `make fuzz`, and a part of `make test`.

    tests/fuzz/fuzz.py [--build DIR] [--count N] [--seconds N] [--seed N] [--again SHARE]

Every program is a function with what it needs: types, helpers, custom derivatives. It is compiled with fwd_diff and bwd_diff
of it, many to a module, and checks itself: forward mode against differences, reverse against forward mode (harness.py). All
are interpreted without optimisation; a share of them is run again, with Slope's own optimisations, and a smaller share as
machine code of some level or through C, and must give the same. To each batch comes a program with loops over items (items.py), of which
several rounds are done at once, or which goes through C, and one with gradients over grids (grids.py), which is compared with differences, and run with
several rounds and threads at once. A program that fails is made small (shrink.py) and kept in BUILD/fuzz with
its seed and its command. The same seed gives the same programs.

Points where a function is not smooth are passed over ("rough"), so are values that are too large ("unfit"); functions whose
derivative is zero everywhere ("idle") check little and are counted.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/fuzz"))
from execute import GRIDS, LANES, LOOPS, WAYS, Executor, Result
from generate import Generator
from grids import SERIAL, Grids
from harness import kernel_text, module_text
from items import Items, MEMORY, program_text
from shrink import shrink

BATCH = 24
ALONE = ("GPU", *LANES, *LOOPS, *GRIDS)     # each program is compiled by itself: NVIDIA's compiler needs long for many functions, kernels are run one by one
KEPT_PER_KIND = 3       # more of the same are only counted
TOO_MUCH = ("status 1: it takes too many steps", "killed by SIGABRT", "takes too long")      # for the interpreter
OTHER_WAYS = ["passes"] * 6 + ["code -O0", "code -O1", "code -O3", "C", "lanes"]


def digests_differ(program, a, b):
    tolerance = 2e-2 if program.single else 1e-6
    return abs(a.digest - b.digest) > tolerance * (1 + abs(a.digest))


def compare_ways(program, plain, other, way):
    """The result of another way to run a program, with a failure if it is not that of the plain one. Machine code is made only of what
    is called, the plain way takes all functions: one may be refused for what the other does not look at."""
    if plain.refused or other.refused:
        return Result()
    if other.failure:
        other.failure = f"{way}: {other.failure}"
    elif not plain.failure and way not in LANES and ((plain.good, plain.rough, plain.unfit) != (other.good, other.rough, other.unfit)
                                or digests_differ(program, plain, other)):
        return Result(f"{way}: another result", f"{other.digest!r} instead of {plain.digest!r}")
    return other


def way_of(kind):
    """The way to run a program in which a kind of failure was seen."""
    return next((way for way in WAYS if kind.startswith(f"{way}: ")), "plain")


class Fuzz:
    def __init__(self, options):
        self.options = options
        self.executor = Executor(Path(options.build).resolve() / "slope")
        self.folder = Path(options.build).resolve() / "fuzz"
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.features = collections.Counter()
        self.kinds = collections.defaultdict(list)      # kind of failure -> seeds

    # ---- running

    def run_batch(self, first, count):
        programs, features = {}, []
        if self.options.only in GRIDS:
            return self.run_only({seed: Grids(seed).program() for seed in range(first, first + count)})
        for seed in range(first, first + count):
            generator = Items(seed) if self.options.only in LOOPS else Generator(seed)
            programs[seed] = generator.program()
            features += generator.features
        if self.options.only:
            return self.run_only(programs)
        results = {seed: self.look_closer(programs[seed], result) for seed, result in self.executor.run(programs).items()}
        way, chosen = self.choose_again(programs)
        for seed, result in (self.executor.run(chosen, way) if chosen else {}).items():
            compared = compare_ways(programs[seed], results[seed], result, way)
            if compared.failure and not results[seed].failure:
                results[seed] = compared
        self.run_loops(first)
        self.run_grids(first)
        with self.lock:
            self.features.update(features)
            self.counts["again"] += len(chosen)
            for seed, result in results.items():
                self.add(result)
        for seed, result in results.items():
            if result.failure and not result.refused:
                self.keep(seed, programs[seed], result)

    def run_loops(self, seed):
        program, through_c = Items(seed).program(), random.Random(seed).random() < 0.15
        result = self.executor.run({0: program}, "loops C" if through_c else "loops")[0]
        if result.failure:
            self.keep(seed, program, result)

    def run_grids(self, seed):
        program = Grids(seed).program()
        way = random.Random(seed).choices(GRIDS, [88, 6, 6])[0]
        result = self.executor.run({0: program}, way)[0]
        if result.failure:
            self.keep_grids(seed, program, way, result)

    def run_only(self, programs):
        """In one way alone; what fails is told, not made small."""
        for seed, result in self.executor.run(programs, self.options.only).items():
            with self.lock:
                self.add(result)
                if result.failure and not result.refused:
                    self.kinds[result.failure].append(seed)
                    print(f"seed {seed}: {result.failure} {result.detail.strip()[-400:]}", flush=True)

    def look_closer(self, program, result):
        """What was too much for the interpreter may be right as machine code, what leaves the range or precision of float may not do so
        in double, and what other rounding changes by as much as it is wrong says nothing."""
        kind = result.failure or ""
        if kind in TOO_MUCH:
            return self.executor.run({0: program}, "code -O1")[0]
        slightly = kind == "forward mode is wrong" and abs(result.got - result.wanted) < 0.2 * abs(result.wanted)
        if program.single and (slightly or kind.endswith("is not a number")) and not self.run_wide(program).failure:
            return Result(unfit=self.executor.samples)
        if kind == "forward mode is wrong":
            loose = self.executor.run({0: program}, "loose")[0]
            differs = abs(loose.got - result.got) > 0.1 * abs(result.got - result.wanted)
            passed_over = not loose.failure and loose.rough + loose.unfit > result.rough + result.unfit
            if passed_over or loose.failure == "primal changed by forward mode" or loose.failure == kind and differs:
                return Result(rough=self.executor.samples)
        return result

    def run_wide(self, program):
        """A program in float, as it is in double."""
        program.single = False
        wide = self.executor.run({0: program})[0]
        program.single = True
        return wide

    def choose_again(self, programs):
        """Another way to run some of the programs, and which."""
        rng = random.Random(min(programs))
        return rng.choice(OTHER_WAYS), {seed: p for seed, p in programs.items() if rng.random() < self.options.again}

    def add(self, result):
        counts = self.counts
        counts["functions"] += 1
        counts["refused"] += result.refused
        counts["failed"] += result.failure is not None and not result.refused
        counts["good"] += result.good
        counts["rough"] += result.rough
        counts["unfit"] += result.unfit
        counts["idle"] += result.failure is None and result.size < 1e-9

    # ---- failures

    def find_failing(self, candidates, kind):
        """The first of the programs that fails in this way, or None."""
        if way_of(kind) != "plain":
            return next((k for k, c in enumerate(candidates) if self.fails_otherwise(c, kind)), None)
        if kind.startswith(("killed", "status", "error", "takes", "no result")):
            return next((k for k, c in enumerate(candidates) if self.executor.run({0: c})[0].failure == kind), None)
        results = self.executor.run(dict(enumerate(candidates)))
        return next((k for k in range(len(candidates)) if results[k].failure == kind), None)

    def fails_otherwise(self, program, kind):
        way = way_of(kind)
        if way in LOOPS:
            return self.executor.run({0: program}, way)[0].failure == kind
        plain, other = self.executor.run({0: program})[0], self.executor.run({0: program}, way)[0]
        return not plain.failure and compare_ways(program, plain, other, way).failure == kind

    def reproduction(self, way, seed, program):
        """A command for a file that is still to be named, and the file's text."""
        option, interpreted = WAYS[way]
        if way == "loops C":
            return f"slope build -w {option} -target c -o code.c {{}}", program_text(program)
        if way in LOOPS:
            bound = " ".join(f"--bind {name}=zeros:{size} --print {name}" for name, size in MEMORY.items())
            return f"slope run -w {option} --lanes 4 {bound} {{}}", program_text(program)
        if way in LANES:
            text, size = kernel_text(program)
            return f"slope run -w {option} --lanes 4 --bind found=zeros:{size} --print found {{}}", text
        command = f"slope dump -w {option} {{}} | tests/irrun -" if interpreted else f"slope run -w --fp strict {option} {{}}"
        return f"{command}    (a line: number, failure, sample, got, wanted, ...)", module_text({seed: program}, self.executor.samples)

    def keep(self, seed, program, result):
        kind = result.failure
        with self.lock:
            self.kinds[kind].append(seed)
            if len(self.kinds[kind]) > KEPT_PER_KIND:
                return
            print(f"seed {seed}: {kind} {result.detail.strip()}", flush=True)
        small = shrink(program, lambda candidates: self.find_failing(candidates, kind), self.options.shrink_seconds)
        command, text = self.reproduction(way_of(kind), seed, small)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"seed-{seed}.slang"
        detail = "".join(f"//   {line}\n" for line in result.detail.strip().splitlines()[-12:])
        path.write_text(f"// {kind}\n{detail}// tests/fuzz/fuzz.py --seed {seed} --count 1\n"
                        f"// {command.format(path.name)}\n{text}")
        with self.lock:
            print(f"    made small: {path}", flush=True)

    def keep_grids(self, seed, program, way, result):
        """As it is."""
        with self.lock:
            self.kinds[result.failure].append(seed)
            print(f"seed {seed}: {result.failure} {result.detail.strip()}", flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"grids-{seed}.slang"
        path.write_text(f"// {result.failure}\n// tests/fuzz/fuzz.py --only '{way}' --seed {seed} --count 1\n"
                        f"// slope run -w {path.name} {WAYS[way][0]} {' '.join(program.options(SERIAL))}\n{program.text}")

    # ---- the whole

    def run(self):
        options = self.options
        started = reported = time.monotonic()
        seeds = range(options.seed, options.seed + options.count) if options.count else itertools.count(options.seed)
        batch = 1 if options.only in ALONE else BATCH
        firsts = iter(seeds[::batch] if options.count else itertools.count(options.seed, batch))
        last = options.seed + options.count if options.count else None
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            pending = set()
            try:
                while True:
                    over = options.seconds and time.monotonic() - started > options.seconds
                    while len(pending) < options.jobs and not over:
                        first = next(firsts, None)
                        if first is None:
                            break
                        pending.add(pool.submit(self.run_batch, first, min(batch, last - first) if last else batch))
                    if not pending:
                        break
                    done, pending = concurrent.futures.wait(pending, 1, concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        future.result()
                    if not options.quiet and time.monotonic() - reported > 30:
                        reported = time.monotonic()
                        print(self.summary(reported - started), flush=True)
            except KeyboardInterrupt:
                for future in pending:
                    future.cancel()
        return self.report(time.monotonic() - started)

    def summary(self, seconds):
        c = self.counts
        return (f"{c['functions']} functions ({c['functions'] * 60 / max(seconds, 1):.0f} a minute), {c['again']} also in another way; "
                f"samples: {c['good']} good, {c['rough']} rough, {c['unfit']} unfit; {c['idle']} idle; "
                f"{c['refused']} refused; {c['failed']} failed")

    def report(self, seconds):
        for kind, seeds in sorted(self.kinds.items(), key=lambda item: -len(item[1])):
            print(f"{len(seeds)} x {kind}: seeds {' '.join(map(str, seeds[:8]))}")
        if self.options.features:
            for name, count in self.features.most_common():
                print(f"{count:8} {name}")
        print(self.summary(seconds))
        return 1 if self.kinds else 0


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--count", type=int, default=0, help="functions to try; 0: no end")
    parser.add_argument("--seconds", type=float, default=0, help="start nothing new after that time; 0: no end")
    parser.add_argument("--seed", type=int, default=None, help="of the first function; default: by the clock")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", type=float, default=0.25, help="share that is run in another way as well: optimised, as machine code")
    parser.add_argument("--only", help="run every program in this way alone, such as GPU, and compare it with itself alone")
    parser.add_argument("--shrink-seconds", type=float, default=90)
    parser.add_argument("--features", action="store_true", help="say how many functions used what")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args(words)


def run_fixed(build, count):
    """That many functions, always the same: how many are right, and a list of (name, what went wrong)."""
    fuzz = Fuzz(arguments(["--build", str(build), "--seed", "1", "--count", str(count), "--quiet", "--shrink-seconds", "20"]))
    fuzz.run()
    failures = [(f"tests/fuzz/fuzz.py --seed {seed} --count 1", kind) for kind, seeds in fuzz.kinds.items() for seed in seeds]
    return count - len(failures), failures


def main():
    options = arguments()
    if options.seed is None:
        options.seed = int(time.time()) % 1000000 * 1000
        print(f"fuzz: seed {options.seed}", flush=True)
    fuzz = Fuzz(options)
    if not fuzz.executor.slope.exists():
        sys.exit(f"fuzz: there is no {fuzz.executor.slope}")
    return fuzz.run()


if __name__ == "__main__":
    sys.exit(main())
