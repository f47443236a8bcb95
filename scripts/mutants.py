#!/usr/bin/env python3
"""Would the tests notice? Breaks single lines of autodiff, opt and prelude/diff.slang, and sees which tests fail.

    scripts/mutants.py [--count N] [--seed N] [--folder DIR] [--tests N] [--only TEXT] [--report]

A mutant is one line with one change: operands or signs swapped, a statement dropped, a condition negated, a number off by one, one
function for another. It is built in a copy of the sources (DIR, kept between calls; what was tried is not tried again), and the tests
that look at derivatives run one after the other, those that noticed most so far first, until one fails. What no test of the suite notices
goes to random functions that no test has tried; if these fail, the mutant gives wrong results and the suite does not see it: it SURVIVES.
What passes even these is "idle": it changes no result that was ever looked at (costs, order, what can never happen).

One process at a time, so that it can run beside other work: nice -n 19 scripts/mutants.py. The last line gives the share of those mutants
with wrong results that the suite notices. --report only prints what is known.
"""
import argparse
import collections
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/fuzz")]
import run as suite_runner
from execute import Executor
from fuzz import Fuzz, arguments

TESTS = ("diff/", "ir/", "cost/", "gradcheck/", "library/rules")
TARGETS = ["slope", "slope-llvm", "irrun", "irtool", "ircount"]
FIXED, FIRST_STRANGE, STRANGE = 48, 700000000, 144      # random functions: of the suite, and others


# ---- changes to a line

SWAPS = {" + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " == ": " != ", " != ": " == ", " < ": " <= ", " <= ": " < ",
         " > ": " >= ", " >= ": " > ", " && ": " || ", " || ": " && ", "true": "false", "false": "true", "[0]": "[1]", "[1]": "[0]",
         "+ 1": "+ 0", "- 1": "- 0", " = 0;": " = 1;", "sin(": "cos(", "cos(": "sin(", "x.p": "y.p", "y.p": "x.p", "x.d": "y.d", "y.d": "x.d",
         "DIR_in": "DIR_inout", "OP_add": "OP_sub", "OP_mul": "OP_div", "AD_fwd": "AD_bwd", "i++": "i += 2"}
CALL = re.compile(r"^\s+(?!return\b|else\b|case\b|break\b|static\b|const\b)[\w>.\[\]-]+(\(.*\)|(\[.*\])? [-+|&]?= .*);$")
CONDITION = re.compile(r"\b(if|while) \((?=.)")


