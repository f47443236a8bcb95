#!/usr/bin/env python3
"""Runs the tests: every .slang and .ir file under tests/, and the unit tests.

A test is a source file with its expectation beside it or in it; what is there decides what is run (see
docs/testing.md). Everything runs in the folder of the test, so that paths in outputs are the same everywhere.
Quiet unless something fails; the last line is `N passed, N failed`, and the exit status is 1 if anything failed.

    tests/run.py [--build DIR] [--bless] [-v] [-j N] [--lanes N] [NAME...]     only tests whose name contains a NAME
    tests/run.py --interpret [--of N] ...      those that run programs, by the interpreter; one of N
"""
import argparse
import concurrent.futures
import difflib
import math
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIRECTIVE = re.compile(r"^\s*(?://|;)\s*(args|status|after|function|gradcheck|filecheck|cmd)(?::\s*(.*?))?\s*$")
IR_CHECK = re.compile(r"^\s*;\s*(RUN-PASSES|CHECK[-A-Z]*):")
EXPECT = {".slang": re.compile(r"^.*?//\s*expect:(?: (.*))?$"), ".ir": re.compile(r"^.*?;\s*expect:(?: (.*))?$")}
GOLDENS = (".ast", ".checked", ".ir", ".err", ".out", ".json")
# Without the first, the leak check of clang 14 stumbles over threads of plugins. On arm64 it takes seconds for every process, even
# an empty one: leaks are looked for on other machines. What was freed stays poisoned for 16 MiB, not 256, which cost a fifth of the time.
ASAN_OPTIONS = "intercept_tls_get_addr=0:allocator_may_return_null=1:quarantine_size_mb=16" + (":detect_leaks=0" if platform.machine() == "aarch64" else "")
# Once for every process that runs on a stack of its own; the runtime tells the sanitizer where its stacks are.
ASAN_NOISE = re.compile(r"==\d+==WARNING: ASan doesn't fully support makecontext/swapcontext functions.*\n")
LIBRARY_LINE = re.compile(r"(prelude/\w+\.slang):\d+:\d+:")  # the line itself follows, which does not change with those before it
INTERPRETED = ("run/", "diff/", "library/", "emit/", "cli/")  # tests whose programs the interpreter runs as well
DIRECTIVE_LINES = 10  # directives stand at the top; expectations anywhere
PATIENCE = 5  # times the seconds of a test, for those that wait
CALLS_COMPILER = re.compile(r"\b(cc|gcc|g\+\+|clang)\b")
SHELL_SIGNAL = 128  # what a shell adds to the number of the signal that ended a command


class Suite:
    """Where things are, and what the build asks for."""

    def __init__(self, build, bless=False, root=HERE, lanes=None):
        self.root = Path(root)
        self.build = Path(build).resolve()
        self.slope = self.build / "slope"
        self.bless = bless
        cache = self.build / "CMakeCache.txt"
        text = cache.read_text() if cache.exists() else ""
        self.sanitize = "SLOPE_SANITIZE:BOOL=ON" in text
        self.seconds = 180 if self.sanitize else 60
        self.bytes = (6 if self.sanitize else 3) << 30
        self.lanes = ["--lanes", str(lanes)] if lanes else []
        self.level = ["-O0"] if self.sanitize else []  # the sanitizers watch the compiler, not the code it makes
        self.filecheck = find_filecheck()
        self.watcher = Watcher()
        self.environment = dict(os.environ, LC_ALL="C", NO_COLOR="1", SLOPE_CACHE="", CMOCKA_MESSAGE_OUTPUT="STDOUT",
                                UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS=ASAN_OPTIONS)


def find_filecheck():
    for name in ("FileCheck-19", "FileCheck", "/usr/lib/llvm-19/bin/FileCheck"):
        if shutil.which(name):
            return shutil.which(name)
    return "FileCheck-19"


# ---- processes, limited in time and memory

