#!/usr/bin/env python3
"""What `make test` does: builds with gcc, and with clang and sanitizers, runs everything, adds it all up.

Steps that are not tests (a build, a check) count as one each. The last line is `N passed, N failed`. A build runs beside the steps before it, many
of which leave a processor idle: its time is how long it was waited for.
"""
import collections
import concurrent.futures
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/library", "tests/gradcheck/lib", "tests/fuzz", "scripts")]
import accuracy
import check
import command_pages
import debugger_test
import docs_test
import fuzz
import fuzz_test
import gradcheck_judge
import gradcheck_library
import gradcheck_tests
import install_test
import library
import library_page
import messages_page
import picture
import run
import through_c
import through_cuda
import through_lanes
import through_ptx
import through_slang


RANDOM_FUNCTIONS = 300
SANITIZED_LIBRARY = ["mul(a", "clamp(", "inverse(", "frexp(", "(half", "bwd_diff(s"]  # cases that stand for the others


class Tally:
    def __init__(self):
        self.passed, self.failed, self.started = 0, 0, time.monotonic()

    def step(self, name, passed, failures):
        """One step of the whole: how many passed, and a list of (name, what went wrong). One that tests nothing fails."""
        if not passed and not failures:
            failures = [(name, "nothing was tested")]
        run.report(failures)
        self.passed += passed
        self.failed += len(failures)
        spent = time.monotonic() - self.started
        self.started = time.monotonic()
        print(f"{name}: {passed} passed, {len(failures)} failed ({spent:.0f} s)", flush=True)
        return not failures


def build(name, compiler, *options):
    """None, or what went wrong."""
    folder = ROOT / name
    commands = [["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}", "-DSLOPE_WERROR=ON",
                 *options],
                ["cmake", "--build", str(folder)]]
    for command in commands:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode:
            return "\n".join(result.stdout.splitlines()[-60:])
    return None


def start_build(name, compiler, *options):
    return name, compiler, concurrent.futures.ThreadPoolExecutor(1).submit(build, name, compiler, *options)


def step_build(tally, started):
    name, compiler, result = started
    problem = result.result()
    return tally.step(f"{name} ({compiler})", int(problem is None), [(name, problem)] if problem else [])


def sanitizing_compiler():
    """clang if its sanitizer runtime is installed, else gcc."""
    probe = ["clang", "-fsanitize=address,undefined", "-x", "c", "-", "-o", "/dev/null"]
    return "clang" if subprocess.run(probe, input=b"int main(void) { return 0; }", capture_output=True).returncode == 0 \
        else "gcc"


def step_checks(tally):
    failures = [(f"check {name}", "\n".join(problems)) for name, rule in check.CHECKS.items()
                for problems in [list(rule())] if problems]
    tally.step("source", len(check.CHECKS) - len(failures), failures)


def step_python(tally, path):
    """A file of Python tests."""
    result = subprocess.run([sys.executable, str(ROOT / path)], capture_output=True, text=True)
    found = re.search(r"^Ran (\d+) tests?", result.stderr, re.MULTILINE)
    total = int(found[1]) if found else 0
    names = re.findall(r"^(?:FAIL|ERROR): (\S+)", result.stderr, re.MULTILINE)
    if not names and (result.returncode or not total):
        names = ["(all)"]
    failures = [(f"{path}/{name}", result.stderr[-3000:] if name == names[0] else "") for name in names]
    tally.step(path, total - len(failures) if total else 0, failures)


def python_with(wanted, *needed):
    """An interpreter with the modules, best with the one that is only wanted: this one, or that of the system, which gets them from
    scripts/setup.sh."""
    for modules in ([wanted, *needed], needed):
        look = "import sys, importlib.util; sys.exit(any(not importlib.util.find_spec(name) for name in sys.argv[1:]))"
        for python in (sys.executable, "/usr/bin/python3"):
            if subprocess.run([python, "-c", look, *modules], capture_output=True).returncode == 0:
                return python
    return "/usr/bin/python3"


def start_package(name):
    """The tests of the Python package on the library of this build, which use one core; the next step runs beside them."""
    command = [python_with("torch", "numpy", "pytest"), "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/python"]
    output = tempfile.TemporaryFile("w+")
    environment = dict(os.environ, SLOPE_LIBRARY=str(ROOT / name))
    return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT), output


def step_package(tally, started):
    process, output = started
    process.wait(timeout=600)
    output.seek(0)
    text = output.read()
    found = re.search(r"(\d+) passed", text)
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    if not names and (process.returncode or not found):
        names = ["tests/python"]
    left_out = collections.Counter()
    for count, reason in re.findall(r"^SKIPPED \[(\d+)\] [^:]+:(?:\d+: )?(.+)$", text, re.MULTILINE):
        left_out[reason.strip()] += int(count)
    for reason, count in left_out.items():
        print(f"Python package, left out: {count}: {reason}")
    tally.step("Python package", int(found[1]) if found else 0, [(test, text[-5000:] if test == names[0] else "") for test in names])


