"""Runs modules of generated programs and says what is wrong with which program.

There are several ways to run a module (WAYS). The plain one interprets the IR that differentiation leaves: that is several times
faster than machine code, most of which would run only a few times.
"""
import itertools
import math
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from served import Served
import grids
import items
from harness import BUFFER_SIZE, BUFFERS, FAILURES, kernel_text, module_text


MOST_MEMORY = 2 << 30       # of the interpreter
# Machine code rounds as the interpreter does: where values cancel, the last digit decides between 0 and not 0, hence everything.
WAYS = {                    # option of slope; is the IR interpreted, or machine code made?
    "plain": ("-O0", True),
    "passes": ("-O3", True),
    "code -O0": ("-O0", False),
    "code -O1": ("-O1", False),
    "code -O3": ("-O3", False),
    "loose": ("-O3 --fp=fast", False),      # only to see whether rounding decides
    "C": ("-O3", False),
    "GPU": ("-O1", False),
    "lanes": ("-O2 --interpret", True),     # as a kernel over several items, one at a time and several at once
    "lanes code": ("-O2 --fp=strict", False),
    "loops": ("-O2 --interpret", True),     # over items (items.py), one round at a time and several at once
    "loops code": ("-O2 --fp=strict", False),
    "loops C": ("-O3 --fp=strict", False),
    "grids": ("-O2 --interpret", True),     # gradients over grids (grids.py), in loops and in kernels on several threads
    "grids code": ("-O2", False),
    "grids C": ("-O3", False),
}
LANES = ("lanes", "lanes code")
REFUSED = ("error E5024",)      # with a message that says what to do: references on tapes
LOOPS = ("loops", "loops code", "loops C")
GRIDS = ("grids", "grids code", "grids C")
WIDTHS = (4, 16)
# Random programs compare values with themselves and test what is always true; that a compiler says so is no fault.
C_ERRORS = ["unused", "uninitialized", "parentheses", "return-type", "implicit-function-declaration", "int-conversion", "sign-compare",
            "incompatible-pointer-types", "discarded-qualifiers", "discarded-array-qualifiers"]
# gcc 12 drops stores that its summaries of functions (modref) take for dead: seed 45003350 of this generator in 2026.
C_COMPILER = ["gcc", "-O1", "-ffp-contract=off", "-fno-ipa-modref", "-std=c17", "-Wall", "-Wextra", *(f"-Werror={name}" for name in C_ERRORS)]


class Result:
    """What one program did, run in one way."""
    def __init__(self, failure=None, detail="", rough=0, unfit=0, good=0, size=0.0, digest=0.0, got=0.0, wanted=0.0):
        self.failure, self.detail = failure, detail    # failure: None, or the kind of it
        self.got, self.wanted = got, wanted            # where numbers are wrong
        self.rough, self.unfit, self.good = rough, unfit, good
        self.size, self.digest = size, digest

    @property
    def refused(self):
        return (self.failure or "").startswith(REFUSED)


