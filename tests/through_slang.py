#!/usr/bin/env python3
"""The same programs through Slang: what `slope run` prints in tests/diff, the program that `-target slang` makes of it prints
too, compiled again. Half of them are printed as they were lowered (-O0), half after the passes. What cannot be said in Slang
is refused with the line; how many are, and why, is told.

    tests/through_slang.py [--build DIR] [-j N] [--of N] [-v] [NAME...]     one test of N; only those whose name contains a NAME
"""
import collections
import concurrent.futures
import os
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run
import through_c

FOLDERS = ("diff",)
REFUSED = re.compile(r"^[^\n]*:\d+:\d+: error E6005: no code could be made: (.*)$", re.MULTILINE)
MOST_REFUSED = 0.08  # of all


def check(suite, test, level, temporary):
    """(what went wrong or None, why it was refused or None)"""
    folder, code = test.source.path.parent, f"{temporary}/t.slang"
    arguments = through_c.arguments(test)
    made = run.execute(suite, [str(suite.slope), "build", test.source.path.name, "-target", "slang", "-o", code,
                               "--tape", "16384", "-O", level, *arguments], folder)
    refused = REFUSED.search(made.err)
    if made.status == 1 and refused:
        return None, refused.group(1)
    if made.status or made.trouble:
        return f"slope build: {made.trouble or made.err}", None
    of_types = {i + part for i, word in enumerate(arguments) if word == "-conformance" for part in (0, 1)}
    rest = [word for i, word in enumerate(arguments) if i not in of_types]  # the code has the ids in it
    result = run.execute(suite, [str(suite.slope), "run", code, *rest], folder)
    if result.status or result.trouble:
        return f"exit status {result.status} {result.trouble or ''}\n{result.err[:3000]}", None
    expected = through_c.expected_of(test)
    if result.out.splitlines() != expected:
        return run.show_difference("\n".join(expected), result.out), None
    return None, None


def run_all(build, filters=(), jobs=None, share=1):
    """(number passed, failures, {reason: names of what was refused})"""
    suite, reasons, failures = run.Suite(build), collections.defaultdict(list), []
    tests = through_c.choose(suite, filters, share, FOLDERS)

    def one(numbered):
        number, test = numbered
        with tempfile.TemporaryDirectory(prefix="slope-slang-") as temporary:
            return check(suite, test, "03"[number // 2 % 2], temporary)

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        results = list(pool.map(one, enumerate(tests)))
    for test, (problem, refusal) in zip(tests, results):
        if problem:
            failures.append((f"{test.name} through Slang", problem))
        if refusal:
            reasons[refusal].append(test.name)
    refused = sum(map(len, reasons.values()))
    if not filters and refused > MOST_REFUSED * len(tests):
        failures.append(("through Slang", f"{refused} of {len(tests)} programs were refused"))
    return len(tests) - len(failures) - refused, failures, reasons


def main():
    parser = run.programs_parser()
    parser.add_argument("-v", action="store_true", dest="verbose", help="name the programs that were refused")
    options = parser.parse_args()
    passed, failures, reasons = run_all(options.build, options.names, options.jobs, options.of)
    run.report(failures)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"refused {len(names)}: {reason}" + (f"\n    {' '.join(names)}" if options.verbose else ""))
    print(f"{passed} passed, {sum(map(len, reasons.values()))} refused, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
