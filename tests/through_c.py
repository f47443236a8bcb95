#!/usr/bin/env python3
"""The same programs through C: what `slope run` prints in tests/run, tests/diff and tests/library, the program that
`-target c` makes prints too, and so does the interpreter. gcc, clang and a C++ compiler take turns; a warning is a failure.

    tests/through_c.py [--build DIR] [-j N] [--of N] [NAME...]     one test of N; only those whose name contains a NAME
"""
import argparse
import concurrent.futures
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COMPILERS = [["gcc", "-O1", "-std=c17", *WARNINGS], ["clang", "-O1", "-std=c17", *WARNINGS],
             ["g++", "-O1", "-std=c++17", "-ffp-contract=off", "-Wall", "-x", "c++"]]
FOLDERS = ("run", "diff", "library")
DATA = ("bind", "set", "print", "save", "dispatch", "entry", "threads", "stack")  # options of a run that C's main has not
LACKING = "this target has no "


def arguments(test):
    """What the compiler is given besides the file; None: the program cannot be run by itself."""
    if isinstance(test.command, str) or test.command[1] != "run" or test.status:
        return None
    given = test.command[3:]
    return None if any(word.lstrip("-").split("=")[0] in DATA for word in given if word.startswith("-")) else given


def choose(suite, filters, share, folders=FOLDERS):
    tests, _ = run.discover(suite)
    chosen = [test for test in tests if test.name.split("/")[0] in folders and arguments(test) is not None]
    return [test for test in chosen[::share] if run.wanted(test.name, filters)]


def expected_of(test):
    return test.expected if test.expected is not None else test.golden.read_text().splitlines()


def check(suite, test, compiler, temporary):
    """None, or what went wrong."""
    folder, code, program = test.source.path.parent, f"{temporary}/t.c", f"{temporary}/t"
    made = run.execute(suite, [str(suite.slope), "build", test.source.path.name, "-target", "c", "-o", code,
                               *arguments(test)], folder)
    if made.status and LACKING in made.err:
        return None
    if made.status or made.trouble:
        return f"slope build: {made.trouble or made.err}"
    if "int main(void)" not in Path(code).read_text():
        return None  # its entry point is a kernel of another name, which a host calls
    compiled = run.execute(suite, [*compiler, code, "-x", "none", "-o", program, "-lm"], folder)
    if compiled.status or compiled.trouble:
        return f"{' '.join(compiler)}: {compiled.trouble or compiled.err[:3000]}"
    result = run.execute(suite, [program], folder)
    if result.status or result.trouble:
        return f"exit status {result.status} {result.trouble or ''}\n{result.err}"
    if result.out.splitlines() != expected_of(test):
        return run.show_difference("\n".join(expected_of(test)), result.out)
    interpreted = run.execute(suite, [*test.command[:2], "--interpret", *test.command[2:]], folder)
    if interpreted.out != result.out:
        return "interpreted:\n" + run.show_difference(result.out, interpreted.out)
    return None


def run_all(build, filters=(), jobs=None, share=1):
    """(number passed, failures)"""
    suite = run.Suite(build)
    compilers = [compiler for compiler in COMPILERS if shutil.which(compiler[0])]

    def one(numbered):
        number, test = numbered
        with tempfile.TemporaryDirectory(prefix="slope-c-") as temporary:
            problem = check(suite, test, compilers[number % len(compilers)], temporary)
        return (f"{test.name} through C", problem) if problem else None

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        results = list(pool.map(one, enumerate(choose(suite, filters, share))))
    failures = [result for result in results if result]
    return len(results) - len(failures), failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(run.HERE.parent / "build"))
    parser.add_argument("-j", type=int, dest="jobs")
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed, failures = run_all(options.build, options.names, options.jobs, options.of)
    run.report(failures)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
