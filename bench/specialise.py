#!/usr/bin/env python3
"""How the time to compile grows with the number of specialisations: programs that need 10, 100 and 1000 of them.

Each shape makes them in another way: a function over numbers, a struct over types with methods and conformances, types behind
an interface, a function over packs, a chain of functions each of which specialises the next. A row shows the milliseconds for
each number, less those of the same program with none, and what one specialisation costs; the last column is the cost of one
among a thousand over the cost of one among a hundred: 1 is linear.

    bench/specialise.py [--build DIR] [--print SHAPE COUNT] [COMMAND...]      commands: check lower run; default: all
"""
import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COUNTS = (0, 10, 100, 1000)
COMMANDS = {"check": ["check"], "lower": ["dump", "--after", "lower"], "run": ["run", "-O1"]}


def values(count):
    """One function, a number as argument: f<0>(x), f<1>(x), ..."""
    yield "int work<let N : int>(int x) { int a[N + 1] = {}; for (int i = 0; i <= N; i++) a[i] = x * i; return a[N] + N; }"
    yield "void main() { int s = 0;"
    yield from (f"    s += work<{i}>(s);" for i in range(count))
    yield '    printf("%d\\n", s); }'


def types(count):
    """One generic struct and a generic function, a struct as argument that conforms to an interface."""
    yield "interface IItem { float weight(); static int id(); }"
    yield "struct Box<T : IItem> { T item; float scaled(float k) { return item.weight() * k + T.id(); } }"
    yield "float use<T : IItem>(T t, float k) { Box<T> b = { t }; return b.scaled(k) + t.weight(); }"
    for i in range(count):
        yield f"struct S{i} : IItem {{ float x; float weight() {{ return x * {i}; }} static int id() {{ return {i}; }} }}"
    yield "void main() { float s = 0;"
    yield from (f"    S{i} v{i} = {{ s }}; s += use(v{i}, 0.5);" for i in range(count))
    yield '    printf("%g\\n", s); }'


def dynamic(count):
    """As many types behind one interface, all called through values of it."""
    yield "interface IItem { float weight(); }"
    yield "struct T<let N : int> : IItem { float x; float weight() { return x * N; } }"
    yield "float use(IItem i) { return i.weight(); }"
    yield "void main() { float s = 1;"
    yield from (f"    T<{i}> v{i} = {{ s }}; s += use(v{i});" for i in range(count))
    yield '    printf("%g\\n", s); }'


def packs(count):
    """A function over packs of different numbers and orders of types."""
    kinds = ("1", "2.0", "3u", "true")
    yield "void add(inout float s, float x) { s += x; }"
    yield "float sum<each T>(expand each T v) where each T : __BuiltinType { float s = 0; expand add(s, one(each v)); return s; }"
    yield "float one<T : __BuiltinType>(T x) { return sizeof(T); }"
    yield "void main() { float s = 0;"
    for i in range(count):
        arguments = [kinds[i >> 2 * k & 3] for k in range(6)]
        yield f"    s += sum({', '.join(arguments)});"
    yield '    printf("%g\\n", s); }'


def chain(count):
    """Each function specialises the one before it with its own argument."""
    yield "T work0<T : __BuiltinArithmeticType>(T x) { return x + T(1); }"
    for i in range(1, count + 1):
        yield f"T work{i}<T : __BuiltinArithmeticType>(T x) {{ T y = x * T({i}); return work{i - 1}(y - x); }}"
    yield f'void main() {{ printf("%d %g\\n", work{count}(3), work{count}(2.5)); }}'


SHAPES = {shape.__name__: shape for shape in (values, types, dynamic, packs, chain)}


def measure(slope, command, path):
    """The best of three runs, in milliseconds."""
    best = None
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([slope, command[0], str(path), *command[1:]], capture_output=True)
        spent = (time.perf_counter() - start) * 1000
        if done.returncode:
            sys.exit(f"{path.name}: {done.stderr.decode(errors='replace')[:2000]}")
        best = spent if best is None else min(best, spent)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build")
    parser.add_argument("--print", nargs=2, metavar=("SHAPE", "COUNT"))
    parser.add_argument("commands", nargs="*")
    options = parser.parse_args()
    if options.print:
        print("\n".join(SHAPES[options.print[0]](int(options.print[1]))))
        return 0
    slope = str(Path(options.build).resolve() / "slope")
    print(f"{'':16}" + "".join(f"{count:>17}" for count in COUNTS[1:]) + "  growth")
    with tempfile.TemporaryDirectory() as folder:
        for command in options.commands or COMMANDS:
            for name, shape in SHAPES.items():
                row = []
                for count in COUNTS:
                    path = Path(folder) / f"{name}{count}.slang"
                    path.write_text("\n".join(shape(count)) + "\n")
                    row.append(measure(slope, COMMANDS[command], path))
                spent = [max(ms - row[0], 0.001) for ms in row[1:]]
                each = [ms * 1000 / count for ms, count in zip(spent, COUNTS[1:])]
                cells = "".join(f"{ms:7.1f} ms {us:4.0f} us" for ms, us in zip(spent, each))
                print(f"{command:6} {name:8} {cells}{each[2] / each[1]:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
