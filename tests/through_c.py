#!/usr/bin/env python3
"""The same programs through C: what `slope run` prints in tests/run, tests/diff and tests/library, the program that
`-target c` makes prints too, and so does the interpreter. gcc, clang and a C++ compiler take turns; a warning is a failure.
What `slope run` is given is set by a few lines of C before main (c_data.py); kernels are called by a main of ours.

    tests/through_c.py [--build DIR] [-j N] [--of N] [-v] [NAME...]     one test of N; only those whose name contains a NAME; -v: says what is left out
    tests/through_c.py --sanitize ...      compiled by gcc with its address and undefined-behaviour sanitizers
    tests/through_c.py --objects ...       as objects, libraries and LLVM IR, which C calls as their header says
    tests/through_c.py --warnings ...      not run, but compiled by each compiler, in each way that options of `slope build` change the text
"""
import concurrent.futures
import os
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import c_data
import run

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COMPILERS = [["gcc", "-O1", "-std=c17", *WARNINGS], ["clang", "-O1", "-std=c17", *WARNINGS],
             ["g++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"],
             ["clang++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"]]
SANITIZED = [["gcc", "-O1", "-std=c17", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]]
CLANG = "clang{}-19" if shutil.which("clang-19") else "clang{}"
# gcc follows values, and warns of what it finds, only where it optimises.
WATCHING = [["gcc", "-O2", "-std=c17", "-xc"], ["g++", "-O2", "-std=c++17", "-xc++"],
            [CLANG.format(""), "-fsyntax-only", "-std=c17", "-xc"], [CLANG.format("++"), "-fsyntax-only", "-std=c++17", "-xc++"]]
WAYS = [[], ["--openmp", "--lines", "--header", "{}/t.h"], ["-O0", "--fp", "strict", "--comments"],
        ["--fp", "fast", "--unchecked", "--threads", "1"]]
OBJECTS = [["gcc", "obj"], ["clang", "shared", "--threads", "1"], ["gcc", "obj", "--lanes", "8"], ["clang-19", "llvm-ir"],
           ["g++", "shared", "--lanes", "auto", "-O1"], ["clang", "obj", "-O0", "--threads", "1", "--lanes", "16"]]
LEFT_OUT = "left out"
FOLDERS = ("run", "diff", "library")
SET, PRINTED, DISPATCH, ENTRY, BLOCK, STACK = ("bind", "set"), ("print",), ("dispatch",), ("entry",), ("block",), ("stack",)
DATA = (*SET, *PRINTED, *DISPATCH, *ENTRY, *BLOCK, *STACK, "save", "show", "threads", "wave")  # that C's main has not
LACKING = re.compile(r"this target (has no|does not)")


def is_here(compiler):
    return shutil.which(compiler[0]) is not None


def is_run(test):
    return not isinstance(test.command, str) and test.command[1] == "run" and not test.status


def after_file(test):
    """What follows the name of the file, but for the way in which it is run."""
    return [word for word in test.command[3:] if word != "--interpret"]


def arguments(test):
    """What the compiler is given besides the file; None: the program cannot be run by itself."""
    if not is_run(test):
        return None
    given = after_file(test)
    return None if any(word.lstrip("-").split("=")[0] in DATA for word in given if word.startswith("-")) else given


class Given(NamedTuple):
    """What a test gives to `slope run`, as far as C can be given it."""
    others: list  # for `slope build`
    values: list  # (name, data) of what is set
    printed: list  # in the end
    groups: str  # "x, y, z"; None: not said
    entries: list
    macros: list  # lines before the program


def split_data(test):
    """None: there is more to it."""
    if not is_run(test):
        return None
    words, given = after_file(test), Given([], [], [], [], [], [])
    while words:
        word = words.pop(0)
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in DATA:
            given.others.append(word)
            continue
        value = value or (words.pop(0) if words else "")
        if name in SET and c_data.is_data(value.partition("=")[2]):
            given.values.append(tuple(value.split("=")))
        elif name in PRINTED and re.fullmatch(r"[\w.]+", value):
            given.printed.append(value)
        elif name in DISPATCH:
            given.groups[:] = (value.split(",") + ["1", "1"])[:3]
        elif name in ENTRY:
            given.entries.append(value)
            given.others.extend(["-entry", value])
        elif name in STACK:
            continue
        elif name in BLOCK:
            given.others.extend(["--block", value])
        elif name == "wave":
            given.macros.append(f"#define SLOPE_WAVE {value}\n")
        else:
            return None
    return given


def choose(suite, filters, share, folders=FOLDERS, suits=arguments):
    tests, _ = run.discover(suite)
    chosen = [test for test in tests if test.name.split("/")[0] in folders and suits(test) is not None]
    return [test for test in chosen[::share] if run.wanted(test.name, filters)]


