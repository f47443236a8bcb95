#!/usr/bin/env python3
"""Runs every library function on many inputs and compares with what C computes.

The cases are those of the C program beside this file (reference.h), one at least for everything that the prelude declares
(coverage.py); programs are made of them, a few hundred in each, and run;
the C program says which results are right. Scalar cases are run on constants too, which the compiler computes.

    tests/library/library.py [--build DIR] [-v] [NAME...]     only cases whose code contains a NAME
"""
import argparse
import concurrent.futures
import itertools
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import coverage
from run import ASAN_NOISE

HERE = Path(__file__).resolve().parent
KINDS = ["bool", "int8_t", "uint8_t", "int16_t", "uint16_t", "int", "uint", "int64_t", "uint64_t", "half", "float", "double"]
POOLS = ["wild", "tame", "unit", "above"]
ITEMS, CONSTANT_ITEMS, LANES = 1024, 12, 64  # as in reference.h
CASES_PER_PROGRAM = 200
FEW_CASES = 6         # with lanes: what one of them does that lanes cannot keeps all others from it
SECONDS = 300

HEAD = """StructuredBuffer<uint64_t> data;
RWStructuredBuffer<uint64_t> result;
double real(int kind, int item, int lane) { return bit_cast<double>(data[(kind * %d + item) * %d + lane]); }
int64_t whole(int kind, int item, int lane) { return (int64_t)data[(kind * %d + item) * %d + lane]; }
void put(int at, double x) { result[at] = bit_cast<uint64_t>(x); }
void put(int at, float x) { put(at, (double)x); }
void put(int at, half x) { put(at, (double)x); }
void put(int at, int64_t x) { result[at] = (uint64_t)x; }
void put(int at, uint64_t x) { result[at] = x; }
void put(int at, int x) { put(at, (int64_t)x); }
void put(int at, int16_t x) { put(at, (int64_t)x); }
void put(int at, int8_t x) { put(at, (int64_t)x); }
void put(int at, uint x) { put(at, (uint64_t)x); }
void put(int at, uint16_t x) { put(at, (uint64_t)x); }
void put(int at, uint8_t x) { put(at, (uint64_t)x); }
void put(int at, bool x) { put(at, x ? 1 : 0); }
T weights<T : __BuiltinFloatingPointType>(T like) { return T(1); }
vector<T, N> weights<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> like)
{ vector<T, N> w; for (int i = 0; i < N; i++) w[i] = T(1) + T(0.25) * T(i); return w; }
matrix<T, R, C> weights<T : __BuiltinFloatingPointType, let R : int, let C : int>(matrix<T, R, C> like)
{ matrix<T, R, C> w; for (int i = 0; i < R; i++) for (int j = 0; j < C; j++) w[i][j] = T(1) + T(0.25) * T(i * C + j); return w; }
T inner<T : __BuiltinFloatingPointType>(T a, T b) { return a * b; }
T inner<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> a, vector<T, N> b) { return dot(a, b); }
T inner<T : __BuiltinFloatingPointType, let R : int, let C : int>(matrix<T, R, C> a, matrix<T, R, C> b)
{ T sum = T(0); for (int i = 0; i < R; i++) sum += dot(a[i], b[i]); return sum; }
""" % (ITEMS, LANES, ITEMS, LANES)


class Shape:
    def __init__(self, text):
        self.kind, _, size = text.partition(":")
        self.size = [int(n) for n in size.split("x")] if size else []
        self.lanes = 1
        for n in self.size:
            self.lanes *= n

    def type(self):
        if not self.size:
            return self.kind
        return f"{['vector', 'matrix'][len(self.size) - 1]}<{', '.join([self.kind, *map(str, self.size)])}>"

    def paths(self):
        """How each lane is written, in order."""
        if not self.size:
            return [""]
        if len(self.size) == 1:
            return [f"[{i}]" for i in range(self.size[0])]
        return [f"[{i}][{j}]" for i in range(self.size[0]) for j in range(self.size[1])]


