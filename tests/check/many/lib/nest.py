#!/usr/bin/env python3
"""Writes programs that are nested deeply and tells how often and how `slope check` complains: nest.py SLOPE FILE"""
import re
import subprocess
import sys

N = 10000
PROGRAMS = {
    "parentheses": "int f() { return " + "(" * N + "1" + ")" * N + "; }",
    "blocks": "void f()" + "{" * N + "}" * N,
    "branches": "int f(int x) { " + "else ".join(f"if (x == {i}) return {i}; " for i in range(N)) + "return 0; }",
    "choices": "int f(int x) { return " + "".join(f"x == {i} ? {i} : " for i in range(N)) + "0; }",
    "exits": "[Differentiable] float f(float x, int k) { " + "".join(f"if (k == {i}) return x; " for i in range(N)) + "return 0; }",
    "vectors": "float3 f(bool3 b, float3 v) { return " + "b ? v : " * 303 + "v; }",
    "fewer vectors": "float3 f(bool3 b, float3 v) { return " + "b ? v : " * 302 + "v; }",
    "operators": "int f(int x) { return " + "-~" * N + "x; }",
    "arguments": "struct S<T> { T x; }\nvoid f() { " + "S<" * N + "int" + ">" * N + " s; }",
    "lists": "int f() { int a = " + "{" * N + "1" + "}" * N + "; return a; }",
    "loops": "void f() { " + "while (true) " * N + "; }",
    "lambdas": "void f() { let a = " + "(int x) => " * N + "x; }",
    "namespaces": "namespace A { " * N + "}" * N,
    "structs": "struct A { " * N + "}" * N,
    "conditions": "#if " + "(" * N + "1" + ")" * N + "\n#endif\n",
    "interfaces": "interface I0 {}\n" + "".join(f"interface I{i} : I{i - 1} {{}}\n" for i in range(1, 60)),
    "flat": "enum E { " + ",".join(f"c{i}" for i in range(N)) + " }\n" + "\n".join(
        f"struct S{i} {{ {'int' if i == 0 else f'S{i - 1}'} a; }}" for i in range(300)),
}


def main():
    for name, text in PROGRAMS.items():
        with open(sys.argv[2], "w") as file:
            file.write(text + "\n")
        result = subprocess.run([sys.argv[1], "check", sys.argv[2]], capture_output=True, text=True, errors="replace")
        found = re.findall(r": error E\d+: this (?:is |expression has )?(.*?)(?:;.*)?$", result.stderr, re.MULTILINE)
        wrong = "" if result.returncode in (0, 1) else f" exit status {result.returncode}"
        print(f"{name} {len(found)}: {found[0] if found else ''}{wrong}".rstrip())


if __name__ == "__main__":
    main()
