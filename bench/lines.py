#!/usr/bin/env python3
"""How the work of compiling grows with the length of a program: generated sources of 1000 to 64000 lines, of two dozen shapes.

Each shape stresses something else: many small declarations, one long function, one long table, types that refer to each other, and so on. Instructions are
counted (by perf, or by valgrind where the processor does not let it), so that the machine may be busy. A row shows the instructions for a line at each
length, and how much more a line costs in a program that is four times as long, at most: 1 is linear, above 1.3 it fails.

    bench/lines.py [--build DIR] [--longest N] [--shape NAME]... [--print SHAPE LINES] [COMMAND...]       commands: check lower passes
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LENGTHS = (1000, 4000, 16000, 64000)


def functions(lines):
    """Structs, constants and functions of a few lines that call each other."""
    yield "struct Part0 { float a; int n; float3 v; }"
    yield "float work0(Part0 p, float x) { return p.a * x + p.n; }"
    for i in range(1, lines // 8):
        yield f"struct Part{i} {{ float a; int n; float3 v = {i}; Part{max(i - 1, 0) if i % 5 else 0}* before; }}"
        yield f"static const float limit{i} = {i} * 0.5 + {f'limit{i - 1}' if i % 7 and i > 1 else 1};"
        yield f"float work{i}(Part{i} p, float x)"
        yield "{"
        yield f"    float3 v = p.v * x + float3(limit{i}, p.n, {i});"
        yield f"    Part0 inner = {{ v.x, {i % 13} }};"
        yield f"    for (int k = 0; k < {i % 4 + 1}; k++) v.yz += k; if (v.x > {i}) v.x -= work0(inner, v.y);"
        yield "    return v.x + v.y * v.z; }"
    last = lines // 8 - 1
    yield f"void main() {{ Part{last} p = {{}}; printf(\"%g\\n\", work{last}(p, 2)); }}"


def straight(lines):
    """One function with a statement per line."""
    yield "void main() { float x = 1; float3 v = 2; int n = 3; float a[16] = {};"
    kinds = ["x = x * 0.999 + {i};", "v = v.zxy + x;", "n = (n * 31 + {i}) % 1009;", "a[n & 15] += v.x;", "float t{i} = a[{i} & 15] + x;"]
    for i in range(lines):
        yield "    " + kinds[i % len(kinds)].format(i=i)
    yield "    printf(\"%g %g %d\\n\", x, v.y, n); }"


def table(lines):
    """A constant with an entry per line."""
    yield "struct Entry { int key; float3 value; int next[2]; }"
    yield "static const Entry table[] = {"
    for i in range(lines):
        yield f"    {{ {i}, float3({i}, {i}.5, 1), {{ {i + 1}, {i - 1} }} }},"
    yield "};"
    yield "void main() { int s = 0; for (int i = 0; i < table.getCount(); i++) s += table[i].next[i & 1]; printf(\"%d\\n\", s); }"


def branches(lines):
    """A switch with a case per line, then ifs."""
    yield "int choose(int x) { switch (x) {"
    for i in range(lines // 2):
        yield f"    case {i}: x += {i * 7 % 101}; break;"
    yield "    }"
    for i in range(lines // 2):
        yield f"    if (x == {i * 3}) x += 1; else x ^= {i % 5};"
    yield "    return x; }"
    yield "void main() { printf(\"%d\\n\", choose(77)); }"


def backwards(lines):
    """Everything is declared after its use: constants, functions, struct fields, aliases, enum cases."""
    yield "void main() { S0 s = {}; printf(\"%d %d\\n\", f0(1), s.n); }"
    count = lines // 5
    for i in range(count):
        end = i + 1 == count
        yield f"static const int c{i} = {'1' if end or i % 50 == 49 else f'c{i + 1} % 1000 + 1'};"
        yield f"int f{i}(int x) {{ return x > {count} ? c{i} : {'x' if end else f'f{i + 1}(x + c{i} % 2)'}; }}"
        yield f"struct S{i} {{ {'int m;' if i % 50 == 49 or end else f'S{i + 1} m;'} int n = c{i}; }}"
        yield f"typedef {'int' if i % 50 == 49 or end else f'T{i + 1}'} T{i};"
        yield f"enum E{i} {{ A = {0 if end else f'E{i + 1}.A % 7 + 1' if i % 50 != 49 else 1}, B }}"


def fields(lines):
    """A struct with a field per line, and a function that uses some."""
    yield "struct S {"
    for i in range(lines):
        yield f"    {('float', 'int', 'float3')[i % 3]} f{i};"
    yield "}"
    yield f"void main() {{ S s = {{}}; s.f{lines - 1 - lines % 3} = 1; printf(\"%d\\n\", s.f1); }}"


def warnings(lines):
    """A warning per line."""
    yield "void main() {"
    for i in range(lines):
        yield f"    int unused{i} = {i}; {{ int x = 1.5; }}"
    yield "}"


def one_line(lines):
    """Everything in one line."""
    yield "void main() { int x = 0; " + " ".join(f"x += {i};" for i in range(lines)) + " printf(\"%d\\n\", x); }"


def loops(lines):
    """A loop per line, one after the other."""
    yield "void main() { int x = 0;"
    for i in range(lines):
        yield f"    for (int i = 0; i < {i % 7}; i++) x += i;"
    yield "    printf(\"%d\\n\", x); }"


def nested_structs(lines):
    """Structs that hold one another, a hundred deep."""
    for i in range(lines):
        yield f"struct S{i} {{ {'' if i % 100 == 0 else f'S{i - 1} inner;'} int n; }}"
    yield f"void main() {{ S{lines - 1} s = {{}}; s.n = 1; printf(\"%d\\n\", s.n); }}"


def macros(lines):
    """A macro and calls of it per line."""
    yield "#define ADD(a, b) ((a) + (b))"
    yield "void main() { int x = 0;"
    for i in range(lines):
        yield f"    x = ADD(x, ADD({i}, {i % 3}));"
    yield "    printf(\"%d\\n\", x); }"


def definitions(lines):
    """Macros that are made of one another."""
    yield "#define M0 1"
    for i in range(1, lines):
        yield f"#define M{i} (M{i - 1 if i % 30 else 0} + 1)"
    yield f"void main() {{ printf(\"%d\\n\", M{lines - 1}); }}"


def uniforms(lines):
    """A uniform per line."""
    for i in range(lines):
        yield f"uniform {('float', 'int', 'float4')[i % 3]} u{i};"
    yield f"void main() {{ printf(\"%g\\n\", u0); }}"


def enums(lines):
    """An enum with a case per line."""
    yield "enum E {"
    for i in range(lines):
        yield f"    Case{i},"
    yield "}"
    yield f"void main() {{ printf(\"%d\\n\", int(E.Case{lines - 1})); }}"


def overloads(lines):
    """Overloads of a few names, by their types."""
    for i in range(lines):
        yield f"struct T{i} {{ int n; }}; int over{i % (lines // 16 + 1)}(T{i} t) {{ return t.n + {i}; }}"
    yield "void main() { T0 t = {}; printf(\"%d\\n\", over0(t)); }"


def methods(lines):
    """A struct with a method per line, each of which calls the one before."""
    yield "struct S { int n; int m0() { return n; }"
    for i in range(1, lines):
        yield f"    int m{i}() {{ return m{i - 1 if i % 20 else 0}() + {i}; }}"
    yield "}"
    yield f"void main() {{ S s = {{}}; printf(\"%d\\n\", s.m{lines - 1}()); }}"


def conformers(lines):
    """Types that conform to an interface, and a generic function on each."""
    yield "interface I { int get(); } int use<T : I>(T t) { return t.get(); }"
    for i in range(lines):
        yield f"struct C{i} : I {{ int get() {{ return {i}; }} }}; int call{i}() {{ C{i} c = {{}}; return use(c); }}"
    yield f"void main() {{ printf(\"%d\\n\", call{lines - 1}()); }}"


def derivatives(lines):
    """Differentiable functions, each with its derivative."""
    for i in range(lines // 2):
        yield f"[Differentiable] float f{i}(float x) {{ return x * {i} + sin(x); }}"
        yield f"float d{i}(float x) {{ var p = diffPair(x); bwd_diff(f{i})(p, 1.0f); return p.d; }}"
    yield "void main() { printf(\"%g\\n\", d0(1)); }"


def sums(lines):
    """Expressions of a hundred terms over several lines."""
    yield "void main() { float x = 1; float y = 0;"
    for i in range(lines):
        yield f"    {'y = ' if i % 100 == 0 else '+ '}x * {i}{';' if i % 100 == 99 or i + 1 == lines else ''}"
    yield "    printf(\"%g\\n\", y); }"


def prints(lines):
    """A text per line."""
    yield "void main() {"
    for i in range(lines):
        yield f"    printf(\"line {i} of %d\\n\", {lines});"
    yield "}"


def chain(lines, head, line, tail):
    """A function that chooses by a line for each number, and its derivatives."""
    yield f"[Differentiable] float choose(float x, int k) {{ {head}"
    for i in range(lines):
        yield f"    {line(i)}"
    yield f"    {tail} }}"
    yield from both_modes("choose")


def else_ifs(lines):
    """A chain of conditions with one per line; some leave the function."""
    leaves_or_not = lambda i: f"return x * {i};" if i % 3 == 0 else f"y = x * {i};"
    return chain(lines, "float y = x; if (k < 0) y = -x;", lambda i: f"else if (k == {i}) {leaves_or_not(i)}", "return y * y;")


def choices(lines):
    """The same as an expression."""
    return chain(lines, "return", lambda i: f"k == {i} ? x * {i} :", "x * x;")


def early_returns(lines):
    """A condition per line that leaves the function."""
    return chain(lines, "float y = x;", lambda i: f"if (k == {i}) return x * y; y += {i};", "return y;")


def unknown_names(lines):
    """A mistake per line: a name that is not declared, though one like it is."""
    for i in range(lines // 2):
        yield f"int value{i}() {{ return {i}; }}"
    for i in range(lines // 2):
        yield f"int user{i}() {{ return vaule{i}() + none{i}; }}"


def both_modes(name):
    yield f"float back(int k) {{ var p = diffPair(2.0f); bwd_diff({name})(p, k, 1.0f); return p.d; }}"
    yield f"float forth(int k) {{ return fwd_diff({name})(diffPair(2.0f, 1.0f), k).d; }}"
    yield "void main() { printf(\"%g %g\\n\", back(3), forth(3)); }"


def comments(lines):
    """Hardly any code."""
    for i in range(lines):
        yield f"// This is line {i}; it says nothing. /* Nor does this. */"
    yield "void main() {}"


SHAPES = {shape.__name__: shape for shape in (
    functions, straight, table, branches, backwards, fields, warnings, one_line, loops, nested_structs, macros, definitions, uniforms,
    enums, overloads, methods, conformers, derivatives, sums, prints, else_ifs, choices, early_returns, unknown_names, comments)}
COMMANDS = {"check": ["check"], "lower": ["dump", "--after", "lower"], "passes": ["dump"]}
WRONG = (unknown_names,)  # these have mistakes: only `check`, and all of them shown
TOO_MUCH = 1.3  # times linear


def count_by_perf(command):
    """None: it cannot count here."""
    result = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)
    found = re.search(r"^(\d+),,instructions", result.stderr, re.MULTILINE)
    if found and result.returncode > 1:
        sys.exit(f"{' '.join(command)}: status {result.returncode}\n{result.stderr[:500]}")
    return int(found[1]) if found else None


def count_by_valgrind(command):
    """By cachegrind without a cache, which takes half as long as callgrind."""
    result = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", result.stderr)
    if result.returncode > 1 or not found:
        sys.exit(f"{' '.join(command)}: status {result.returncode}\n{result.stderr[:2000]}")
    return int(found[1].replace(",", ""))


def counter():
    """Counts the instructions of a command."""
    has_perf = shutil.which("perf") and count_by_perf(["true"]) is not None
    return count_by_perf if has_perf else count_by_valgrind


def growth(counts, lengths):
    """Of the cost of a line from the shorter to the longer, at its worst; what an empty program costs is no line's."""
    costs = [(count - counts[0]) / lines for count, lines in zip(counts[1:], lengths)]
    return max(later / earlier for earlier, later in zip(costs, costs[1:]))


