#!/usr/bin/env python3
"""Measures how accurate the library is, and makes docs/accuracy.md of it.

    scripts/accuracy.py [--build DIR] [--effort N] [NAME...]   measures; with names, only prints, and does not write the page
    scripts/accuracy.py --check                                says what is wrong: functions that the page lacks, and
                                                               errors beyond what it says, by a small measurement

tests/accuracy/accuracy.c does the work, function by function; this puts it together.
"""
import argparse
import concurrent.futures
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
SOURCES = ["accuracy/accuracy.c", "library/values.c", "library/elementwise.c", "library/shaped.c"]
KINDS = ["half", "float", "double", "float -O3", "double -O3"]
FULL, SMALL = 96, 1
SLACK = 0.6  # another C library rounds other arguments the wrong way
INTRODUCTION = """# Accuracy

## Floating-point models

`--fp` (`SlopeConfig.floats`) says how freely arithmetic may be rearranged, in functions and their derivatives alike, from
`-O1` on; `-O0` is always strict.

| model | |
|---|---|
| `strict` | every operation is rounded as it is written |
| `contract` | the default, as in C: a product that goes into a sum may be rounded together with it, once, where the processor can (`a * b + c` as `fma`); and `pow` with a constant exponent of 2, 3 .. 8 is made of products |
| `fast` | also: sums and products in any order, quotients as products with reciprocals, no difference between 0 and -0 |

- `contract` makes results more accurate rather than less, but not always identical: `a * a - b * b` need not be exactly 0
  for equal `a` and `b`, so `sqrt` of it may see a tiny negative number. Write `(a - b) * (a + b)`, or declare the result
  `precise`: a function with a precise variable, parameter or result is strict as a whole, and so are its derivatives and
  the functions it is inlined into.
- Made of products, `pow(x, n)` errs by less than n units in the last place, and `pow(x, 2)` is as good as by the
  library.
- NaN and infinities keep their meaning in all three models, and one build gives the same result each time.
- The sums that differentiation itself makes, in forward as in reverse mode, of everything that contributes to a
  derivative, have no written order: in every model they are taken in whatever order is fastest.
- Nor has anybody written the quotients that differentiation makes: but for `strict`, several by one number are products
  with its reciprocal.

## The library

Made by `make accuracy`. Each number is the greatest error that was found, in units in the last place: the distance
between neighbouring numbers of the type near the result. 0.50 is the best that rounding allows; 0 is exact. The
reference is long double, which has at least 11 bits more than double. The last column is where the worst error in float
is.

- Functions of one number are measured for all halves; for {floats:.1f} million floats, evenly spread over all 2^32, and all
  of those near points where the function switches to another formula; and for {doubles:.1f} million doubles. Functions of several
  numbers are measured for {doubles:.1f} million random arguments, those of vectors and matrices for {shaped:.2f} million.
- Results that are not finite must be exactly right.
- Where terms are added up (`mad lerp dot length mul` ...), the unit is that of the greatest of them, or of the sum of
  their magnitudes, since they may cancel; likewise for `inverse`, times the condition of the matrix.
- half is computed in float and rounded. float and double come from the C library, here {library} on {machine}.

With `-O3`, which is the default, functions in loops may be computed for several numbers at once, which is less accurate.
`-O2` never does this.

- On x86-64 with the GNU C library, loops are vectorised with its functions for vectors; the columns *float -O3* and
  *double -O3* show their errors where they differ.
- Machine code computes `tanh` in place on arm64, and in double on x86-64, unless arithmetic is strict: it errs by at
  most 2.5, found with 20 million floats.
- With AVX-512, machine code computes `exp` in place where several numbers are done at once, of floats in loops with
  lanes alone, unless arithmetic is strict: it errs by at most 1.04 in double and 0.99 in float, found with 32 million
  doubles and an eighth of all floats.
- Kernels that do several items at once (`--lanes`) call functions for all lanes: on arm64 those of a newer C library, or
  of SLEEF where it is installed (`libsleef3` of Debian), in code that runs at once; built files call the scalar ones.
  Found on arm64 with SLEEF 3.5.1, for 65,536 numbers each: `sin` 2.2, `cos` 2.3, `tan` 3.0, `asin` 2.3, `acos` 1.2, `atan` 2.0,
  `sinh` 3.0, `cosh` 1.3, `tanh` 2.4, `exp` 0.9, `exp2` 0.8, `log` 1.1, `log2` 1.0, `erf` 0.8, `erfc` 1.0, `cbrt` 1.3,
  `expm1` 1.0, `log1p` 0.6, others 0.5; `pow`, `lgamma` and `hypot` stay scalar, since those for vectors are slower.
- C (`-target c`) brings functions along for loops that become vectors ([ahead-of-time.md](ahead-of-time.md#differences)
  says where): `sin` and `cos` in float err by at most 1.6, found with all floats; in double by at most 0.84, found with
  2 million numbers up to 2^30; `exp` by 1 and `tanh` by 2.5.

| function | half | float | double | float -O3 | double -O3 | worst float at |
|---|---|---|---|---|---|---|
"""


def compile_program(build, folder):
    program = Path(folder) / "accuracy"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", f"-I{ROOT / 'include'}", "-o", str(program),
                    *[str(ROOT / "tests" / source) for source in SOURCES], f"-L{build}", "-lslope", "-lm", f"-Wl,-rpath,{build}"],
                   check=True)
    return program