class Case:
    def __init__(self, line):
        head, ins, outs = line.split(" | ") if line.count(" | ") == 2 else line.rsplit(" |", 2)
        number, constant, self.pool, self.code = head.split(" ", 3)
        self.number, self.constant = int(number), constant == "1"
        self.ins = [Shape(text) for text in ins.split()]
        self.outs = [Shape(text) for text in outs.split()]
        self.lanes = sum(shape.lanes for shape in self.outs)

    def body(self, item, at, value):
        """Statements that compute item number `item` and store it from index `at` on; `value` makes one input."""
        lines, used = [], {}
        for name, shape in zip("abcdef", self.ins):
            lanes = []
            for _ in range(shape.lanes):
                lane = used[shape.kind] = used.get(shape.kind, -1) + 1
                lanes.append(value(shape.kind, lane))
            text = lanes[0] if not shape.size else f"{shape.type()}({', '.join(lanes)})"
            lines.append(f"{shape.type()} {name} = {text};")
        lines += [f"{shape.type()} {name};" for name, shape in zip("yz", self.outs)]
        lines.append(self.code)
        lane = 0
        for name, shape in zip("yz", self.outs):
            for path in shape.paths():
                lines.append(f"put({at} + {lane}, {name}{path});")
                lane += 1
        return " ".join(lines)


def literal(kind, word):
    """A constant of that type, from a word of the inputs."""
    if kind in ("half", "float", "double"):
        return f"({kind})bit_cast<double>(0x{word:x}ull)"
    if kind == "bool":
        return "true" if word else "false"
    return f"({kind})0x{word:x}ull"


def make_program(cases, constants, inputs):
    """The text, and what is stored: (case, number of items, index of the first word)."""
    functions, calls, runs, at = [HEAD], [], [], 0
    for case in cases:
        def load(kind, lane):
            source = "real" if kind in ("half", "float", "double") else "whole"
            return f"({kind}){source}({KINDS.index(kind)}, item, {lane})"
        functions.append(f"void case_{case.number}(int item, int at) {{ {case.body('item', 'at', load)} }}")
        calls.append(f"case_{case.number}(item, {at} + item * {case.lanes});")
        runs.append((case, ITEMS, at))
        at += ITEMS * case.lanes
    once = []
    for case in constants:
        for item in range(CONSTANT_ITEMS):
            def constant(kind, lane, item=item):
                return literal(kind, inputs[case.pool][(KINDS.index(kind) * ITEMS + item) * LANES + lane])
            functions.append(f"void constant_{case.number}_{item}() {{ {case.body(item, at + item * case.lanes, constant)} }}")
            once.append(f"constant_{case.number}_{item}();")
        runs.append((case, CONSTANT_ITEMS, at))
        at += CONSTANT_ITEMS * case.lanes
    text = "\n".join(functions) + "\n[numthreads(64, 1, 1)] void main(int item : SV_DispatchThreadID)\n{\n"
    text += "\n".join("    " + call for call in calls)
    text += "\n    if (item != 0) return;\n" + "\n".join("    " + call for call in once) + "\n}\n"
    return text, runs, at


