#!/usr/bin/env python3
"""The same programs through C: what `slope run` prints in tests/run, tests/diff and tests/library, the program that
`-target c` makes prints too, and so does the interpreter. gcc, clang and a C++ compiler take turns; a warning is a failure.
Buffers and plain numbers that `slope run` is given are set by a few lines of C before main; kernels are called by a main of ours.

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
from typing import NamedTuple

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COMPILERS = [["gcc", "-O1", "-std=c17", *WARNINGS], ["clang", "-O1", "-std=c17", *WARNINGS],
             ["g++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"],
             ["clang++", "-O1", "-std=c++17", "-ffp-contract=off", *WARNINGS, "-x", "c++"]]
FOLDERS = ("run", "diff", "library")
SET, PRINTED, DISPATCH, ENTRY = ("bind", "set"), ("print",), ("dispatch",), ("entry",)
DATA = (*SET, *PRINTED, *DISPATCH, *ENTRY, "save", "show", "threads", "stack", "block", "wave")  # that C's main has not
NUMBERS = r"[-+.,\de]+|(0x[\da-f]+,?)+|(zeros|ones|range|random):\d+"
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


class Given(NamedTuple):
    """What a test gives to `slope run`, as far as C can be given it."""
    others: list  # for `slope build`
    values: list  # (name, data) of what is set
    printed: list  # in the end
    groups: str  # "x, y, z"; None: not said
    entries: list


def split_data(test):
    """None: there is more to it."""
    if not is_run(test):
        return None
    words, given = after_file(test), Given([], [], [], [], [])
    while words:
        word = words.pop(0)
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in DATA:
            given.others.append(word)
            continue
        value = value or (words.pop(0) if words else "")
        if name in SET and re.fullmatch(rf"\w+=({NUMBERS})", value):
            given.values.append(tuple(value.split("=")))
        elif name in PRINTED and re.fullmatch(r"\w+", value):
            given.printed.append(value)
        elif name in DISPATCH:
            given.groups[:] = (value.split(",") + ["1", "1"])[:3]
        elif name in ENTRY:
            given.entries.append(value)
            given.others.extend(["-entry", value])
        else:
            return None
    return given


def choose(suite, filters, share, folders=FOLDERS, suits=arguments):
    tests, _ = run.discover(suite)
    chosen = [test for test in tests if test.name.split("/")[0] in folders and suits(test) is not None]
    return [test for test in chosen[::share] if run.wanted(test.name, filters)]


# ---- data

FORMATS = {"float": "%.9g", "double": "%.17g", "int32_t": "%d", "uint32_t": "%u", "int64_t": "%ld", "uint64_t": "%lu"}


def drawn(count, whole):
    """What `random:` is (src/cli/data.c)."""
    state, bits = 0x9e3779b97f4a7c15, (1 << 64) - 1
    for _ in range(count):
        state ^= state << 13 & bits
        state ^= state >> 7
        state ^= state << 17 & bits
        yield str(int((state >> 33 & 0xffffff) / 16777216 * 100)) if whole else f"{(state >> 40) / 16777216:.9g}"


def numbers(data, unit):
    """A list of them, as C says it; "": zeros, of which there are so many; None: it cannot be said."""
    kind, _, count = data.rpartition(":")
    is_real = unit in ("float", "double")
    if kind == "zeros" or not kind and not (is_real and "0x" in data):
        return "" if kind else data
    if unit not in FORMATS or not kind:
        return None
    return ",".join({"ones": "1" * int(count), "range": map(str, range(int(count))),
                     "random": drawn(int(count), not is_real)}[kind])


def scalar_of(code, element):
    """The type of all the numbers in it; None: there are several."""
    vector = re.search(rf"typedef struct {element} {{ (\w+) [xyzw, ]+; }} {element};", code)
    scalar = vector[1] if vector else "uint32_t" if element == "unsigned char" else element
    return scalar if scalar in FORMATS else None


def outer_name(code, name):
    """As C calls it: what C claims has a prefix."""
    return name if re.search(rf"^extern \w+ {name};", code, re.M) else f"slope_{name}"


def declared(code, name):
    """What the C file says that it is, and what its elements are if it is a buffer; (None, None): there is no such name."""
    plain = re.search(rf"^extern (\w+) {name};", code, re.M)
    buffer = plain and re.search(rf"typedef struct {plain[1]} {{ ([\w ]+) \(?\*data\)?([\[\]\d]*); ", code)
    if buffer and buffer[2]:
        return plain[1], f"__typeof__({buffer[1]}{buffer[2]})"
    return plain and plain[1], buffer and buffer[1]


def bind(name, element, data):
    """Its memory, behind the counter of buffers that can grow, and the statements that fill it; None: it cannot be said."""
    unit = "uint32_t" if element == "unsigned char" else element
    listed = numbers(data, unit)
    if listed is None:
        return None
    values = f"static {unit} values_of_{name}[] = {{{listed}}};\n" if listed else ""
    count = f"sizeof values_of_{name} / sizeof({unit})" if listed else data.removeprefix("zeros:")
    fill = f"memcpy(bound_{name}.at, values_of_{name}, sizeof values_of_{name}); " if listed else ""
    return (f"{values}static struct {{ uint32_t counter[4]; {unit} at[{count}]; }} "
            f"__attribute__((aligned(16))) bound_{name};",
            f"{fill}{name}.data = ({element} *)(void *)bound_{name}.at, "
            f"{name}.count = (sizeof bound_{name}.at) / (sizeof({element}));")


def set_up(code, values, printed, source=""):
    """C that gives buffers their data before main, and prints some after it; None: it cannot be said so."""
    storage, before, after = [], [], []
    for name, data in values:
        name = outer_name(code, name)
        plain, element = declared(code, name)
        if not plain or "half" in (element or ""):  # which is held as bits
            return None
        if element:
            bound = bind(name, element, data)
            if not bound:
                return None
            storage.append(bound[0])
            before.append(bound[1])
            if re.search(rf"Consume\w+<[^;]*>[^;]*\b{name}\b", source):  # all that it has can be taken
                before.append(f"bound_{name}.counter[0] = (uint32_t){name}.count;")
        elif plain in FORMATS and re.fullmatch(r"[-+.\de]+", data):
            before.append(f"{name} = {data};")
        else:
            return None
    for name in map(lambda given: outer_name(code, given), printed):
        scalar = scalar_of(code, declared(code, name)[1])
        if not scalar:
            return None
        after.append(f"for (size_t i = 0; i < sizeof bound_{name}.at / (sizeof({scalar})); i++) "
                     f"printf(\"{FORMATS[scalar]}\\n\", (({scalar} *)(void *)bound_{name}.at)[i]);")
    return "\n".join(["", '#pragma GCC diagnostic ignored "-Wmissing-braces"', *storage,
                      f"__attribute__((constructor)) static void set_up(void) {{ {' '.join(before)} }}",
                      f"__attribute__((destructor)) static void show_at_the_end(void) {{ {' '.join(after)} }}", ""])


# ---- kernels

KERNEL = re.compile(r"^void (\w+)\(uint32_t groups_x, uint32_t groups_y, uint32_t groups_z\);", re.M)


def main_of(code, given):
    """C's main, which calls the entry points; None: there is none, or one that takes more than groups."""
    kernels = KERNEL.findall(code)
    wanted = [re.sub(r"\W+", "_", name).strip("_") for name in given.entries] or kernels
    wanted = [name if name in kernels else f"slope_{name}" for name in wanted]
    if not given.entries and len(wanted) != 1 or not set(wanted) <= set(kernels):
        return None
    groups = ", ".join(given.groups or "111")
    return "\nint main(void) {\n" + "".join(f"    {name}({groups});\n" for name in wanted) + "    return 0;\n}\n"


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
    """None, or what went wrong."""
    folder, code, program = test.source.path.parent, f"{temporary}/t.c", f"{temporary}/t"
    given = split_data(test)
    text, problem = make(suite, test, given, code)
    if problem or not text:
        return problem
    if given.values or given.printed:
        more = set_up(text, given.values, given.printed, test.source.path.read_text())
        if not more:
            return None
        text += more
        compiler = compiler if "c++" not in compiler else COMPILERS[0]
    Path(code).write_text(text)
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
