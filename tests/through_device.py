#!/usr/bin/env python3
"""The same programs on a GPU: what `slope run` prints in tests/run, tests/diff and tests/library, `slope run --device cuda` prints too, with
whatever is bound and set. Numbers may differ as those of tests/through_cuda.py.

    tests/through_device.py [--build DIR] [-j N] [--of N] [--seconds N] [--command WORDS] [--device-code COMPILER] [NAME...]

--of N takes one test of N. --seconds N ends after that time, and says how many were left out. --command is put before the command: 'compute-sanitizer --error-exitcode 9 -q'. Without a GPU nothing is run, and
the script says so. --device-code says what makes the GPU's code: nvrtc or llvm. A program for which the others, at the same time, have left too little of the GPU's memory
runs once more in the end, alone: one with 320 KiB for a thread takes much of it, as a GPU has that for all threads which it could run.
"""
import concurrent.futures
import difflib
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run
import served
import through_c
import through_cuda

SECONDS = 120
SLOW = ("diff/nested/recursion-mutual.slang",)  # which NVIDIA's compiler needs minutes for
NO_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
LACKING = ("this target has no", "this target does not", "a GPU has no use for", "only runs on the CPU tell")
ELSEWHERE = ("--threads", "--strict", "--wave", "--stack", "--interpret")  # options that a GPU has no use for, or that change what is printed


def arguments(test):
    """What the program is run with; None: it is not for this."""
    if isinstance(test.command, str) or test.command[1] != "run" or test.status:
        return None
    given = test.command[3:]
    return None if any(word.split("=")[0] in ELSEWHERE for word in given) else given


def choose(suite, filters, share):
    tests, _ = run.discover(suite)
    chosen = [test for test in tests if test.name.split("/")[0] in through_c.FOLDERS and arguments(test) is not None]
    return [test for test in chosen[::share] if run.wanted(test.name, filters) and test.name not in SLOW]


def execute(server, suite, test, options, seconds):
    """The result, in text. What goes before the command wants a process of its own."""
    before = options.command.split()
    compiler = ["--device-code", options.device_code] if options.device_code else []
    words, folder = [test.source.path.name, *compiler, *arguments(test)], test.source.path.parent
    if before:
        return subprocess.run([*before, str(suite.slope), "run", "--device", "cuda", *words], cwd=folder, capture_output=True, text=True, errors="replace",
                              timeout=seconds, env=suite.environment)
    result = server.run_on_gpu(words, folder, seconds)
    result.stdout, result.stderr = result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    return result


def check(server, suite, test, options, seconds):
    """None, or what went wrong; "lacking" if the target cannot do it."""
    try:
        result = execute(server, suite, test, options, seconds)
    except subprocess.TimeoutExpired:
        return "late" if seconds < SECONDS else f"took more than {SECONDS} s"
    if result.returncode and any(word in result.stderr for word in LACKING):
        return "lacking"
    if result.returncode:
        return f"exit status {result.returncode}\n{result.stdout[-500:]}{result.stderr[-1500:]}"
    expected, printed = through_c.expected_of(test), result.stdout.splitlines()
    if through_cuda.agree(printed, expected):
        return None
    return "\n".join(list(difflib.unified_diff(expected, printed, "expected", "printed", lineterm=""))[:30])


def main():
    parser = run.programs_parser()
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--command", default="")
    parser.add_argument("--device-code")
    options = parser.parse_args()
    if not through_cuda.has_gpu():
        print("no GPU: nothing is run there")
        return 0
    suite, server, started = run.Suite(options.build), served.Served(options.build), time.time()
    tests = choose(suite, options.names, options.of)

    def check_in_time(test):
        left = options.seconds - (time.time() - started) if options.seconds else SECONDS
        return "late" if left <= 0 else check(server, suite, test, options, min(left, SECONDS))

    with concurrent.futures.ThreadPoolExecutor(options.jobs or os.cpu_count()) as pool:
        problems = list(pool.map(check_in_time, tests))
    server.close()  # its processes hold memory of the GPU
    alone = [at for at, problem in enumerate(problems) if problem and NO_MEMORY in problem]
    for at in alone:
        problems[at] = check_in_time(tests[at])
    failures = [(test.name, problem) for test, problem in zip(tests, problems) if problem and problem not in ("lacking", "late")]
    run.report(failures)
    lacking, late = problems.count("lacking"), problems.count("late")
    print(f"{len(tests) - len(failures) - lacking - late} passed, {len(failures)} failed, {lacking} that the target lacks something for; "
          f"{time.time() - started:.0f} s" + (f"; {late} left out" if late else "") + (f"; {len(alone)} of them alone" if alone else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