class Suite:
    def __init__(self, build, folder):
        self.slope, self.folder = Path(build).resolve() / "slope", Path(folder)
        self.reference = self.folder / "reference"

    def prepare(self):
        """Compiles the reference; returns what went wrong."""
        sources = sorted(str(path) for path in HERE.glob("*.c"))
        command = [os.environ.get("CC", "cc"), "-std=c17", "-O1", "-o", str(self.reference), *sources, "-lm"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            return result.stderr
        self.inputs = {}
        for pool in POOLS:
            words = subprocess.run([str(self.reference), "inputs", pool], capture_output=True, check=True).stdout
            (self.folder / pool).write_bytes(words)
            self.inputs[pool] = struct.unpack(f"<{len(words) // 8}Q", words)
        lines = subprocess.run([str(self.reference), "list"], capture_output=True, text=True, check=True).stdout
        self.cases = [Case(line) for line in lines.splitlines()]
        self.missing = coverage.check(lines.splitlines())
        return None

    def run_program(self, name, cases, options):
        """Runs these cases, all of one pool; returns how many passed, and the failures."""
        text, runs, words = make_program(cases, [case for case in cases if case.constant], self.inputs)
        source, saved = self.folder / f"{name}.slang", self.folder / f"{name}.saved"
        source.write_text(text)
        command = [str(self.slope), "run", *options, str(source), "--dispatch", f"{ITEMS // 64},1,1", "--bind",
                   f"data=@{self.folder / cases[0].pool}", "--bind", f"result=zeros:{words}", "--save", f"result=@{saved}"]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return 0, [(f"library/{name}", f"took longer than {SECONDS} s")]
        errors = ASAN_NOISE.sub("", result.stderr)
        if result.returncode or errors:
            return 0, [(f"library/{name}", f"exit status {result.returncode}\n{errors[-3000:]}")]
        return self.check(name, runs, saved)

    def check(self, name, runs, saved):
        words, results = saved.read_bytes(), self.folder / f"{name}.results"
        with results.open("wb") as file:
            for case, items, at in runs:
                file.write(struct.pack("<QQ", case.number, items) + words[at * 8:(at + items * case.lanes) * 8])
        output = subprocess.run([str(self.reference), "check", str(results)], capture_output=True, text=True).stdout
        saved.unlink()
        results.unlink()
        passed, failures, notes = 0, [], []
        for line in output.splitlines():
            if line.startswith("  "):
                notes.append(line.strip())
                continue
            if line.startswith("ok"):
                passed += 1
            else:
                failures.append((f"library/{line[5:]}", "\n".join(notes)))
            notes = []
        if passed + len(failures) != len(runs):
            failures.append((f"library/{name}", f"{len(runs)} runs, {passed + len(failures)} answers"))
        return passed, failures


def programs_of(cases, each=CASES_PER_PROGRAM):
    """Cases split into programs, by pool; those of one type stay together."""
    for pool in POOLS:
        chosen = [case for case in cases if case.pool == pool]
        for i in range(0, len(chosen), each):
            yield f"{pool}_{i // each}", chosen[i:i + each]


def run_library(build, names=(), jobs=None, folder=None, options=("-O2",), coded=1):
    """All cases on a build: how many passed, and a list of (name, what went wrong). Of one of so many programs machine code is made, the others are
    interpreted."""
    with tempfile.TemporaryDirectory(prefix="slope-library-") as temporary:
        suite = Suite(build, folder or temporary)
        problem = suite.prepare()
        if problem:
            return 0, [("library/reference", problem)]
        cases = [case for case in suite.cases if not names or any(name in case.code for name in names)]
        passed, failures = 0, []
        if not names:
            passed, failures = int(not suite.missing), [("library/coverage", "\n".join(suite.missing))] if suite.missing else []
        with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            each = FEW_CASES if "--lanes" in options else CASES_PER_PROGRAM
            ways = (options if i % coded == 0 else ("--interpret",) for i in itertools.count())
            for count, failed in pool.map(lambda program, way: suite.run_program(*program, way), programs_of(cases, each), ways):
                passed += count
                failures += failed
        return passed, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent.parent / "build", help="the build to test")
    parser.add_argument("--keep", help="a folder for the programs, which stay there")
    parser.add_argument("-j", "--jobs", type=int, help="programs at a time")
    parser.add_argument("--interpret", action="store_true", help="by the interpreter")
    parser.add_argument("--lanes", help="items, and rounds of loops, to be done at once")
    parser.add_argument("names", nargs="*", help="only cases whose code contains one of these")
    options = parser.parse_args()
    how = ("--interpret",) if options.interpret else ("-O2",)
    how += ("--lanes", options.lanes) if options.lanes else ()
    passed, failures = run_library(options.build, options.names, options.jobs, options.keep, how)
    for name, what in failures:
        print(f"FAIL {name}\n    " + what.replace("\n", "\n    "))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