def step_threads(tally, name):
    """The unit test of threads, under the thread sanitizer."""
    program = ROOT / name / "tests" / "threads_watched"
    if not program.exists():  # the compiler has no such sanitizer
        return
    result = subprocess.run([str(program)], timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failures = [("threads, watched", result.stdout[-5000:])] if result.returncode else []
    tally.step("threads, watched", int(not failures), failures)


def steps_beside(tally, steps):
    """Steps that use one processor each, as many at a time as there are: (name, function). The time of each is how long it was waited for."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, result in [(name, pool.submit(function)) for name, function in steps]:
            tally.step(name, *result.result()[:2])


def step_suite(tally, name, **fewer):
    suite = run.Suite(ROOT / name)
    if not suite.slope.exists():
        tally.step(f"suite, {name}", 0, [(name, "there is no slope in this build")])
        return
    tally.step(f"suite, {name}", *run.run_suite(suite, **fewer))


def main():
    os.chdir(ROOT)
    os.environ.setdefault("ASAN_OPTIONS", run.ASAN_OPTIONS)
    tally = Tally()
    building = start_build("build-gcc", "gcc", "-DCMAKE_BUILD_TYPE=Release")
    step_checks(tally)
    for name, page in {"docs/library.md": library_page, "docs/messages.md": messages_page, "docs/structure.svg": picture,
                       "share": command_pages}.items():
        problems = page.check()
        tally.step(f"{name}, made from the source", int(not problems), [(name, "\n".join(problems))] if problems else [])
    step_python(tally, "tests/run_test.py")
    step_python(tally, "scripts/check_test.py")
    built, sanitizing = step_build(tally, building), sanitizing_compiler()
    building = [start_build("build-sanitize", sanitizing, "-DCMAKE_BUILD_TYPE=Debug", "-DSLOPE_SANITIZE=ON")]
    if sanitizing != "clang":  # else that build is by clang, with the same warnings
        building.insert(0, start_build("build-clang", "clang", "-DCMAKE_BUILD_TYPE=Release"))
    slope = str(ROOT / "build-gcc" / "slope")
    if built:
        problems = list(check.check_globals(ROOT / "build-gcc"))
        tally.step("globals", int(not problems), [("check globals", "\n".join(problems))] if problems else [])
        problems = accuracy.check(ROOT / "build-gcc")
        tally.step("accuracy", int(not problems), [("docs/accuracy.md", "\n".join(problems))] if problems else [])
        step_suite(tally, "build-gcc")
        step_threads(tally, "build-gcc")
        interpreted = run.run_suite(run.Suite(ROOT / "build-gcc"), run.INTERPRETED, interpret=True, share=8)
        tally.step("programs, interpreted", *interpreted)
        tally.step("programs through C", *through_c.run_all(ROOT / "build-gcc", share=24))
        tally.step("programs as objects", *through_c.run_all(ROOT / "build-gcc", share=24, check=through_c.check_object, compilers=through_c.OBJECTS))
        passed, failures, _ = through_lanes.run_all(ROOT / "build-gcc", share=16)
        tally.step("kernels with lanes", passed, failures)
        passed, failures, _ = through_lanes.run_all(ROOT / "build-gcc", share=16, widths=(8,), rounds=True)
        tally.step("loops with lanes", passed, failures)
        passed, failures, _ = through_slang.run_all(ROOT / "build-gcc", share=8)
        tally.step("programs through Slang", passed, failures)
        tally.step("programs as PTX", *through_ptx.run_all(ROOT / "build-gcc", share=6, level=0)[:2])
        if through_cuda.find_nvcc():
            tally.step("programs through CUDA", *through_cuda.run_all(ROOT / "build-gcc", share=200))
        tally.step("library, build-gcc", *library.run_library(ROOT / "build-gcc", coded=12))
        package = start_package("build-gcc")
        tally.step("random functions: the generator", *fuzz_test.run_all(ROOT / "build-gcc"))
        step_package(tally, package)
        tally.step("random functions", *fuzz.run_fixed(ROOT / "build-gcc", RANDOM_FUNCTIONS))
        tally.step("gradcheck of the tests", *gradcheck_tests.run(slope))
        steps_beside(tally, [
            *((f"gradcheck of the library, {kind}", functools.partial(gradcheck_library.run, slope, kind)) for kind in ("double", "float", "half")),
            ("gradcheck as a judge", functools.partial(gradcheck_judge.run, slope, every=12)),
            ("documentation", functools.partial(docs_test.run_all, ROOT / "build-gcc")),
            *([("debugger", functools.partial(debugger_test.run_all, ROOT / "build-gcc"))] if debugger_test.works() else []),
            ("installation", functools.partial(install_test.run_all, ROOT / "build-gcc"))])
    if [step_build(tally, started) for started in building][-1]:
        step_suite(tally, "build-sanitize", coded=16, without=("examples/", "cost/", "gradcheck/"), repeats_one_in=8,
                   share=6, shared=("diff/", "run/", "emit/", "lanes/"))
        some = library.run_library(ROOT / "build-sanitize", SANITIZED_LIBRARY, options=("-O0",))
        tally.step("library, build-sanitize", *some)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