def closing(text, start):
    """Where the parenthesis at `start` is closed, or None."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def changes(line):
    """(name, changed line) for everything that can be done to a line."""
    code = line.split("//")[0].split("/*")[0].rstrip()
    if not code.strip() or code.lstrip().startswith(("*", "#", "static const", "typedef")):
        return
    for old, new in SWAPS.items():
        for found in re.finditer(re.escape(old), code):
            yield f"{old.strip()} at {found.start()}", code[:found.start()] + new + code[found.end():]
    for found in CONDITION.finditer(code):
        start = found.end() - 1
        end = closing(code, start)
        if end:
            yield f"not at {start}", f"{code[:start]}(!{code[start:end + 1]}){code[end + 1:]}"
    if CALL.match(code):
        yield "dropped", code[:len(code) - len(code.lstrip())] + ";"


def candidates(tree):
    files = sorted((tree / "src/autodiff").glob("*.c")) + sorted((tree / "src/opt").glob("*.c")) + [tree / "prelude/diff.slang"]
    for path in files:
        name = str(path.relative_to(tree))
        for number, line in enumerate(path.read_text().splitlines()):
            for change, text in changes(line):
                yield {"file": name, "line": number, "was": line.strip(), "change": change, "text": text}


def key_of(mutant):
    return f"{mutant['file']}: {mutant['was']}: {mutant['change']}"


def choose(tree, seed, only):
    """All mutants in the order in which they are tried: no two of a line before every line had its turn."""
    rng, by_line = random.Random(seed), collections.defaultdict(list)
    for mutant in candidates(tree):
        if only in mutant["file"]:
            by_line[mutant["file"], mutant["line"]].append(mutant)
    lines = [rng.sample(group, len(group)) for group in by_line.values()]
    rng.shuffle(lines)
    for turn in range(max(map(len, lines), default=0)):
        yield from (group[turn] for group in lines if turn < len(group))


# ---- a copy of the sources

class Scratch:
    def __init__(self, folder):
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.copy()
        options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-w", "-DCMAKE_C_FLAGS_DEBUG=-O1"]
        if shutil.which("ccache"):
            options.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        subprocess.run(["cmake", "-S", self.tree, "-B", self.build, *options], check=True, stdout=subprocess.DEVNULL)
        if not self.make():
            sys.exit("mutants: the sources do not build")

    def copy(self):
        files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
        digest = hashlib.sha256()
        for name in filter(None, files):
            source, target = ROOT / name, self.tree / name
            if not source.is_file():
                continue
            digest.update(source.read_bytes())
            if target.exists() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        self.digest = digest.hexdigest()

    def make(self):
        return subprocess.run(["cmake", "--build", self.build, "--target", *TARGETS, "--", "-j1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def put(self, mutant):
        """Makes the change; returns what the file was."""
        path = self.tree / mutant["file"]
        was = path.read_text()
        lines = was.splitlines()
        lines[mutant["line"]] = mutant["text"]
        path.write_text("\n".join(lines) + "\n")
        return was


# ---- noticing

class Judge:
    def __init__(self, scratch, state, most=0):
        self.kills = state["kills"]     # how often each test was the one that noticed
        self.slow = state["seconds"]    # that each takes; None: it fails anyway
        self.suite = suite_runner.Suite(scratch.build, root=scratch.tree / "tests")
        self.suite.seconds = 20
        found, _ = suite_runner.discover(self.suite)
        found = [test for test in found if test.name.startswith(TESTS)]
        found = found[::max(1, len(found) // most)] if most else found
        self.tests = {test.name: test for test in found}
        self.scratch = scratch

    def check_itself(self):
        """What fails without any change says nothing, and what is slow comes late."""
        for name, test in self.tests.items():
            if name in self.slow:
                continue
            start = time.monotonic()
            failed = suite_runner.run_test(self.suite, test)[1]
            self.slow[name] = None if failed else time.monotonic() - start
        broken = [name for name in self.tests if self.slow[name] is None]
        if broken:
            print(f"mutants: left out, as they fail anyway: {' '.join(broken)}", flush=True)

    def in_order(self):
        names = [name for name in self.tests if self.slow[name] is not None]
        return sorted(names, key=lambda name: (-self.kills.get(name, 0) / (0.1 + self.slow[name]), self.slow[name]))

    def random_functions(self, first, count):
        """A failure among random functions, or None."""
        options = arguments(["--build", str(self.scratch.build), "--seed", str(first), "--count", str(count), "--quiet", "--jobs", "1",
                             "--again", "0.3", "--shrink-seconds", "0"])
        fuzz = Fuzz(options)
        fuzz.keep = lambda seed, program, result: fuzz.kinds[result.failure].append(seed)
        fuzz.executor = Executor(self.scratch.build / "slope", 5)
        for start in range(first, first + count, 24):
            fuzz.run_batch(start, 24)
            if fuzz.kinds:
                kind, seeds = next(iter(fuzz.kinds.items()))
                return f"random function {seeds[0]}: {kind}"
        return None

    def noticed_by(self):
        """The name of what notices, or None."""
        order = self.in_order()
        for name in order[:40]:
            if suite_runner.run_test(self.suite, self.tests[name])[1]:
                return name
        if self.random_functions(1, FIXED):
            return "fuzz"
        for name in order[40:]:
            if suite_runner.run_test(self.suite, self.tests[name])[1]:
                return name
        return None


def judge_mutant(scratch, judge, mutant):
    was = scratch.put(mutant)
    try:
        if not scratch.make():
            return {"result": "does not compile"}
        test = judge.noticed_by()
        if test:
            return {"result": "noticed", "by": test}
        strange = judge.random_functions(FIRST_STRANGE, STRANGE)
        return {"result": "SURVIVES", "by": strange} if strange else {"result": "idle"}
    finally:
        (scratch.tree / mutant["file"]).write_text(was)


# ---- the whole

def show(state):
    results = state["mutants"]
    for key, found in results.items():
        if found["result"] in ("SURVIVES", "idle"):
            print(f"{found['result']:9} {key}    {found.get('text', '').strip()}    {found.get('by', '')}")
    counts = collections.Counter(found["result"] for found in results.values())
    tried = sum(counts.values()) - counts["does not compile"]
    wrong = counts["noticed"] + counts["SURVIVES"]
    share = 100 * counts["noticed"] / max(1, wrong)
    print(f"{tried} mutants: {counts['noticed']} noticed, {counts['SURVIVES']} survive, {counts['idle']} change no result; {share:.1f} % noticed")
    return 1 if share < 95 else 0


def save(path, state):
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(state, file, indent=1)
    os.replace(file.name, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="mutants to try, with those tried before")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/mutants", help="where the copy and the results are")
    parser.add_argument("--tests", type=int, default=0, help="use only so many tests, spread over all of them; 0: all")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--report", action="store_true", help="say what is known, try nothing")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))       # with the line put right again
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "state.json"
    state = json.loads(path.read_text()) if path.exists() else {"mutants": {}, "kills": {}, "seconds": {}}
    if options.report:
        return show(state)
    scratch = Scratch(folder)
    if state.get("sources") != scratch.digest:
        state.update(sources=scratch.digest, seconds={})    # other tests may fail, or take longer
    judge = Judge(scratch, state, options.tests)
    judge.check_itself()
    save(path, state)
    tried = sum(found["result"] != "does not compile" for found in state["mutants"].values())
    for mutant in choose(scratch.tree, options.seed, options.only):
        if tried >= options.count:
            break
        key = key_of(mutant)
        if key in state["mutants"]:
            continue
        start = time.monotonic()
        found = judge_mutant(scratch, judge, mutant)
        state["mutants"][key] = {**found, "text": mutant["text"]}
        if found["result"] == "noticed":
            state["kills"][found["by"]] = state["kills"].get(found["by"], 0) + 1
        tried += found["result"] != "does not compile"
        save(path, state)
        print(f"{tried:4} {time.monotonic() - start:5.0f} s  {found['result']:9} {mutant['file']}:{mutant['line'] + 1} "
              f"{mutant['text'].strip()}    {found.get('by', '')}", flush=True)
    return show(state)


if __name__ == "__main__":
    sys.exit(main())
