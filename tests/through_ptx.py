#!/usr/bin/env python3
"""The same programs as PTX by LLVM, without a GPU: all that `slope run --device cuda --device-code llvm` compiles and loads for the programs of tests/run, tests/diff and
tests/library, with a driver of NVIDIA that only pretends (tests/fake/cuda.c). Nothing is computed; the code is given to NVIDIA's assembler, if that is asked for.

    tests/through_ptx.py [--build DIR] [-j N] [--of N] [-O LEVEL] [--assemble] [NAME...]

--of N takes one test of N. --assemble has ptxas translate all of it, too. Where libdevice is missing, programs that need it are left out.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run
import served
import through_device

SECONDS = 60
LACKING = (*through_device.LACKING, "is a function of NVIDIA's libdevice", "was built without NVPTX")


def pretending(build, images=None):
    """The environment in which the driver is one that pretends."""
    environment = {"LD_LIBRARY_PATH": str(Path(build).resolve() / "tests" / "fake")}
    if images:
        environment["FAKE_IMAGES"] = str(images)
    return environment


def check(server, test, level):
    """None, or what went wrong; "lacking" if the target cannot do it."""
    words = ["run", "--device", "cuda", "--device-code", "llvm", test.source.path.name, *through_device.arguments(test), f"-O{level}"]
    try:
        result = server.run(words, test.source.path.parent, SECONDS)
    except subprocess.TimeoutExpired:
        return f"took more than {SECONDS} s"
    messages = result.stderr.decode(errors="replace")
    if result.returncode and any(word in messages for word in LACKING):
        return "lacking"
    return f"exit status {result.returncode}\n{messages[-1500:]}" if result.returncode else None


def assemble(path):
    """None, or (name, what went wrong)."""
    made = subprocess.run(["ptxas", "-arch=sm_90", "-O0", "-o", "/dev/null", str(path)], capture_output=True, text=True)
    return (path.name, made.stdout[-1500:] + made.stderr[-1500:]) if made.returncode else None


def run_all(build, filters=(), jobs=None, share=1, level=3, images=None):
    """(passed, failures, lacking)"""
    suite, server = run.Suite(build), served.Served(build, pretending(build, images))
    tests = through_device.choose(suite, filters, share)
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        problems = list(pool.map(lambda test: check(server, test, level), tests))
    server.close()
    failures = [(f"{test.name} to PTX", problem) for test, problem in zip(tests, problems) if problem and problem != "lacking"]
    lacking = problems.count("lacking")
    return len(tests) - len(failures) - lacking, failures, lacking


def main():
    parser = run.programs_parser()
    parser.add_argument("-O", type=int, default=3, dest="level")
    parser.add_argument("--assemble", action="store_true")
    options = parser.parse_args()
    started, images = time.time(), Path(tempfile.mkdtemp(prefix="slope-ptx-"))
    passed, failures, lacking = run_all(options.build, options.names, options.jobs, options.of, options.level, images if options.assemble else None)
    with concurrent.futures.ThreadPoolExecutor(options.jobs or os.cpu_count()) as pool:
        failures += filter(None, pool.map(assemble, sorted(images.iterdir())))
    if not failures:
        shutil.rmtree(images)
    run.report(failures)
    print(f"{passed} passed, {len(failures)} failed, {lacking} that the target lacks something for; {time.time() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
