#!/usr/bin/env python3
"""-g at every level: gdb stops at a line of a function of which only the derivative runs, and shows it. Usage: debugger_test.py BUILD"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """[Differentiable] float f(float x, int n) {
    float y = x;
    for (int i = 0; i < n; i++)
        y = y * x + sin(y);
    return y;
}
void main() {
    DifferentialPair<float> p = diffPair(0.5f + zero);
    bwd_diff(f)(p, 39 + zero, 1.0);
    printf("%.3f\\n", p.d);
}
uniform int zero; // nobody sets it; what is constant would be computed by the compiler
"""
LINE, SOURCE, RESULT = 4, "y = y * x + sin(y);", "2.314"


def gdb(program, *commands):
    words = ["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    return subprocess.run([*words, str(program)], capture_output=True, text=True, timeout=60).stdout


def works():
    """Whether gdb is here and may run programs, which containers can forbid."""
    try:
        return "exited normally" in gdb("/bin/true", "run")
    except FileNotFoundError:
        return False


def stops(build, folder, level):
    """None, or what went wrong."""
    source, program = folder / "program.slang", folder / f"program{level}"
    source.write_text(PROGRAM)
    made = subprocess.run([str(build / "slope"), "build", str(source), "-target", "exe", "-g", f"-O{level}", "-o", str(program)],
                          capture_output=True, text=True)
    if made.returncode:
        return made.stderr
    printed = subprocess.run([str(program)], capture_output=True, text=True).stdout.strip()
    if printed != RESULT:
        return f"the program printed {printed!r}, not {RESULT}"
    shown = gdb(program, f"break program.slang:{LINE}", "run", "delete", "continue")
    lines = [line.split(None, 1) for line in shown.splitlines()]
    stopped = re.search(r"^Breakpoint 1(\.1)?, ", shown, re.MULTILINE) and any(len(line) == 2 and line == [str(LINE), SOURCE] for line in lines)
    return None if stopped and RESULT in shown else shown


def run_all(build):
    with tempfile.TemporaryDirectory() as folder:
        found = [(f"gdb at -O{level}", stops(Path(build), Path(folder), level)) for level in range(4)]
    failures = [(name, problem) for name, problem in found if problem]
    return len(found) - len(failures), failures


if __name__ == "__main__":
    passed, failed = run_all(sys.argv[1])
    for name, problem in failed:
        print(name, problem, sep="\n")
    print(f"{passed} passed, {len(failed)} failed" if works() else "gdb cannot run programs here")