def measure(count, slope, command, shape, lengths, folder):
    counts = []
    for lines in (1, *lengths):
        path = Path(folder) / "program.slang"
        path.write_text("\n".join(shape(max(lines, 8))) + "\n")
        counts.append(count([slope, command[0], str(path), *command[1:]]))
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build")
    parser.add_argument("--longest", type=int, default=64000)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--print", nargs=2, metavar=("SHAPE", "LINES"))
    parser.add_argument("commands", nargs="*")
    options = parser.parse_args()
    if options.print:
        print("\n".join(SHAPES[options.print[0]](int(options.print[1]))))
        return 0
    slope, count = str(Path(options.build).resolve() / "slope"), counter()
    lengths = [lines for lines in LENGTHS if lines <= options.longest]
    failed = 0
    print(f"{'':22}" + "".join(f"{lines:>10}" for lines in lengths) + "   lines: instructions of each, and how that grows")
    with tempfile.TemporaryDirectory() as folder:
        for command in options.commands or COMMANDS:
            for name in options.shape or SHAPES:
                if SHAPES[name] in WRONG and command != "check":
                    continue
                arguments = COMMANDS[command] + ["--error-limit", "0"] * (SHAPES[name] in WRONG)
                counts = measure(count, slope, arguments, SHAPES[name], lengths, folder)
                worst = growth(counts, lengths)
                failed += worst > TOO_MUCH
                cells = "".join(f"{(n - counts[0]) / lines:10.0f}" for n, lines in zip(counts[1:], lengths))
                print(f"{command:6} {name:15}{cells}{worst:9.2f}{' !' if worst > TOO_MUCH else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