class Row:
    """A function: its worst error in each type, how many results are wrong, where it is worst."""

    def __init__(self, name):
        self.name, self.errors, self.wrong, self.place = name, {}, [], ""

    def add(self, kind, line):
        numbers, _, results = line.partition(" : ")
        error, wrong, *place = numbers.split()
        if int(wrong):
            self.wrong.append(f"{kind} {self.name} at {' '.join(place)}: found, expected {results.strip()} ({wrong} times)")
        if float(error) > self.errors.get(kind, -1):
            self.errors[kind] = float(error)
            if kind == "float":
                self.place = ", ".join(f"{float(number):.7g}" for number in place) if len(place) <= 3 else ""

    def is_news(self, kind):
        error, plain = self.errors.get(kind), self.errors.get(kind.split()[0])
        return error is not None and (kind not in KINDS[3:] or error > plain + 0.005)

    def text(self):
        shown = [show_error(self.errors[kind]) if self.is_news(kind) else "" for kind in KINDS]
        return f"| `{self.name}` | {' | '.join(shown)} | {self.place if self.errors.get('float') else ''} |".replace("  |", " |")


def show_error(error):
    return "0" if error == 0 else f"{error:.2f}"


def measure(program, effort, names=(), jobs=None, vectorised=None):
    """Rows by name, in the order of the cases; with -O3 as well: the `vectorised` ones, or all."""
    lines = subprocess.run([str(program), "list"], capture_output=True, text=True, check=True).stdout.splitlines()
    cases = []
    for number, componentwise, kind, name in (line.split(" ", 3) for line in lines):
        if names and name not in names:
            continue
        cases.append((number, "2", effort, kind, name))
        if componentwise == "1" and kind != "half" and (vectorised is None or name in vectorised):
            cases.append((number, "3", (effort + 3) // 4, f"{kind} -O3", name))

    def run(case):
        number, level, samples, kind, name = case
        result = subprocess.run([str(program), "measure", number, str(samples), level], capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"{kind} {name}: {result.stderr[-2000:]}")
        return result.stdout
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for (_, _, _, kind, name), line in zip(cases, pool.map(run, cases)):
            rows.setdefault(name, Row(name)).add(kind, line)
    return rows


def c_library():
    name, version = platform.libc_ver()
    return f"{name} {version}".strip() or "that of the system"


def introduction(effort, library, machine):
    base = effort * 4096 / 1e6
    return INTRODUCTION.format(floats=16 * base, doubles=base, shaped=base / 8, library=library, machine=machine)


def make_page(rows, effort):
    return introduction(effort, c_library(), platform.machine()) + "".join(row.text() + "\n" for row in rows.values())


def read_page():
    """What the page says: for each function a list of errors."""
    text = PAGE.read_text() if PAGE.exists() else ""
    text = text[max(text.find("| function |"), 0):]  # there are other tables before it
    found = {}
    for line in re.findall(r"^\| `(.*?)` \| (.*) \|$", text, re.MULTILINE):
        numbers = [cell.strip() for cell in line[1].split("|")[:len(KINDS)]]
        found[line[0]] = {kind: float(number) for kind, number in zip(KINDS, numbers) if number}
    return found


def check(build):
    """What is wrong, one line each."""
    said, problems = read_page(), []
    with tempfile.TemporaryDirectory(prefix="slope-accuracy-") as folder:
        vectorised = [name for name, errors in said.items() if set(KINDS[3:]) & set(errors)]
        rows = measure(compile_program(Path(build).resolve(), folder), SMALL, vectorised=vectorised)
    if set(said) != set(rows):
        problems.append(f"docs/accuracy.md is not current: run make accuracy ({', '.join(sorted(set(said) ^ set(rows)))})")
    where = re.search(r"here (.*) on (.*)\.$", PAGE.read_text(), re.MULTILINE)
    if not where or not PAGE.read_text().startswith(introduction(FULL, *where.groups())):
        problems.append("docs/accuracy.md does not begin as scripts/accuracy.py says")
    for row in rows.values():
        problems += row.wrong
        for kind, error in row.errors.items():
            found = said.get(row.name, {})
            limit = found.get(kind, found.get(kind.split()[0], 0))
            if error > limit + (SLACK if limit > 0.51 else 0.01):
                problems.append(f"{kind} {row.name}: {error:.2f} units in the last place, docs/accuracy.md says {limit:.2f}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(ROOT / "build"), help="the build to measure")
    parser.add_argument("--effort", type=int, default=FULL, help="how many samples: 1 is 4096, 16 times that of floats")
    parser.add_argument("--check", action="store_true", help="compare a small measurement with the page")
    parser.add_argument("-j", "--jobs", type=int, help="functions at a time")
    parser.add_argument("names", nargs="*", help="only these functions")
    options = parser.parse_args()
    if options.check:
        problems = check(options.build)
    else:
        with tempfile.TemporaryDirectory(prefix="slope-accuracy-") as folder:
            rows = measure(compile_program(Path(options.build).resolve(), folder), options.effort, options.names, options.jobs)
        problems = [problem for row in rows.values() for problem in row.wrong]
        page = make_page(rows, options.effort)
        if not options.names and not problems:
            PAGE.write_text(page)
        print("".join(row.text() + "\n" for row in rows.values()), end="")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
