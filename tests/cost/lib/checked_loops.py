#!/usr/bin/env python3
"""checked_loops.py SLOPE FILE[:NAME]... [-v]: inner loops that test an index in every round, with NAME defined; `lanes` for NAME: where several rounds are done at once.

Reads the IR behind the last pass. Inner loops are those without loops and calls in them. One that has tests is fine where it is the other form of one that has
none: in the `else` of an `if` whose first branch has such a loop, or in a loop for the rounds that a wide one leaves. For each file, the number of inner loops without tests and the functions
that have some with tests and no other form; -v shows these tests. With lanes, only functions with a wide loop are looked at. `kernels` for NAME: only kernels, and those that test in front of
an inner loop, but behind the beginning of another around it, are told as well."""

import re
import subprocess
import sys
from pathlib import Path

CHECKED = re.compile(r"= (buffer_elem|buffer_bytes|elem)( writes)? %")
CONSTANT = re.compile(r"= elem %\S+, -?\d+$")


class Region:
    def __init__(self, kind, outer, before=None):
        self.kind, self.outer, self.before = kind, outer, before
        self.tests, self.inner, self.calls = [], [], False
        if outer:
            outer.inner.append(self)

    def all_tests(self):
        return self.tests + [test for region in self.inner for test in region.all_tests()]

    def has_calls(self):
        return self.calls or any(region.has_calls() for region in self.inner)

    def loops(self):
        """The inner ones."""
        found = [loop for region in self.inner for loop in region.loops()]
        return found or ([self] if self.kind in ("do", "few") and not self.has_calls() else [])

    def asks_in_loop(self):
        """Is there a choice between two forms in a loop that has no other form itself?"""
        here = self.kind == "likely" and any(region.kind == "do" for region in self.around())
        return here and not self.has_other_form() or any(region.asks_in_loop() for region in self.inner)

    def around(self):
        return [self.outer, *self.outer.around()] if self.outer else []

    def has_other_form(self):
        here = self.kind == "few" or self.kind == "else" and any(not loop.all_tests() for loop in self.before.loops())
        return here or (self.outer is not None and self.outer.has_other_form())


def kind_of(line):
    return line.split()[1]


def begins(line):
    if "if likely" in line:
        return "likely"
    return next((kind for kind in ("few", "wide") if re.search(rf"\bloop\b[a-z ]* {kind} \(", line)), "")


def functions(lines):
    """Name and body of each, and whether it is a kernel."""
    at = None
    for line in (text.strip() for text in lines):
        if at is None:
            if line.startswith("func ") and line.endswith("{"):
                at = Region("func", None)
                yield line.split("(")[0].removeprefix("func @"), at, " threads(" in line
        elif line.startswith("}"):
            at = at.outer if not line.endswith("{") else Region("few" if at.kind == "few" else kind_of(line), at.outer, at)
        elif line.endswith("{"):
            at = Region(begins(line), at)
        else:
            at.calls |= re.search(r"(^|= )call @", line) is not None
            if CHECKED.search(line) and not CONSTANT.search(line):
                at.tests.append(line)


def look_at(slope, path):
    path, *defined = path.split(":")
    lanes = ["--lanes", "auto"] if "lanes" in defined else []
    names = [f"-D{name}" for name in defined if name not in ("lanes", "kernels")]
    dump = subprocess.run([slope, "dump", path, *names, *lanes, "--after", "range"], capture_output=True, text=True, check=True).stdout
    free, wrong, late = 0, {}, []
    for name, body, is_kernel in list(functions(dump.splitlines())):
        if "kernels" in defined and not is_kernel or lanes and not any(region.kind == "wide" for region in body.inner):
            continue
        loops = body.loops()
        free += sum(not loop.all_tests() for loop in loops)
        bad = [loop for loop in loops if loop.all_tests() and not loop.has_other_form()]
        if bad:
            wrong[name] = bad
        if body.asks_in_loop():
            late.append(name)
    print(f"{' '.join([Path(path).stem, *defined])}: {'some' if free else 'none'} without tests; with:", " ".join(wrong) or "none")
    if "kernels" in defined:
        print("tests in outer loops:", " ".join(late) or "none")
    for name in wrong if "-v" in sys.argv else []:
        print(*(test for loop in wrong[name] for test in loop.all_tests()), sep="\n")


def main():
    slope, *paths = [word for word in sys.argv[1:] if word != "-v"]
    for path in paths:
        look_at(slope, path)


main()
