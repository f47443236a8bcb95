#!/usr/bin/env python3
"""Programs on both sides of every limit on what a source may hold: limits.py SLOPE FILE

For each, the largest size that is taken and what is said of the next one; sizes of which there is no limit are tried at one size only."""
import re
import subprocess
import sys
from pathlib import Path


def lines(count, line):
    return "".join(line(i) + "\n" for i in range(count))


def nested(n):
    return "W<" * n + "T" + ">" * n


def chain(n):
    return lines(n, lambda i: f"[PrimalSubstitute(f{i + 1})] float f{i}(float x) {{ return {i} * x; }}")


def includes(n):
    """Files in one another."""
    path = Path(sys.argv[2])
    for i in range(n):
        path.with_name(f"part{i}.h").write_text(f'#include "part{i + 1}.h"\n' if i < n - 1 else "")
    return '#include "part0.h"'


def files(n):
    Path(sys.argv[2]).with_name("empty.h").write_text("")
    return '#include "empty.h"\n' * n


def derivatives(n):
    pairs = "".join(f"let p{i + 1} = diffPair(p{i}, p{i}); " for i in range(n))
    call = "fwd_diff(" * n + "f" + ")" * n + f"(p{n});"
    return "[Differentiable] float f(float x) { return x; } void main() { let p0 = 1.0; " + pairs + call + " }"


LIMITS = {  # the command, the largest n, the program for n
    "parentheses": ("check", 598, lambda n: "int f() { return " + "(" * n + "1" + ")" * n + "; }"),
    "terms": ("check", 4000, lambda n: "int f(int x) { return " + "+".join(["x"] * n) + "; }"),
    "aliases that need each other": ("check", 400, lambda n: lines(n, lambda i: f"typealias A{i} = A{i + 1};") + f"typealias A{n} = int;"),
    "constants that need each other": (
        "check", 400, lambda n: lines(n, lambda i: f"static const int c{i} = c{i + 1} + 1;") + f"static const int c{n} = 1;"),
    "interfaces": ("check", 50, lambda n: "interface I0 {}\n" + lines(n, lambda i: f"interface I{i + 1} : I{i} {{}}")),
    "overloads": ("check", 4000, lambda n: "".join(
        f"struct S{i} {{}}; void f(S{i} s) {{}}\n" for i in range(n)) + "void g(S0 s) { f(s); }"),
    "substitutions": ("check", 400, lambda n: "struct W<T> {}\ntypealias A0<T> = T;\n" + lines(
        n, lambda i: f"typealias A{i + 1}<T> = W<A{i}<T>>;") + f"void g<T>() {{ A{n}<T> x; }} void f() {{ g<int>(); }}"),
    "structs in structs": ("dump", 299, lambda n: "struct S0 { int x; }\n" + lines(
        n, lambda i: f"struct S{i + 1} {{ S{i} s; }}") + f"int f(S{n} s) {{ return 1; }}"),
    "parts of a struct": ("dump", 65535, lambda n: f"struct P {{ int a; }}; struct S {{ P b; int x{', x'.join(str(i) for i in range(n - 1))}; }}"
                          + ";\nint f(S s) { return 1; }"),
    "nested arguments": ("dump", 63, lambda n: "struct W<T> {}; int g<T>(T t) { return 1; } int f() { "
                         + nested(n).replace("T", "int") + " w; return g(w); }"),
    "calls of macros": ("check", 200, lambda n: "#define F(x) x\nint a = " + "F(" * n + "1" + ")" * n + ";"),
    "files in files": ("check", 64, includes),
    "files": ("check", 5000, files),
    "tokens": ("check", (1 << 22) - 1, lambda n: f"#define A {';' * 4096}\n" + "A " * (n // 4096) + ";" * (n % 4096)),
    "tokens of a macro": ("check", 999999, lambda n: f"#define A {';' * n}\nA"),
    "characters that are not allowed": ("check", 10, lambda n: lines(n, lambda i: f"int a{i} = \u00a4;")),
    "derivatives of derivatives": ("check", 8, derivatives),
    "conditions": ("check", 200, lambda n: "#if " + "(" * n + "1" + ")" * n + "\n#endif"),
}
FREE = {
    "generic arguments": ("check", lambda n: f"struct S<T{', T'.join(str(i) for i in range(n))}> {{ T{n - 1} x; }}\n"
                          + f"int f() {{ S<{', '.join(['int'] * n)}> s; return s.x; }}"),
    "comparisons": ("check", lambda n: "bool f(int a) { return " + " && ".join(f"a < {i}" for i in range(n)) + "; }"),
    "substitutes": ("check", lambda n: chain(n) + f"[Differentiable] float f{n}(float x) {{ return x; }}\n"
                    + "[Differentiable] float g(float x) { return f0(x); }"),
    "namespaces that use each other": ("check", lambda n: f"namespace N{n} {{ int deep() {{ return 7; }} using namespace N0; }}\n" + "".join(
        f"namespace N{i} {{ using namespace N{i + 1}; }}\n" for i in reversed(range(n))) + "using namespace N0; int f() { return deep(); }"),
    "parts of a tuple": ("check", lambda n: "int f() { let t = makeTuple(1, 2); let u = t." + "_0_1" * n + "; return u._1; }"),
}
NUMBERS = {"generic arguments": 3000, "comparisons": 3000, "substitutes": 40, "namespaces that use each other": 40, "parts of a tuple": 20}


def answer(command, text):
    with open(sys.argv[2], "w") as file:
        file.write(text + "\n")
    result = subprocess.run([sys.argv[1], command, sys.argv[2]], capture_output=True, text=True, errors="replace")
    if result.returncode not in (0, 1):
        return f"exit status {result.returncode}"
    return " ".join(dict.fromkeys(re.findall(r" error (E\d+)", result.stderr))) or "fine"


def main():
    for name, (command, most, program) in LIMITS.items():
        print(f"{name}: {most} {answer(command, program(most))}, {most + 1} {answer(command, program(most + 1))}")
    for name, (command, program) in FREE.items():
        print(f"{name}: {NUMBERS[name]} {answer(command, program(NUMBERS[name]))}")


if __name__ == "__main__":
    main()