# ---- kernels

KERNEL = re.compile(r"^void (\w+)\(uint32_t groups_x, uint32_t groups_y, uint32_t groups_z(.*)\);", re.M)
PARAMETER = re.compile(r"(?:const )?(\w+) (?:(\*)SLOPE_RESTRICT )?(\w+)")


def main_of(code, given):
    """C's main, which calls the entry points, and variables for what they take; None: there is none."""
    kernels = dict(KERNEL.findall(code))
    wanted = [re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_") for name in given.entries] or list(kernels)
    wanted = [name if name in kernels else f"slope_{name}" for name in wanted]
    if not given.entries and len(wanted) != 1 or not set(wanted) <= set(kernels):
        return None
    variables, calls = {}, []
    for name in wanted:
        taken = [PARAMETER.fullmatch(part) for part in kernels[name].split(", ")[1:]]
        if not all(taken):
            return None
        variables.update((parameter[3], f"static {parameter[1]} {parameter[3]};\n") for parameter in taken)
        arguments = [*(given.groups or "111"), *("&" * bool(parameter[2]) + parameter[3] for parameter in taken)]
        calls.append(f"    {name}({', '.join(arguments)});\n")
    return "\n" + "".join(variables.values()) + "int main(void) {\n" + "".join(calls) + "    return 0;\n}\n"


def same_line(found, expected):
    """The text, or the number of type float."""
    try:
        return found == expected or struct.pack("f", float(found)) == struct.pack("f", float(expected))
    except (ValueError, OverflowError):
        return False


def same_output(found, expected):
    return len(found) == len(expected) and all(map(same_line, found, expected))


def expected_of(test):
    return test.expected if test.expected is not None else test.golden.read_text().splitlines()


def make(suite, test, given, code):
    """The text of a program; None: it cannot be run by itself; or, what went wrong."""
    words = [str(suite.slope), "build", test.source.path.name, "-target", "c", "-o", code, *given.others]
    made = run.execute(suite, words, test.source.path.parent)
    if made.status and LACKING.search(made.err):
        return None, None
    if made.status or made.trouble:
        return None, f"slope build: {made.trouble or made.err}"
    text = Path(code).read_text()
    if "int main(void)" in text and not given.groups and not given.entries:
        return text, None
    run.execute(suite, [*words, "--header", code + ".h"], test.source.path.parent)
    text = Path(code).read_text()
    start = main_of(text, given) if "int main(void)" not in text else ""
    return (text + start if start is not None else None), None


def check(suite, test, compiler, temporary):
    """None, LEFT_OUT, or what went wrong."""
    folder, code, program = test.source.path.parent, f"{temporary}/t.c", f"{temporary}/t"
    given = split_data(test)
    text, problem = make(suite, test, given, code) if given else (None, None)
    if problem or not text:
        return problem or LEFT_OUT
    if given.values or given.printed:
        more = c_data.set_up(text, given.values, given.printed, test.source.path)
        if not more:
            return LEFT_OUT
        text += more
        compiler = compiler if "c++" not in compiler else COMPILERS[0]
    Path(code).write_text("".join(given.macros) + text)
    compiled = run.execute(suite, [*compiler, code, "-x", "none", "-o", program, "-lm"], folder)
    if compiled.status or compiled.trouble:
        return f"{' '.join(compiler)}: {compiled.trouble or compiled.err[:3000]}"
    deep = "--stack" in test.command  # of the machine
    result = run.execute(suite, f"ulimit -s $(ulimit -H -s) && exec {program}" if deep else [program], folder)
    if result.status or result.trouble:
        return f"exit status {result.status} {result.trouble or ''}\n{result.err}"
    if not same_output(result.out.splitlines(), expected_of(test)):
        return run.show_difference("\n".join(expected_of(test)), result.out)
    interpreted = run.execute(suite, [*test.command[:2], "--interpret", *test.command[2:]], folder)
    if not same_output(result.out.splitlines(), interpreted.out.splitlines()):
        return "interpreted:\n" + run.show_difference(result.out, interpreted.out)
    return None


# ---- objects and libraries

def build_object(suite, test, given, target, options, temporary):
    """(the file, what is given to it); or None, and what went wrong."""
    made = f"{temporary}/t.{dict(obj='o', shared='so').get(target, 'll')}"
    words = [str(suite.slope), "build", test.source.path.name, "-target", target, *options, "-o", made, "--header", f"{temporary}/t.h", *given.others]
    built = None
    if not given.entries:  # a main that is no entry point becomes one
        built, given = run.execute(suite, [*words, "--entry", "main"], test.source.path.parent), given._replace(entries=["main"])
    if not built or "E7030" in built.err:
        built = run.execute(suite, words, test.source.path.parent)
        given = given._replace(entries=[] if given.entries == ["main"] else given.entries)
    if built.status and LACKING.search(built.err):
        return None, LEFT_OUT
    return (None, f"slope build: {built.trouble or built.err}") if built.status or built.trouble else (made, given)


def check_object(suite, test, way, temporary):
    """None, LEFT_OUT, or what went wrong."""
    (compiler, target, *options), given, folder = way, split_data(test), test.source.path.parent
    if not given:
        return LEFT_OUT
    options += [word for macro in given.macros for word in ("--wave", macro.split()[2])]
    made, given = build_object(suite, test, given, target, options, temporary)
    if not made:
        return given
    header, program = Path(temporary, "t.h").read_text(), Path(temporary, "t.c")
    start = main_of(header, given)
    more = c_data.set_up(header + start, given.values, given.printed, test.source.path) if start and (given.values or given.printed) else ""
    if start is None or more is None:
        return LEFT_OUT
    program.write_text('#include "t.h"\n#include <stdio.h>\n#include <string.h>\n' + start + more)
    compiler = "gcc" if more and "++" in compiler else compiler  # which has no such lists
    runtime = [f"{suite.build}/libslope-rt.a"] * (target != "shared")
    compiled = run.execute(suite, [compiler, "-O1", str(program), made, *runtime, "-o", f"{temporary}/t", "-lm", "-lpthread"], folder)
    if compiled.status or compiled.trouble:
        return f"{compiler}: {compiled.trouble or compiled.err[:3000]}"
    result = run.execute(suite, [f"{temporary}/t"], folder)
    if result.status or result.trouble:
        return f"{target} {' '.join(options)}: exit status {result.status} {result.trouble or ''}\n{result.err}"
    same = same_output(result.out.splitlines(), expected_of(test))
    return None if same else f"{target} {' '.join(options)}\n" + run.show_difference("\n".join(expected_of(test)), result.out)


# ---- what compilers say

def compiled_in(suite, test, way, temporary):
    """None, LEFT_OUT, or what the first compiler says about a program that is made in this way, or about its header."""
    folder, code, header = test.source.path.parent, f"{temporary}/t.c", Path(temporary, "twice.h")
    way, given = [word.format(temporary) for word in way], split_data(test)
    made = run.execute(suite, [str(suite.slope), "build", test.source.path.name, "-w", "-target", "c", "-o", code,
                               *(given.others if given else []), *way], folder)
    if made.status and LACKING.search(made.err):
        return LEFT_OUT
    if made.status or made.trouble:
        return f"slope build {' '.join(way)}: {made.trouble or made.err}"
    header.write_text('#include "t.h"\n#include "t.h"\n' if "--header" in way else "")
    for compiler in filter(is_here, WATCHING):
        for file, more in ((code, []), (header, ["-fsyntax-only"])):
            words = [*compiler, *more, *WARNINGS, "-fopenmp", "-c", str(file), "-o", f"{temporary}/t.o"]
            compiled = run.execute(suite, words, folder)
            if compiled.status or compiled.trouble:
                return f"slope build {' '.join(way)}, {' '.join(words)}: {compiled.trouble or compiled.err[:3000]}"
    return None


def watch(suite, test, _, temporary):
    problems = [compiled_in(suite, test, way, temporary) for way in WAYS]
    return "\n".join(problem for problem in problems if problem and problem != LEFT_OUT) or (LEFT_OUT if LEFT_OUT in problems else None)


def run_all(build, filters=(), jobs=None, share=1, check=check, compilers=COMPILERS, left_out=None):
    """(number passed, failures); what was left out is not counted, but added to the list."""
    suite = run.Suite(build)
    compilers = list(filter(is_here, compilers))

    def one(numbered):
        number, test = numbered
        with tempfile.TemporaryDirectory(prefix="slope-c-") as temporary:
            problem = check(suite, test, compilers[number % len(compilers)], temporary)
        return f"{test.name} through C", problem

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        results = list(pool.map(one, enumerate(choose(suite, filters, share, suits=lambda test: is_run(test) or None))))
    left = [name for name, problem in results if problem == LEFT_OUT]
    failures = [(name, problem) for name, problem in results if problem and problem != LEFT_OUT]
    if left_out is not None:
        left_out.extend(left)
    return len(results) - len(left) - len(failures), failures


def main():
    parser, left_out = run.programs_parser(), []
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--objects", action="store_true")
    parser.add_argument("--warnings", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    checks = watch if options.warnings else check_object if options.objects else check
    compilers = SANITIZED if options.sanitize else OBJECTS if options.objects else COMPILERS
    passed, failures = run_all(options.build, options.names, options.jobs, options.of, checks, compilers, left_out)
    run.report(failures)
    for name in left_out if options.verbose else ():
        print(f"left out: {name}")
    print(f"{passed} passed, {len(failures)} failed, {len(left_out)} left out")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
