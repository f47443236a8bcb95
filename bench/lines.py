#!/usr/bin/env python3
"""How the time to compile grows with the length of a program: generated sources of 5000, 10000 and 20000 lines.

Each shape stresses something else: many small declarations, one long function, one long table, a long chain of branches, types
and constants that refer to each other, backwards. A row shows the milliseconds and the peak memory for each length, and the
time for the longest over that for the shortest, divided by how much longer it is: 1 is linear.

    bench/lines.py [--build DIR] [--print SHAPE LINES] [COMMAND...]       commands: check lower run; default: all
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LENGTHS = (5000, 10000, 20000)


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


SHAPES = {"functions": functions, "straight": straight, "table": table, "branches": branches, "backwards": backwards}
COMMANDS = {"check": ["check"], "lower": ["dump", "--after", "lower"], "run": ["run"]}


def measure(slope, command, path):
    """Milliseconds and MiB."""
    start = time.monotonic()
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen([slope, command[0], str(path), *command[1:]], stdout=nowhere, stderr=subprocess.PIPE)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
    elapsed = (time.monotonic() - start) * 1000
    if status:
        sys.exit(f"{' '.join(command)} {path.name}: status {os.waitstatus_to_exitcode(status)}\n{errors.decode()[:500]}")
    return elapsed, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build")
    parser.add_argument("--print", nargs=2, metavar=("SHAPE", "LINES"))
    parser.add_argument("commands", nargs="*")
    options = parser.parse_args()
    if options.print:
        print("\n".join(SHAPES[options.print[0]](int(options.print[1]))))
        return 0
    slope = str(Path(options.build).resolve() / "slope")
    print(f"{'':18}" + "".join(f"{lines:>8} lines" + " " * 9 for lines in LENGTHS) + "growth")
    with tempfile.TemporaryDirectory() as folder:
        for command in options.commands or COMMANDS:
            for name, shape in SHAPES.items():
                row = []
                for lines in LENGTHS:
                    path = Path(folder) / f"{name}{lines}.slang"
                    path.write_text("\n".join(shape(lines)) + "\n")
                    row.append(measure(slope, COMMANDS[command], path))
                growth = row[-1][0] / row[0][0] / (LENGTHS[-1] / LENGTHS[0])
                cells = "".join(f"{ms:9.0f} ms {mib:6.0f} MiB" for ms, mib in row)
                print(f"{command:6} {name:11}{cells}{growth:9.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