class Executor:
    def __init__(self, slope, seconds=20, samples=5):
        self.slope, self.seconds, self.samples = slope, seconds, samples
        self.interpreter = slope.parent / "tests" / "irrun"
        self.server = Served(slope.parent)  # for a GPU
        self.folder = Path(tempfile.mkdtemp(prefix="slope-fuzz-"))
        weakref.finalize(self, shutil.rmtree, self.folder, True)
        self.numbers = itertools.count()

    def run(self, programs, way="plain"):
        """Results by number. A module that does not run is divided until the culprits are found."""
        if way in LANES:
            return {number: self.run_lanes(program, way) for number, program in programs.items()}
        if way in LOOPS:
            return {number: self.run_loops(program, way) for number, program in programs.items()}
        if way in GRIDS:
            return {number: self.run_grids(program, way) for number, program in programs.items()}
        output, failure, detail = self.execute(module_text(programs, self.samples), way, len(programs))
        results = {}
        for line in output.splitlines():
            self.read_line(line, programs, results)
        if failure is None and len(results) == len(programs):
            return results
        if len(programs) == 1:
            number = next(iter(programs))
            return {number: Result(failure or "no result", detail)}
        numbers = list(programs)
        middle = len(numbers) // 2
        results = {}
        for part in (numbers[:middle], numbers[middle:]):
            results.update(self.run({n: programs[n] for n in part}, way))
        return results

    def execute(self, text, way, count):
        path = self.folder / f"m{next(self.numbers) % 4096}.slang"
        path.write_text(text)
        option, interpreted = WAYS[way]
        common = ["-w", "--error-limit", "3", *option.split(), str(path)]
        seconds = (self.seconds + 3 * count) * (1 if interpreted else 5)
        try:
            if way == "C":
                return self.finish(self.run_through_c(path, common, seconds))
            if not interpreted:
                bind = ["--fp", "strict", *(f"--bind={name}=zeros:{BUFFER_SIZE}" for name in BUFFERS)]
                if way == "GPU":
                    return self.finish(self.server.run_on_gpu([*bind, *common], self.folder, seconds, True))
                return self.finish(subprocess.run([self.slope, "run", "--threads", "1", *bind, *common], capture_output=True,
                                                  timeout=seconds))
            dump = subprocess.run([self.slope, "dump", *common], capture_output=True, timeout=seconds)
            if dump.returncode:
                return self.finish(dump)
            return self.finish(subprocess.run([self.interpreter, "-"], input=dump.stdout, capture_output=True, timeout=seconds,
                                              preexec_fn=limit_memory))
        except subprocess.TimeoutExpired:
            return "", "takes too long", ""

    def run_lanes(self, program, way):
        """One item at a time, then several: good are the numbers of lanes that agree, rough those that the compiler declined."""
        text, size = kernel_text(program)
        result = Result()
        one, failure, _, _ = self.run_kernel(text, size, way, 1) if text else ("", "buffers", "", "")
        if failure:
            return result   # not a matter of lanes
        for width in WIDTHS:
            several, failure, detail, remarks = self.run_kernel(text, size, way, width)
            wrong = None if failure else difference(one, several, program.single)
            if failure or wrong:
                return Result(f"{width} lanes: {failure or 'another result'}", wrong or detail)
            result.rough += "one item at a time" in remarks
            result.good += "one item at a time" not in remarks
        return result

    def run_loops(self, program, way):
        """One round at a time without optimisations, then several, and as machine code one as well: good are numbers of rounds that some loop
        does at once."""
        text, result = items.program_text(program), Result()
        if way != "loops" and not items.is_exact(text):
            return result
        one, failure, detail, _ = self.run_bound(text, ["-O0", "--interpret", "--lanes", "1"], items.MEMORY)
        if failure:
            return Result(f"{way}: {failure}", detail)
        if way == "loops C":
            memory, failure, detail = self.run_loops_through_c(text)
            wrong = None if failure else items.difference(one, items.as_printed(one, memory), True, text)
            return Result(f"{way}: {failure or 'another result'}", wrong or detail) if failure or wrong else Result(good=1)
        for width in WIDTHS if way == "loops" else (1, *WIDTHS):
            several, failure, detail, remarks = self.run_bound(text, [*WAYS[way][0].split(), "--lanes", str(width)], items.MEMORY)
            wrong = None if failure else items.difference(one, several, way != "loops", text)
            if failure or wrong:
                return Result(f"{way}: {width} rounds: {failure or 'another result'}", wrong or detail)
            result.rough += "rounds at once" not in remarks
            result.good += "rounds at once" in remarks
        return result

    def run_grids(self, program, way):
        """All of it without optimisations, which must agree with differences; then with several rounds and threads at once, or through C: good are runs
        that agree."""
        plain = ["-O0", "--interpret", "--lanes", "1"]
        one, failure, detail = self.run_grid(program, plain, grids.SERIAL)
        wrong = failure or program.fault([float(word) for word in one.split()])
        if wrong:
            return Result(f"{way}: {wrong}", detail)
        if way == "grids C":
            several, failure, detail = self.run_grids_through_c(program)
            wrong = None if failure else grids.difference(one, several, program.single)
            return Result(f"{way}: {failure or 'another result'}", wrong or detail) if failure or wrong else Result(good=1)
        result = Result()
        for entries in (grids.SERIAL, program.kernel_runs()):
            if entries is not grids.SERIAL:
                one, failure, detail = self.run_grid(program, plain, grids.KERNEL)
            for number, width in enumerate((1, *WIDTHS) if entries and not failure else ()):
                options = [*WAYS[way][0].split(), "--lanes", str(width), "--threads", str((1, 3, 2)[number])]
                several, failure, detail = self.run_grid(program, options, entries)
                wrong = None if failure else grids.difference(one, several, program.single)
                if failure or wrong:
                    break
                result.good += 1
            if failure or wrong:
                return Result(f"{way}: {' '.join(name for name, _ in entries or [])}, {width} lanes: {failure or 'another result'}", wrong or detail)
        return result

    def run_grid(self, program, options, entries):
        """What is in the buffers in the end, the kind of its failure or None, what is said about that."""
        path = self.folder / f"m{next(self.numbers) % 4096}.slang"
        path.write_text(program.text)
        command = [self.slope, "run", "-w", *options, *program.options(entries), path]
        try:
            return self.finish(subprocess.run(command, capture_output=True, timeout=5 * self.seconds, preexec_fn=limit_memory))
        except subprocess.TimeoutExpired:
            return "", "takes too long", ""

    def run_grids_through_c(self, program):
        path = self.folder / f"m{next(self.numbers) % 4096}.slang"
        path.write_text(program.text)
        options = ["-w", *WAYS["grids C"][0].split(), "-f", "main", str(path)]
        try:
            done = self.run_through_c(path, options, 5 * self.seconds, program.bytes(), [*C_COMPILER, "-O3"], program.set)
        except subprocess.TimeoutExpired:
            return "", "takes too long", ""
        return (program.as_printed(done.stdout) if done.returncode == 0 else "", *self.finish(done)[1:])

    def run_kernel(self, text, size, way, width):
        return self.run_bound(text, [*WAYS[way][0].split(), "--lanes", str(width)], {"found": size})

    def run_bound(self, text, options, sizes):
        """What it writes into buffers of these sizes, the kind of its failure or None, what is said about that, remarks."""
        path = self.folder / f"m{next(self.numbers) % 4096}.slang"
        path.write_text(text)
        bound = [f"--bind={name}=zeros:{size}" for name, size in sizes.items()] + [f"--print={name}" for name in sizes]
        command = [self.slope, "run", "-w", "--threads", "1", "--remarks", *options, *bound, path]
        try:
            done = subprocess.run(command, capture_output=True, timeout=5 * self.seconds, preexec_fn=limit_memory)
        except subprocess.TimeoutExpired:
            return "", "takes too long", "", ""
        return (*self.finish(done), done.stderr.decode(errors="replace"))

    def run_through_c(self, path, options, seconds, sizes=None, compiler=C_COMPILER, numbers=None):
        """As C, with a main of its own that gives it its buffers, and uniform numbers, and writes their bytes if it is told their sizes: bytes, elements."""
        code, main, program = path.with_suffix(".c"), path.with_suffix(".main.c"), path.with_suffix(".exe")
        made = subprocess.run([self.slope, "build", "-target", "c", "-o", code, *options], capture_output=True, timeout=seconds)
        if made.returncode:
            return made
        given, text = sizes or {name: (8 * BUFFER_SIZE, BUFFER_SIZE) for name in BUFFERS}, code.read_text()
        memory = "".join(f"__attribute__((unused)) static double memory_{name}[{size // 8}];\n" for name, (size, _) in given.items())
        bind = "".join(f"    {name}.data = (void *)memory_{name};\n    {name}.count = {count};\n" for name, (_, count) in given.items()
                       if re.search(rf"^Buffer_\w+ {name};", text, re.MULTILINE))
        bind += "".join(f"    {name} = {value};\n" for name, value in (numbers or {}).items() if re.search(rf"^int32_t {name};", text, re.MULTILINE))
        show = "".join(f"    fwrite(memory_{name}, 1, sizeof memory_{name}, stdout);\n" for name in sizes or ())
        main.write_text(f"#include <stdio.h>\n#define main program\n#include \"{code.name}\"\n#undef main\n\n{memory}\nint main(void) {{\n"
                        f"{bind}    int status = program();\n{show}    return status;\n}}\n")
        made = subprocess.run([*compiler, main, "-o", program, "-lm"], capture_output=True, timeout=seconds)
        return made if made.returncode else subprocess.run([program], capture_output=True, timeout=seconds)

    def run_loops_through_c(self, text):
        """The bytes of its buffers, the kind of its failure or None, what is said about that."""
        path = self.folder / f"m{next(self.numbers) % 4096}.slang"
        path.write_text(text)
        try:
            done = self.run_through_c(path, ["-w", *WAYS["loops C"][0].split(), str(path)], 5 * self.seconds, items.SIZES, [*C_COMPILER, "-O3"])
        except subprocess.TimeoutExpired:
            return b"", "takes too long", ""
        return (done.stdout, *self.finish(done)[1:])

    def finish(self, done):
        output = done.stdout.decode(errors="replace")
        return (output, None, "") if done.returncode == 0 else (output, *describe(done.returncode, done.stderr.decode(errors="replace")))

    def read_line(self, line, programs, results):
        words = line.split()
        if len(words) != 10 or not words[0].isdigit() or int(words[0]) not in programs:
            return
        failure = FAILURES[int(words[1])] or None
        detail = f"sample {words[2]}: {words[3]} instead of {words[4]}" if failure else ""
        results[int(words[0])] = Result(failure, detail, int(words[5]), int(words[6]), int(words[7]), float(words[8]),
                                        float(words[9]), float(words[3]), float(words[4]))


