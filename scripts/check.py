#!/usr/bin/env python3
"""Checks of the source that a compiler does not make: format, layering, headers, sizes, habits, what depends on the order of
arguments, what only another processor compiles, messages that no test expects, structs of the Python package, and no global state.

    scripts/check.py [--objects BUILD]     BUILD: look for global variables in the objects of that build

Prints one line per problem; the exit status is 1 if there is any.
"""
import argparse
import ast
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A folder includes itself and those before it in this list, apart from the exceptions.
LAYERS = "base diag type syntax check ir lower autodiff opt emit runtime driver gradcheck cli".split()
TREE = {"syntax", "check"}  # nothing that works on the IR sees the tree
FORBIDDEN = {
    "ir": TREE,
    "autodiff": TREE | {"lower", "opt", "emit"},
    "opt": TREE | {"lower", "autodiff", "emit"},
    "emit": TREE | {"lower", "autodiff", "opt"},
    "runtime": TREE | {"lower", "autodiff", "opt"},
    "gradcheck": {"autodiff", "opt"},
    "cli": set(LAYERS) - {"cli"},
}
# FOLDER/FOLDER.h is for others; the other headers of a folder are its own, but for these and those who see them.
OPEN_HEADERS = {"emit/abi.h": {"runtime"}, "driver/unit.h": {"gradcheck"}}
SEES_PUBLIC_HEADER = {"driver", "gradcheck", "cli"}
MAY_PRINT = {"driver", "cli"}
MAY_EXIT = {"src/runtime/entry.c"}  # where there is no driver
FILE_LINES = 1000
FUNCTION_LINES = 100  # unless it is one flat switch
PRINTING = re.compile(r"\b(v?f?printf|puts|fputs|putchar|fopen|fwrite|perror|exit|_exit)\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|not implemented)\b", re.IGNORECASE)
OTHER_PROCESSOR = {"x86_64": "aarch64-linux-gnu", "aarch64": "x86_64-linux-gnu"}
LLVM_HEADERS = "/usr/lib/llvm-19/include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"]
CALL = re.compile(r"\b([a-z_]\w*)\(")
BUILDING = ("ir", "lower", "autodiff", "opt", "gradcheck")  # the folders that build IR
DEFINITION = re.compile(r"^(?P<static>static )?[A-Za-z_][\w *]*?\b(?P<name>[a-z_]\w*)\([^;{}]*\)\s*\{(?:(?P<line>[^\n]*)\}$|(?P<body>.*?)^\})",
                        re.MULTILINE | re.DOTALL)
BUILDS = re.compile(r"\b([a-z_]\w*)\(Builder \*")
MESSAGE = re.compile(r'DIAG\((\w+), (\w+), (\d+), "((?:\\.|[^"\\])*)"\)$')
SAYS = {".slang", ".err", ".json", ".out", ".ir", ".c", ".py"}  # what a test may expect a message in
FILES = re.compile(r"\b\w+\.c\b")
DEFINED_ELSEWHERE = {"slope_llvm_backend"}  # in a library of its own
USED_ELSEWHERE = re.compile(r"command_|rt_|library_index$")  # by macros, by emitted code, by the build
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def sources(*folders, suffixes=(".c", ".h")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path


def shown(path):
    return path.relative_to(ROOT)


def blank(text):
    """Without comments and strings, but with the same lines."""
    return COMMENT_OR_STRING.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


# ---- each check yields lines

def check_format():
    files = [str(path) for path in sources("src", "include", "tests", "examples", "bench")]
    if not files:
        return
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], capture_output=True, text=True)
    places = re.findall(r"^(\S+?):(\d+):\d+: error:", result.stderr, re.MULTILINE)
    for path in dict.fromkeys(path for path, _ in places):
        line = next(line for where, line in places if where == path)
        yield f"{shown(Path(path))}:{line}: not formatted; run: make format"
    if result.returncode and not places:
        yield f"clang-format: {result.stderr.strip()[:200]}"


def folder_of(path):
    return path.relative_to(ROOT / "src").parts[0]


