#!/usr/bin/env python3
"""The same programs through C: what `slope run` prints in tests/run, tests/diff and tests/library, the program that
`-target c` makes prints too, and so does the interpreter. gcc, clang and a C++ compiler take turns; a warning is a failure.
Buffers and plain numbers that `slope run` is given are set by a few lines of C before main.

    tests/through_c.py [--build DIR] [-j N] [--of N] [NAME...]     one test of N; only those whose name contains a NAME
"""
import concurrent.futures
import os
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COMPILERS = [["gcc", "-O1", "-std=c17", *WARNINGS], ["clang", "-O1", "-std=c17", *WARNINGS],
             ["g++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"],
             ["clang++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"]]
FOLDERS = ("run", "diff", "library")
SET, PRINTED = ("bind", "set"), ("print",)
DATA = (*SET, *PRINTED, "save", "show", "dispatch", "entry", "threads", "stack", "block", "wave")  # that C's main has not
LACKING = re.compile(r"this target (has no|does not)")


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


def split_data(test):
    """Such arguments, what is set as (name, data), and what is printed in the end; None: there is more to it."""
    if not is_run(test):
        return None
    given, others, values, printed = after_file(test), [], [], []
    while given:
        word = given.pop(0)
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in DATA:
            others.append(word)
            continue
        value = value or (given.pop(0) if given else "")
        if name in SET and re.fullmatch(r"\w+=(zeros:\d+|[-+.,\de]+)", value):
            values.append(tuple(value.split("=")))
        elif name in PRINTED and re.fullmatch(r"\w+", value):
            printed.append(value)
        else:
            return None
    return others, values, printed


def choose(suite, filters, share, folders=FOLDERS, suits=arguments):
    tests, _ = run.discover(suite)
    chosen = [test for test in tests if test.name.split("/")[0] in folders and suits(test) is not None]
    return [test for test in chosen[::share] if run.wanted(test.name, filters)]


# ---- data

FORMATS = {"float": "%.9g", "double": "%.17g", "int32_t": "%d", "uint32_t": "%u"}


def scalar_of(code, element):
    """The type of all the numbers in it; None: there are several."""
    vector = re.search(rf"typedef struct {element} {{ (\w+) [xyzw, ]+; }} {element};", code)
    scalar = vector[1] if vector else "uint32_t" if element == "unsigned char" else element
    return scalar if scalar in FORMATS else None


def declared(code, name):
    """What the C file says that it is, and what its elements are if it is a buffer; (None, None): there is no such name."""
    plain = re.search(rf"^extern (\w+) {name};", code, re.M)
    buffer = plain and re.search(rf"typedef struct {plain[1]} {{ ([\w ]+) \(?\*data\)?([\[\]\d]*); ", code)
    if buffer and buffer[2]:
        return plain[1], f"__typeof__({buffer[1]}{buffer[2]})"
    return plain and plain[1], buffer and buffer[1]


def bind(name, element, data):
    """Its memory, behind the counter of buffers that can grow, and the statements that fill it."""
    unit = "uint32_t" if element == "unsigned char" else element
    zeros = data.startswith("zeros:")
    values = "" if zeros else f"static {unit} values_of_{name}[] = {{{data}}};\n"
    count = data.removeprefix("zeros:") if zeros else f"sizeof values_of_{name} / sizeof({unit})"
    fill = "" if zeros else f"memcpy(bound_{name}.at, values_of_{name}, sizeof values_of_{name}); "
    return (f"{values}static struct {{ uint32_t counter[4]; {unit} at[{count}]; }} "
            f"__attribute__((aligned(16))) bound_{name};",
            f"{fill}{name}.data = ({element} *)(void *)bound_{name}.at, "
            f"{name}.count = (sizeof bound_{name}.at) / (sizeof({element}));")


def set_up(code, values, printed):
    """C that gives buffers their data before main, and prints some after it; None: it cannot be said so."""
    storage, before, after = [], [], []
    for name, data in values:
        plain, element = declared(code, name)
        if not plain or "half" in (element or ""):  # which is held as bits
            return None
        if element:
            memory, statements = bind(name, element, data)
            storage.append(memory)
            before.append(statements)
        elif plain in FORMATS and re.fullmatch(r"[-+.\de]+", data):
            before.append(f"{name} = {data};")
        else:
            return None
    for name in printed:
        scalar = scalar_of(code, declared(code, name)[1])
        if not scalar:
            return None
        after.append(f"for (size_t i = 0; i < sizeof bound_{name}.at / sizeof({scalar}); i++) "
                     f"printf(\"{FORMATS[scalar]}\\n\", (({scalar} *)(void *)bound_{name}.at)[i]);")
    return "\n".join(["", '#pragma GCC diagnostic ignored "-Wmissing-braces"', *storage,
                      f"__attribute__((constructor)) static void set_up(void) {{ {' '.join(before)} }}",
                      f"__attribute__((destructor)) static void show_at_the_end(void) {{ {' '.join(after)} }}", ""])


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


def check(suite, test, compiler, temporary):
    """None, or what went wrong."""
    folder, code, program = test.source.path.parent, f"{temporary}/t.c", f"{temporary}/t"
    given, values, printed = split_data(test)
    made = run.execute(suite, [str(suite.slope), "build", test.source.path.name, "-target", "c", "-o", code, *given],
                       folder)
    if made.status and LACKING.search(made.err):
        return None
    if made.status or made.trouble:
        return f"slope build: {made.trouble or made.err}"
    text = Path(code).read_text()
    if "int main(void)" not in text:
        return None  # its entry point is a kernel of another name, which a host calls
    if values or printed:
        more = set_up(text, values, printed)
        if not more:
            return None
        Path(code).write_text(text + more)
        compiler = compiler if "c++" not in compiler else COMPILERS[0]
    compiled = run.execute(suite, [*compiler, code, "-x", "none", "-o", program, "-lm"], folder)
    if compiled.status or compiled.trouble:
        return f"{' '.join(compiler)}: {compiled.trouble or compiled.err[:3000]}"
    result = run.execute(suite, [program], folder)
    if result.status or result.trouble:
        return f"exit status {result.status} {result.trouble or ''}\n{result.err}"
    if not same_output(result.out.splitlines(), expected_of(test)):
        return run.show_difference("\n".join(expected_of(test)), result.out)
    interpreted = run.execute(suite, [*test.command[:2], "--interpret", *test.command[2:]], folder)
    if not same_output(result.out.splitlines(), interpreted.out.splitlines()):
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
        results = list(pool.map(one, enumerate(choose(suite, filters, share, suits=split_data))))
    failures = [result for result in results if result]
    return len(results) - len(failures), failures


def main():
    parser = run.programs_parser()
    options = parser.parse_args()
    passed, failures = run_all(options.build, options.names, options.jobs, options.of)
    run.report(failures)
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