def is_close(a, b, tolerance):
    """Sums of derivatives have no order that anybody wrote."""
    return a == b or math.isnan(a) and math.isnan(b) or abs(a - b) <= tolerance * (1 + abs(a))


def difference(one, several, single):
    """None, or what differs first."""
    one, several = one.split(), several.split()
    if len(one) != len(several):
        return f"{len(several)} numbers instead of {len(one)}"
    tolerance = 1e-3 if single else 1e-9
    wrong = [i for i, (a, b) in enumerate(zip(one, several)) if not is_close(float(a), float(b), tolerance)]
    return f"number {wrong[0]} of {len(one)}: {several[wrong[0]]} instead of {one[wrong[0]]}, {len(wrong)} differ" if wrong else None


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def describe(status, errors):
    """The kind of a failure to compile or run, without names and places that change when the program does."""
    if status < 0:
        kind = f"killed by {signal.Signals(-status).name}"
        found = re.search(r"(\S+\.c:\d+|\w+: Assertion.*)", errors)
        return f"{kind} {Path(found[1]).name if found else ''}".strip(), errors[-1500:]
    found = re.search(r"error ([A-Z]\d+): (.*)", errors)
    if found:
        return f"error {found[1]}: {re.sub(r'[0-9]+', 'N', found[2])}", errors[-1500:]
    lines = [line for line in errors.splitlines() if line.strip()]
    first = re.sub(r"[0-9]+", "N", lines[0])[:120] if lines else ""
    return f"status {status}: {first}", errors[-1500:]
