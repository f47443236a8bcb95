#!/usr/bin/env python3
"""Makes docs/library.md from the documentation comments of prelude/.

    scripts/library_page.py            writes the page
    scripts/library_page.py --check    says what is wrong: a page that is not current, functions without a comment

Functions of one name are one entry; the comment stands before the first of them. Names that start with two underscores are
the library's own.
"""
import re
from pathlib import Path

import made

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "library.md"
FILES = [("math.slang", "Mathematics"), ("special.slang", "Special functions and constants"), ("vector.slang", "Vectors and matrices"), ("bits.slang", "Bits"), ("packing.slang", "Small numbers in words"),
         ("atomic.slang", "Memory that threads share"), ("operators.slang", "Derivatives as functions"), ("sparse.slang", "Sparse Jacobians"), ("tensor.slang", "Memory with derivatives"), ("optimize.slang", "Optimisers"), ("random.slang", "Random numbers"), ("geometry.slang", "Rotations, views, spherical harmonics"), ("texture.slang", "Textures"), ("texture_1d.slang", "Textures: rows"), ("texture_2d.slang", "Textures: images"), ("texture_3d.slang", "Textures: blocks"), ("texture_cube.slang", "Textures: cubes"), ("texture_ms.slang", "Textures: several samples"), ("sampler.slang", "Textures with samplers"),
         ("torch.slang", "Tensors of PyTorch kernels"), ("slangpy.slang", "Tensors of SlangPy modules"), ("vector_coop.slang", "Cooperative vectors"), ("matrix_coop.slang", "Cooperative matrices"), ("wave.slang", "Waves"), ("wave_shapes.slang", "Waves: vectors and matrices"), ("raytracing.slang", "Ray tracing"), ("graphics.slang", "Graphics stages"), ("targets.slang", "Other targets"), ("glsl.slang", "GLSL: import glsl"), ("glsl_textures.slang", "GLSL: textures and images"), ("glsl_threads.slang", "GLSL: threads and waves"),
         ("core.slang", "Types, buffers, differentiation, the machine")]
INTRODUCTION = """# The library

Made by `scripts/library_page.py` from the comments in `prelude/`; change those.

- Functions marked ∂ can be differentiated in both modes.
- `T` is any type that the last column allows; `N`, `R` and `C` are sizes. *floats* are `half`, `float` and `double`;
  *numbers* are these and the integers.
- An integer that is passed where only floats are allowed becomes a `float`; a number that is passed where a vector is
  needed is repeated for each component.

[accuracy.md](accuracy.md) says how accurate the functions are, [layout.md](layout.md) how data is laid out in memory.

## Where a function is not smooth

| function | rule |
|---|---|
| `max(a, b)`, `min(a, b)` where a = b, or one of them is a NaN | half of the derivative goes to each side |
| `clamp(x, low, high)`, `saturate(x)` on a boundary | the derivative goes to x |
| `abs` at 0; `copysign` where x or y is 0 | 0 |
| `sqrt(x)` | 0.5 / sqrt(max(x, 1e-7)): finite |
| `rcp(x)` | -1 / max(x x, 1e-7): finite |
| `pow(x, y)` | with respect to x: y pow(x, y - 1), or 0 where that is not finite; to y: pow(x, y) log(x) for x > 0, otherwise 0 |
| `length(v)`, `distance(a, b)` where v = 0, a = b | 0 |
| `floor ceil round trunc sign step` | 0 |
| `frac`, `modf`, `fmod(x, y)` | 1 with respect to x; for `fmod` also -trunc(x / y) with respect to y |
| `?:`, `select` | the side not taken contributes nothing, not even a NaN |
"""
CONSTRAINTS = {"__BuiltinFloatingPointType": "floats", "__BuiltinArithmeticType": "numbers", "__BuiltinIntegerType": "integers",
               "__BuiltinType": "scalars", "IDifferentiable": "differentiable types"}


class Entry:
    def __init__(self, name, doc):
        self.name, self.doc, self.overloads = name, doc, []


def type_name(text):
    """A type as users write it, from what follows `struct`: parameters without constraints and defaults."""
    found = re.match(r"(?:<.*?>)? *(\w+)(<.*)?", text)
    if not found[2]:
        return found[1]
    depth, end = 0, 0
    for end, c in enumerate(found[2]):
        depth += (c == "<") - (c == ">")
        if depth == 0:
            break
    names = [re.sub(r"^let ", "", re.split(r"[:=]", part)[0].strip()) for part in split_list(found[2][1:end])]
    return f"{found[1]}<{', '.join(names)}>"


def match_back(text, end):
    """The index of the < that belongs to the > at `end`."""
    depth = 0
    for i in range(end, -1, -1):
        depth += (text[i] == ">") - (text[i] == "<")
        if depth == 0:
            return i
    return 0


def split_function(line):
    """(attributes, result, name, generics, parameters) of a line that declares a function, or None."""
    attributes = re.match(r"((?:\[[^\]]*\]\s*)*)(?:static |internal )*", line)
    rest = line[attributes.end():]
    if re.match(r"(struct|interface|extension|enum|typealias|property|associatedtype|namespace|__subscript|__init|//|\{|\})", rest):
        return None
    depth = 0
    for i, c in enumerate(rest):
        depth += (c == "<") - (c == ">" and rest[i - 1] not in "-=")
        if c == "(" and depth == 0:
            head, tail = rest[:i].rstrip(), rest[i + 1:]
            break
        if c in "{;=" and depth == 0:
            return None
    else:
        return None
    generics = ""
    if head.endswith(">"):
        at = match_back(head, len(head) - 1)
        head, generics = head[:at], head[at + 1:-1]
    words = head.split()
    if len(words) < 2 or not re.fullmatch(r"\w+", words[-1]):
        return None
    return attributes[1], " ".join(words[:-1]), words[-1], generics, parameters_of(tail)


