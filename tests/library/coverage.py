"""Which library functions have no test.

A function of numbers must have a case in the C reference for every type and shape that it is declared for: that of each overload's
first parameter with a shape. Everything else that the prelude declares must be called in some test. library.py asks.
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import library_page

FLOATS = ["half", "float", "double"]
INTEGERS = ["int8_t", "uint8_t", "int16_t", "uint16_t", "int", "uint", "int64_t", "uint64_t"]
KINDS = {"floats": FLOATS, "integers": INTEGERS, "numbers": INTEGERS + FLOATS, "scalars": ["bool"] + INTEGERS + FLOATS}
REFERENCE_FILES = ["math.slang", "vector.slang", "bits.slang", "special.slang"]
TESTS = ["run", "library", "diff", "check", "emit", "gradcheck", "cli"]


def shape_word(text):
    """vectors, matrices or scalars, for one type."""
    return "matrices" if text.startswith("matrix<") else "vectors" if text.startswith("vector<") else "scalars"


def wanted(function):
    """(type, shapes of the parameters) of every case that an overload asks for."""
    _, _, name, generics, parameters = function
    types = [re.sub(r"^(out|inout|__ref) ", "", " ".join(part.split("=")[0].split()[:-1])) for part in library_page.split_list(parameters)
             if not part.startswith("out ")]
    constraint = re.search(r"\bT : (\w+)", generics)
    kinds = KINDS[library_page.CONSTRAINTS[constraint[1]]] if constraint and constraint[1] in library_page.CONSTRAINTS and \
        library_page.CONSTRAINTS[constraint[1]] in KINDS else [None]
    for kind in kinds:
        shapes = []
        for text in types:
            inner = re.match(r"(?:vector|matrix)<(\w+)", text)
            element = inner[1] if inner else text
            shapes.append((kind if element == "T" and kind else element, shape_word(text)))
        yield name, tuple(shapes)


def found_in(cases):
    """What the cases call: (name, (type, shape) of each input)."""
    found = set()
    for line in cases:
        head, ins, _ = line.split(" |")[:3]
        code = head.split(" ", 3)[3]
        shapes = []
        for word in ins.split():
            kind, _, size = word.partition(":")
            shapes.append((kind, "matrices" if "x" in size else "vectors" if size else "scalars"))
        for name in re.findall(r"\b([A-Za-z_]\w*)\(", code):
            found.add((name, tuple(shapes)))
    return found


def matches(want, have):
    """The arguments, without those that the case has as constants at the end."""
    return want == have[:len(want)] or (len(have) < len(want) and want[:len(have)] == have)


def missing_cases(cases):
    found = {}
    for name, shapes in found_in(cases):
        found.setdefault(name, []).append(shapes)
    for file in REFERENCE_FILES:
        sections, _, _ = library_page.read_file(ROOT / "prelude" / file)
        for function in (overload for _, entries in sections for entry in entries for overload in entry.overloads):
            for name, shapes in wanted(function):
                concrete = all(kind in KINDS["scalars"] for kind, _ in shapes)
                if concrete and not any(matches(shapes, have) for have in found.get(name, [])):
                    yield f"{name}({', '.join(f'{kind} {shape}' for kind, shape in shapes)}): no case in tests/library"


def missing_calls():
    texts = [path.read_text(errors="replace") for folder in TESTS for path in sorted((ROOT / "tests" / folder).rglob("*.slang"))]
    called = set(re.findall(r"\b(\w+)(?:<[^;(){}]*>)?\(", "\n".join(texts)))
    members = set(re.findall(r"\.(\w+)(?:<[^;(){}]*>)?\(", "\n".join(texts)))
    for file, _ in library_page.FILES:
        if file in REFERENCE_FILES:
            continue
        sections, types, _ = library_page.read_file(ROOT / "prelude" / file)
        for name in (entry.name for _, entries in sections for entry in entries):
            if name not in called:
                yield f"{name}: called by no test"
        for owner, name in ((owner, entry.name) for owner, _, entries, _ in types for entry in entries):
            if name not in members and not owner.startswith("__"):  # what is the library's own is called by the library
                yield f"{owner}.{name}: called by no test"


def check(cases):
    """What is missing, one line each; `cases` are the lines of `reference list`."""
    return list(missing_cases(cases)) + list(missing_calls())