def check_layering():
    for path in sources("src", suffixes=(".c", ".h", ".def")):
        folder = folder_of(path)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if found:
                problem = include_problem(path, folder, found[1])
                if problem:
                    yield f"{shown(path)}:{number}: {problem}"


def include_problem(path, folder, name):
    if name == "slope.h":
        return None if folder in SEES_PUBLIC_HEADER else f"{folder} does not see slope.h"
    if "/" not in name:
        return None if (path.parent / name).exists() else f"'{name}' is not in this folder; write FOLDER/{name}"
    other = name.split("/")[0]
    if other not in LAYERS:
        return f"'{other}' is no folder of src"
    if LAYERS.index(other) > LAYERS.index(folder) or other in FORBIDDEN.get(folder, ()):
        return f"{folder} does not see {other}"
    if other != folder and name.endswith(".h") and name != f"{other}/{other}.h" and folder not in OPEN_HEADERS.get(name, ()):
        return f"'{name}' is for {other} alone; {other}/{other}.h is for others"
    return None


def statements(text):
    """(line, text) of each declaration at the top of a header; what is in braces is left out."""
    depth, start, found = 0, 1, ""
    for number, line in enumerate(blank(text).splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for letter in line + "\n":
            depth += letter == "{"
            if not found.strip():
                start = number
            if depth == 0:
                found += letter
            depth -= letter == "}"
            if depth == 0 and letter == ";":
                yield start, found.strip()
                found = ""
            elif depth == 0 and letter == "}" and found.rstrip().endswith(")"):
                found = ""  # an inline function


def prototypes(path):
    """(line, the files it stands under, name) of each function that a header declares: those that the last comment at the
    beginning of a line names, or the comment behind it."""
    text = path.read_text()
    lines = text.splitlines()
    sections = [(number, FILES.findall(line)) for number, line in enumerate(lines, 1) if re.match(r"/\* (?:---- )?\w+\.c\b", line)]
    for number, statement in statements(text):
        found = re.match(r"(?!typedef|extern|_Static_assert)[\w\s*]*?([a-z_]\w*)\(", statement)
        if found:
            before = [files for line, files in sections if line < number]
            yield number, re.findall(r"/\* (\w+\.c)\b", lines[number - 1]) or (before[-1] if before else []), found[1]


def definitions():
    """The files that define each function that is not static."""
    found = {}
    for path in sources("src", suffixes=(".c",)):
        names = re.findall(r"^(?!static)[A-Za-z_][\w *]*?\b([a-z_]\w*)\([^;{]*\)\s*\{", blank(path.read_text()), re.MULTILINE)
        for name in names:
            found.setdefault(name, set()).add(path)
    return found


def words_by_file():
    paths = [*sources("src", suffixes=(".c", ".h", ".def")), *sources("tests", suffixes=(".c",))]
    return {path: set(re.findall(r"\w+", blank(path.read_text()))) for path in paths}


def check_headers():
    """What a header declares stands under the file that defines it, and somebody else uses it."""
    defined, words = definitions(), words_by_file()
    for header in sources("src", suffixes=(".h",)):
        for number, files, name in prototypes(header):
            places = defined.get(name, set())
            if not places:
                if name not in DEFINED_ELSEWHERE:
                    yield f"{shown(header)}:{number}: nothing defines '{name}'"
            elif files and not {path.name for path in places} & set(files):
                yield f"{shown(header)}:{number}: '{name}' stands under {files[0]}, not under {sorted(places)[0].name}"
            elif not USED_ELSEWHERE.match(name) and not any(name in words[path] for path in words if path not in places | {header}):
                yield f"{shown(header)}:{number}: nobody but {sorted(places)[0].name} uses '{name}': make it static"


def functions(lines):
    """(first line, number of lines, lines) of each function, in formatted text."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and re.match(r"[A-Za-z_].*\(", line) and not line.rstrip().endswith((";", "}")):
            start = number
        elif start is not None and line.rstrip().endswith(";") and not line.startswith(" "):
            start = None
        if start is not None and line.startswith("}"):
            yield start, number - start + 1, lines[start - 1:number]
            start = None


def is_flat_switch(body):
    starts = [i for i, line in enumerate(body) if line.startswith("    switch (")]
    if len(starts) != 1:
        return False
    end = next((i for i in range(starts[0] + 1, len(body)) if body[i].startswith("    }")), len(body))
    return end - starts[0] >= 0.7 * len(body)


def check_sizes():
    for path in [*sources("src", "include"), *sources("prelude", suffixes=(".slang",))]:
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES:
            yield f"{shown(path)}: {len(lines)} lines; at most {FILE_LINES}"
        for start, count, body in functions(lines):
            if count > FUNCTION_LINES and not is_flat_switch(body):
                yield f"{shown(path)}:{start}: a function of {count} lines; at most {FUNCTION_LINES}"


def arguments(text, opening):
    """The arguments of a call, whose parenthesis opens there."""
    depth, start = 0, opening + 1
    for at in range(opening, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0 or depth == 1 and text[at] == ",":
            yield text[start:at]
            start = at + 1
        if depth == 0:
            return


def builders(texts):
    """Which functions build instructions, as (the file of a static one or None, name): what takes a Builder, and what calls such."""
    declared = {(None, name) for path, text in texts.items() if path.suffix == ".h" for name in BUILDS.findall(text)}
    defined = {}
    for path, text in texts.items():
        for found in DEFINITION.finditer(text):
            defined[path if found["static"] else None, found["name"]] = path, set(CALL.findall(found["line"] or found["body"] or ""))
    building = declared | {key for key, (path, _) in defined.items() if re.search(rf"\b{key[1]}\(Builder \*", texts[path])}
    grown = True
    while grown:
        more = {key for key, (path, calls) in defined.items() if key not in building and any(seen_as(path, call, defined) in building for call in calls)}
        building |= more
        grown = bool(more)
    return building, defined


def seen_as(path, name, defined):
    return (path, name) if (path, name) in defined else (None, name)


def check_order():
    """C does not say which argument of a call is computed first: if two of them build instructions, compilers make different programs."""
    texts = {path: blank(path.read_text()) for path in sources(*(f"src/{folder}" for folder in BUILDING))}
    building, defined = builders(texts)
    for path, text in texts.items():
        for call in CALL.finditer(text):
            parts = arguments(text, call.end() - 1)
            if sum(any(seen_as(path, name, defined) in building for name in CALL.findall(part)) for part in parts) > 1:
                yield f"{shown(path)}:{text.count(chr(10), 0, call.start()) + 1}: two arguments of '{call[1]}' build instructions; name one before"


def check_processors():
    """What differs between processors compiles without a warning for the one that this is not, as far as its C library is installed."""
    other = OTHER_PROCESSOR.get(platform.machine())
    headers = Path(f"/usr/{other}/include")
    if not other or not headers.exists() or not shutil.which("clang"):
        return
    for path in sources("src", suffixes=(".c",)):
        if not re.search(r"__(aarch64|x86_64)__", path.read_text()):
            continue
        command = ["clang", f"--target={other}", "-isystem", str(headers), "-isystem", LLVM_HEADERS, "-I", str(ROOT / "src"), "-I", str(ROOT / "include"),
                   "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L", "-DSLOPE_NVPTX", "-std=c17", *WARNINGS, "-fsyntax-only", str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
        for line in result.stderr.splitlines():
            if re.search(r"(error|warning): ", line):
                yield line.replace(f"{ROOT}/", "") + f" (for {other})"


def check_merged():
    """No file that git tracks has marks of a merge that was left unfinished."""
    left = subprocess.run(["git", "grep", "-nIE", "^(<{7}|>{7}) "], cwd=ROOT, capture_output=True, text=True).stdout
    for line in left.splitlines():
        yield f"{':'.join(line.split(':', 2)[:2])}: what a merge could not decide"


def check_habits():
    for path in sources("src", "include", "tests", "examples", suffixes=(".c", ".h", ".def")):
        text = path.read_text()
        if not text.startswith("/*"):
            yield f"{shown(path)}:1: it does not open with what it is"
        for number, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                yield f"{shown(path)}:{number}: unfinished: {line.strip()[:60]}"
    for path in sources("src"):
        if folder_of(path) in MAY_PRINT or str(shown(path)) in MAY_EXIT:
            continue
        for number, line in enumerate(blank(path.read_text()).splitlines(), 1):
            found = PRINTING.search(line)
            if found:
                yield f"{shown(path)}:{number}: {found[1]} is for driver and cli alone"


def said_in_tests():
    """All that tests expect or look for: their sources, their goldens, and the unit tests."""
    paths = [path for path in (ROOT / "tests").rglob("*") if path.suffix in SAYS and path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in sorted(paths))


def check_messages():
    """Each row of diag.def is used, and some test expects it: by its code, or a note by its text."""
    table = ROOT / "src/diag/diag.def"
    said = said_in_tests()
    codes = set(re.findall(r"\b[EW]?(\d{4})\b", said))
    notes = "\n".join(line for line in said.splitlines() if "note: " in line)
    used = {name for path in sources("src") for name in re.findall(r"\bDIAG_(\w+)\b", blank(path.read_text()))}
    for number, line in enumerate(table.read_text().splitlines(), 1):
        found = MESSAGE.match(line)
        if not found:
            if line.startswith("DIAG("):
                yield f"{shown(table)}:{number}: a row is one line: name, severity, code, text"
            continue
        name, severity, row, text = found.groups()
        words = re.split(r"%[0-9.]*[a-zA-Z]", text.replace('\\"', '"').replace("\\\\", "\\"))
        spoken = rf"{severity}: " + ".*".join(map(re.escape, words))
        if row not in codes if row != "0" else not re.search(spoken, notes):
            yield f"{shown(table)}:{number}: no test expects '{name}'"
        if name not in used:
            yield f"{shown(table)}:{number}: nothing reports '{name}'"


def check_globals(build):
    """Variables that are neither constant nor local, in the objects of the libraries and the command."""
    objects = sorted(Path(build).glob("CMakeFiles/slope*.dir/**/*.o"))
    if not objects:
        yield f"{build}: no objects there"
    for path in objects:
        table = subprocess.run(["objdump", "-t", str(path)], capture_output=True, text=True, check=True).stdout
        for line in table.splitlines():
            found = re.match(r"[0-9a-f]{16} .{6}O (\S+)\t[0-9a-f]+ +(?:\.hidden )?(\S+)", line)
            if found and re.match(r"\.(data|bss|tbss|tdata)(?!\.rel\.ro)|\*COM\*", found[1]):
                yield f"{path.name}: '{found[2]}' is a global variable"


def fields_in_header():
    """The names of the fields of each struct of slope.h, in order."""
    text = blank((ROOT / "include" / "slope.h").read_text())
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.DOTALL):
        lines = [re.sub(r"\(\*(\w+)\)\(.*\)", r"\1", line, flags=re.DOTALL) for line in body.split(";")]
        yield name, [re.sub(r"\[.*?\]", "", part).split()[-1].lstrip("*") for line in lines if line.strip()
                     for part in line.split(",")]


def check_bindings():
    """The structs of the Python package are those of slope.h."""
    path, structs = ROOT / "python" / "slope" / "_library.py", dict(fields_in_header())
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ClassDef) or not isinstance(node.body[0], ast.Assign):
            continue
        found = [pair.elts[0].value for pair in node.body[0].value.elts]
        if found != structs.get(node.name):
            yield f"{shown(path)}:{node.lineno}: {node.name} is not that of slope.h: {found} are {structs.get(node.name)}"


CHECKS = {"format": check_format, "layering": check_layering, "headers": check_headers, "sizes": check_sizes,
          "habits": check_habits, "order": check_order, "processors": check_processors, "merged": check_merged, "messages": check_messages, "bindings": check_bindings}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--objects", metavar="BUILD", help="also look for global variables in this build")
    options = parser.parse_args()
    problems = [line for check in CHECKS.values() for line in check()]
    if options.objects:
        problems += check_globals(options.objects)
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