def parameters_of(text):
    """The text of the parameters, up to the closing parenthesis."""
    depth = 1
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[:i]
    return text


def split_list(text):
    parts, depth, start = [], 0, 0
    text = text.replace("->", "  ")
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def names_of(parameters):
    """Parameters without their types; out ones keep the word."""
    return ", ".join(("out " if part.startswith("out ") else "") + part.split("=")[0].split()[-1].split("[")[0] for part in split_list(parameters))


def shape_of(overload):
    """What an overload is for: its types and shape."""
    _, result, _, generics, parameters = overload
    kinds = [CONSTRAINTS[word] for word in re.findall(r"\w+", generics) if word in CONSTRAINTS]
    types = [" ".join(part.split()[:-1]).removeprefix("out ").removeprefix("__ref ") for part in split_list(parameters)]
    text = " ".join(types)
    shape = "matrices" if "matrix<T" in text else "vectors" if "vector<T" in text else "scalars"
    if not kinds and not re.search(r"\bT\b", text):
        return None, ", ".join(types)
    if not kinds or kinds[0] == "differentiable types":
        return kinds[0] if kinds else "any type", ""
    return kinds[0], shape


def domain(entry):
    """For the last column: types, then shapes."""
    found = {}
    for overload in entry.overloads:
        kind, shape = shape_of(overload)
        if kind is None:
            found.setdefault("", []).append(f"`{shape}`" if shape else "")
        elif shape not in found.setdefault(kind, []):
            found[kind].append(shape)
    if "numbers" in found and "floats" in found and set(found["floats"]) <= set(found["numbers"]):
        del found["floats"]
    texts = [": ".join(filter(None, [kind, ", ".join(dict.fromkeys(s for s in shapes if s))])) for kind, shapes in found.items()]
    mark = "∂ " if any("Differentiable" in overload[0] for overload in entry.overloads) else ""
    return mark + "; ".join(text for text in texts if text)


def read_file(path):
    """(heading, entries) of the free functions, then (type, its comment, entries, word) of types; and what lacks a comment."""
    sections, types, missing = [["", []]], [], []
    doc, place = "", None
    for line in path.read_text().splitlines():
        stripped = line.strip()
        if stripped.startswith("//  ----"):
            sections.append([stripped[8:].strip(), []])
            doc = ""
            continue
        if stripped.startswith("///"):
            doc = stripped[3:].strip()
            continue
        opened = re.match(r"(?:\[\w+\] )*(?:public )?(struct|interface|extension)\b(.*)", line)
        if opened and not line.rstrip().endswith("}"):
            place = [type_name(opened[2]), doc, [], opened[1]]
            types.append(place)
            doc = ""
            continue
        if line.startswith("}"):
            place = None
        depth = len(line) - len(line.lstrip())
        function = split_function(stripped) if stripped and depth == (4 if place else 0) else None
        if function:
            wants_doc = not place or place[1] or place[3] == "interface"
            add_function(place[2] if place else sections[-1][1], function, doc, missing if wants_doc else [], path.name)
        if stripped not in ("", "{"):
            doc = "" if function or not stripped.startswith("[") else doc
    return sections, types, missing


def add_function(entries, function, doc, missing, file):
    name = function[2]
    if name.startswith("__") or name == "operator":
        return
    entry = next((entry for entry in reversed(entries) if entry.name == name and not doc), None)
    if not entry:
        if not doc:
            missing.append(f"prelude/{file}: {name} has no documentation comment")
        entry = Entry(name, doc)
        entries.append(entry)
    entry.overloads.append(function)


def forms(entry):
    """The ways to call it, the shortest first."""
    texts = dict.fromkeys(f"`{entry.name}({names_of(overload[4])})`" for overload in entry.overloads)
    return ", ".join(sorted(texts, key=len)[:2])


def table(entries):
    lines = ["| function | what it does | for |", "|---|---|---|"]
    return lines + [f"| {forms(entry)} | {escape(entry.doc)} | {domain(entry)} |".replace("  |", " |") for entry in entries]


def member_table(entries):
    return ["| member | what it does |", "|---|---|"] + [f"| {forms(entry)} | {escape(entry.doc)} |" for entry in entries]


def escape(text):
    return text.replace("|", "\\|")


def make_page():
    lines, missing = [INTRODUCTION], []
    for file, title in FILES:
        sections, types, lacking = read_file(ROOT / "prelude" / file)
        missing += lacking
        lines += [f"## {title}", ""]
        for heading, entries in sections:
            if entries:
                lines += ([f"### {heading[0].upper() + heading[1:]}", ""] if heading else []) + table(entries) + [""]
        for name, doc, entries, kind in types:
            shown = [entry for entry in entries if entry.doc]
            if shown and (doc or kind == "extension"):
                lines += [f"### {'Also in ' if kind == 'extension' else ''}`{name}`", ""] + ([doc, ""] if doc else []) + member_table(shown) + [""]
    return "\n".join(lines).rstrip() + "\n", missing


def check():
    """What is wrong, one line each."""
    page, missing = make_page()
    current = PAGE.read_text() if PAGE.exists() else ""
    return missing + ([] if current == page else ["docs/library.md is not current: run scripts/library_page.py"])


def write():
    page, missing = make_page()
    PAGE.write_text(page)
    return missing


if __name__ == "__main__":
    made.run(write, check)