class Watcher(threading.Thread):
    """Ends processes that take more memory than their limit. Resident memory is what counts: sanitizers and tapes
    reserve address space by the terabyte, which no rlimit can tell from use."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lock = threading.Lock()
        self.limits = {}
        self.ended = set()
        self.start()

    def watch(self, pid, limit):
        with self.lock:
            self.limits[pid] = limit

    def forget(self, pid):
        """True if the process was ended for its memory."""
        with self.lock:
            self.limits.pop(pid, None)
            was_ended = pid in self.ended
            self.ended.discard(pid)
            return was_ended

    def run(self):
        page = os.sysconf("SC_PAGE_SIZE")
        while True:
            time.sleep(0.05)
            with self.lock:
                for pid, limit in self.limits.items():
                    if any(pages * page > limit for pages in resident_pages(pid)):
                        self.ended.add(pid)
                        end_group(pid)


def resident_pages(pid):
    """Of a process and its children."""
    try:
        yield int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from resident_pages(int(child))
    except (OSError, ValueError, IndexError):
        return


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Result:
    def __init__(self, status, out, err, trouble=None):
        self.status, self.out, self.err, self.trouble = status, out, err, trouble


def limited(command, seconds):
    """The same, as words: it, and what it starts, each for itself, ends by SIGXCPU after these seconds of work. A shell sets the limit before there
    is anything that could start something without it."""
    limit = f"ulimit -S -t {math.ceil(seconds)}"
    return ["/bin/sh", "-c", f"{limit}\n{command}"] if isinstance(command, str) else ["/bin/sh", "-c", f'{limit}; exec "$@"', "sh", *map(str, command)]


def execute(suite, command, folder, stdin=None, seconds=None):
    """Runs a list of words, or a line for the shell. `trouble` says what is wrong beyond the exit status. The seconds are the
    processor's, since others may use it, too; one that waits has PATIENCE times as many."""
    seconds, trouble = seconds or suite.seconds, None
    child = subprocess.Popen(limited(command, seconds), cwd=folder, env=suite.environment,
                             stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    suite.watcher.watch(child.pid, suite.bytes)
    try:
        out, err = child.communicate(stdin, timeout=seconds * PATIENCE)
    except subprocess.TimeoutExpired:
        end_group(child.pid)
        out, err = child.communicate()
        trouble = f"took longer than {seconds * PATIENCE:g} s"
    if suite.watcher.forget(child.pid):
        trouble = f"took more than {suite.bytes >> 20} MiB"
    elif child.returncode == -signal.SIGXCPU or child.returncode == SHELL_SIGNAL + signal.SIGXCPU:
        trouble = f"took longer than {seconds} s of the processor"
    elif child.returncode < 0 and not trouble:
        trouble = f"ended by signal {signal.Signals(-child.returncode).name}"
    return Result(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"), trouble)


# ---- what to run

class Source:
    """A source file with its directives and expectations."""

    def __init__(self, suite, path):
        self.path = path
        self.name = str(path.relative_to(suite.root))
        self.options = {}
        lines = path.read_text(errors="replace").splitlines()
        self.checks_ir = path.suffix == ".ir" and any(IR_CHECK.match(line) for line in lines)
        for line in lines[:DIRECTIVE_LINES]:
            found = DIRECTIVE.match(line)
            if found:
                self.options[found[1]] = found[2] or ""
        matches = [EXPECT[path.suffix].match(line) for line in lines]
        self.expected = [found[1] or "" for found in matches if found]

    def goldens(self):
        for suffix in GOLDENS:
            golden = self.path.with_suffix(suffix)
            if golden != self.path and golden.exists():
                yield golden


class Test:
    """One command and what it must give. `check` returns None or what went wrong."""

    def __init__(self, name, source, command, golden=None, stream="out", status=0, expected=None, after=None):
        self.name, self.source, self.command, self.golden = name, source, command, golden
        self.stream, self.status, self.expected, self.after = stream, status, expected, after


def words(text):
    return (text or "").split()


def dump_command(suite, source, stage):
    command = [str(suite.slope), "dump", source.path.name, "--after", stage]
    if source.options.get("function"):
        command += ["-f", source.options["function"]]
    return command + words(source.options.get("args"))


def run_command(suite, source):
    return [str(suite.slope), "run", *suite.level, *suite.lanes, source.path.name] + words(source.options.get("args"))


def golden_test(suite, source, golden):
    """The test that a golden beside the source stands for."""
    name, file, options = str(golden.relative_to(suite.root)), source.path.name, source.options
    status = int(options["status"]) if options.get("status") else None
    if golden.suffix == ".ast":
        return Test(name, source, dump_command(suite, source, "syntax"), golden)
    if golden.suffix == ".checked":
        return Test(name, source, dump_command(suite, source, "check"), golden)
    if golden.suffix == ".ir":
        return Test(name, source, dump_command(suite, source, options.get("after", "lower")), golden)
    if golden.suffix in (".err", ".json"):
        extra = ["--json"] if golden.suffix == ".json" else []
        command = [str(suite.slope), "check", file] + extra + words(options.get("args"))
        return Test(name, source, command, golden, "err", status)
    return Test(name, source, options.get("cmd", run_command(suite, source)), golden, "out", status or 0)


def inline_tests(suite, source):
    """Tests by what is written in the source."""
    options, file, name = source.options, source.path.name, source.name
    status = int(options.get("status") or 0)
    if source.expected:
        yield Test(name, source, options.get("cmd", run_command(suite, source)), status=status, expected=source.expected)
    if "gradcheck" in options:
        level = suite.level or ["-O1"]      # the code generator takes most of the time, and gradcheck is about derivatives
        command = [str(suite.slope), "gradcheck", file, *level] + words(options["gradcheck"])
        yield Test(f"{name}:gradcheck", source, command)
    filecheck = [suite.filecheck, file]
    if "filecheck" in options:
        command = [str(suite.slope)] + words(options["filecheck"]) + [file]
        yield Test(f"{name}:filecheck", source, command, status=status, after=filecheck)
    elif source.checks_ir and "cmd" not in options:
        yield Test(name, source, [str(suite.build / "tests" / "irtool"), file], status=status, after=filecheck)
    elif "cmd" in options and not source.expected and not source.path.with_suffix(".out").exists():
        yield Test(name, source, options["cmd"], status=status)


def is_helper(suite, path):
    folders = path.relative_to(suite.root).parts[:-1]
    return any(folder in ("lib", "unit", "tools") or folder.endswith(".d") for folder in folders)


def discover(suite):
    """All tests, and what is wrong with the suite itself."""
    tests, troubles = [], []
    for path in sorted(suite.root.rglob("*")):
        if not path.is_file() or is_helper(suite, path):
            continue
        if path.suffix == ".slang" or (path.suffix == ".ir" and not path.with_suffix(".slang").exists()):
            source = Source(suite, path)
            found = [golden_test(suite, source, golden) for golden in source.goldens()]
            found += inline_tests(suite, source)
            if not found:
                troubles.append((source.name, "nothing to check: no golden beside it, no expectation in it"))
            tests += found
        elif path.suffix in GOLDENS and not path.with_suffix(".slang").exists() and \
                not path.with_suffix(".ir").exists():
            troubles.append((str(path.relative_to(suite.root)), "no source beside it"))
    return tests, troubles


# ---- running one test

def show_difference(expected, found):
    lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", lineterm="")
    shown = list(lines)
    if len(shown) > 60:
        shown = shown[:60] + [f"... {len(shown) - 60} more lines"]
    return "\n".join(shown)


def substitute(suite, test, temporary):
    """Fills in a shell line; a list of words is complete."""
    if not isinstance(test.command, str):
        return test.command
    line = re.sub(r"%\{(\w+)\}", lambda found: str(suite.build / "tests" / found[1]), test.command)
    line = line.replace("%slope", str(suite.slope)).replace("%filecheck", suite.filecheck)
    line = line.replace("%t", f"{temporary}/t")
    return line.replace("%s", test.source.path.name)


def clean(text, suite, test, temporary):
    """Takes out what differs from machine to machine, and where in the library something stands."""
    text = LIBRARY_LINE.sub(r"\1:", text)
    text = ASAN_NOISE.sub("", text).replace(f"{temporary}/t", "%t").replace(f"{test.source.path.parent}/", "")
    return text.replace(str(suite.slope), "%slope")


def expected_status(test, golden_text):
    if test.status is not None:
        return test.status
    is_error = re.search(r'(^|: )error E\d+: |"severity":"error"', golden_text, re.MULTILINE)
    return 1 if is_error else 0


def compare_golden(suite, test, result, text):
    golden_text = test.golden.read_text(errors="replace")
    if suite.bless and result.status == expected_status(test, text):
        if golden_text != text:
            test.golden.write_text(text)
        golden_text = text
    status = expected_status(test, golden_text)
    if golden_text != text:
        return show_difference(golden_text, text) + rest_of(test, result)
    if result.status != status:
        return f"exit status {result.status}, not {status}" + rest_of(test, result)
    return None


def rest_of(test, result):
    """What the command said besides what was compared."""
    other = result.err if test.stream == "out" else result.out
    return "\n" + other[-4000:] if other.strip() else ""


def check(suite, test, temporary):
    result = execute(suite, substitute(suite, test, temporary), test.source.path.parent)
    text = clean(result.err if test.stream == "err" else result.out, suite, test, temporary)
    if result.trouble:
        return result.trouble + rest_of(test, result)
    if test.golden:
        return compare_golden(suite, test, result, text)
    if test.expected is not None and text.splitlines() != test.expected:
        return show_difference("\n".join(test.expected), text) + rest_of(test, result)
    if result.status != test.status:
        return f"exit status {result.status}, not {test.status}\n{result.out[-4000:]}{result.err[-4000:]}"
    if not test.after:
        return None
    checked = execute(suite, test.after, test.source.path.parent, stdin=result.out.encode() or b"\n")
    return None if checked.status == 0 and not checked.trouble else checked.err or checked.trouble


def run_test(suite, test):
    with tempfile.TemporaryDirectory(prefix="slope-test-") as temporary:
        problem = check(suite, test, temporary)
        if problem is None:
            return 1, []
        command = substitute(suite, test, temporary)
        line = command if isinstance(command, str) else " ".join(command)
    return 0, [(test.name, f"{line}\n{problem}")]


# ---- unit tests

def run_unit(suite, name):
    """One program of cmocka tests: how many passed, and what failed."""
    program = suite.build / "tests" / name
    if not program.exists():
        return 0, [(f"unit/{name}", "not built")]
    result = execute(suite, [str(program)], suite.build, seconds=suite.seconds * 6)  # it is many tests
    output = result.out + result.err
    passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", output))
    failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test", output))
    if result.status == 0 and not result.trouble and failed == 0 and passed > 0:
        return passed, []
    names = list(dict.fromkeys(re.findall(r"\[  FAILED  \] (?!\d+ test)(\S+)", output)))
    if result.trouble or not names:
        last = re.findall(r"\[ RUN      \] (\S+)", output)
        names.append(last[-1] if last else "(start)")
        output = f"{result.trouble or f'exit status {result.status}'}\n{output}"
    failures = [(f"unit/{name}/{test}", "") for test in names]
    failures[0] = (failures[0][0], output[-6000:])
    return passed, failures


def unit_names(suite):
    return sorted(path.stem for path in (suite.root / "unit").glob("test_*.c"))


# ---- all of it

def wanted(name, filters):
    return not filters or any(text in name for text in filters)


def interpreted(test):
    """The test with its programs run by the interpreter; None: it runs none, or says how."""
    command = test.command
    if isinstance(command, str):
        found = re.sub(r"%slope (run|gradcheck)\b(?!.*--interpret)", r"%slope \1 --interpret", command)
    else:
        runs = command[1] in ("run", "gradcheck") and "--interpret" not in command
        found = [*command[:2], "--interpret", *command[2:]] if runs else command
    if found == command:
        return None
    return Test(f"{test.name}, interpreted", test.source, found, test.golden, test.stream, test.status, test.expected, test.after)


def with_few_samples(test):
    """Where nobody looks at the table, gradcheck need not try as much as where machine code does it."""
    command = test.command
    plain = not isinstance(command, str) and command[1] == "gradcheck" and not test.golden and not test.expected
    if plain and not any(word.startswith("--samples") for word in command):
        test.command = [*command, "--samples=8"]
    return test


def mostly_interpreted(tests, coded):
    """Of the tests whose programs the interpreter runs as well, one of so many is left to make machine code, which takes most of the time."""
    out, found = [], 0
    for test in tests:
        other = interpreted(test) if test.name.startswith(INTERPRETED) else None
        other = other and with_few_samples(other)
        found += other is not None
        out.append(other if other and found % coded else test)
    return out


def repeats(test):
    """Does most of its time go to what other tests do as well: to a C compiler, or to gradcheck of what the suite runs anyway?"""
    return test.name.endswith(":gradcheck") or isinstance(test.command, str) and bool(CALLS_COMPILER.search(test.command))


def with_few_repeats(tests, one_in):
    left_out = {test for i, test in enumerate(filter(repeats, tests)) if i % one_in}
    return [test for test in tests if test not in left_out]


def one_of(tests, share, folders):
    """Of the tests in these folders, one of so many."""
    left_out = {test for i, test in enumerate(test for test in tests if test.name.startswith(folders)) if i % share}
    return [test for test in tests if test not in left_out]


def run_suite(suite, filters=(), jobs=None, verbose=False, out=sys.stdout, interpret=False, share=1, shared=("",), coded=1,
              without=(), repeats_one_in=1):
    """Runs what is wanted; returns how many passed and a list of (name, what went wrong)."""
    tests, failures = discover(suite)
    tests = with_few_repeats([test for test in tests if not test.name.startswith(without)], repeats_one_in)
    tests = mostly_interpreted(tests, coded)
    failures = [trouble for trouble in failures if wanted(trouble[0], filters)]
    units = [] if interpret else unit_names(suite)
    if interpret:
        tests = [test for test in map(interpreted, tests) if test]
    work = [(name, run_unit, name) for name in units if wanted(f"unit/{name}", filters)]
    work += [(test.name, run_test, test) for test in one_of(tests, share, shared) if wanted(test.name, filters)]
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        running = {pool.submit(function, suite, item): name for name, function, item in work}
        for future in concurrent.futures.as_completed(running):
            count, failed = future.result()
            passed += count
            failures += failed
            if verbose:
                print(f"{'FAIL' if failed else 'ok  '} {running[future]}", file=out, flush=True)
    return passed, sorted(failures)


def report(failures, out=sys.stdout):
    for name, what in failures:
        print(f"FAIL {name}", file=out)
        if what:
            print("    " + what.strip().replace("\n", "\n    "), file=out)


def programs_parser(description=None):
    """Options of the scripts that take the programs of the suite another way."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=str(HERE.parent / "build"))
    parser.add_argument("-j", type=int, dest="jobs")
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("names", nargs="*")
    return parser


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build", help="the build to test")
    parser.add_argument("--bless", action="store_true", help="rewrite the goldens with what is found")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every test")
    parser.add_argument("-j", "--jobs", type=int, help="tests at a time; default: one per processor")
    parser.add_argument("--lanes", help="items of kernels to be done at once, in every test that runs a program")
    parser.add_argument("--interpret", action="store_true", help="run programs by the interpreter, and nothing else")
    parser.add_argument("--of", type=int, default=1, help="one test of so many")
    parser.add_argument("--root", default=HERE, help="the folder that is searched for tests")
    parser.add_argument("names", nargs="*", help="only tests whose name contains one of these")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    suite = Suite(options.build, options.bless, Path(options.root).resolve(), options.lanes)
    names = options.names or (INTERPRETED if options.interpret else ())
    passed, failures = run_suite(suite, names, options.jobs, options.verbose, interpret=options.interpret,
                                 share=options.of)
    if passed == 0 and not failures:
        failures.append(("suite", "no test has such a name" if options.names else "no tests were found"))
    report(failures)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
