#!/usr/bin/env python3
"""Writes a program with a switch and a condition that are wider than 65536: wide.py FILE"""
import sys

N = 66000
with open(sys.argv[1], "w") as file:
    file.write("int f(int x) {\n    switch (x) {\n")
    file.writelines(f"    case {i}: x += {i % 7}; break;\n" for i in range(N))
    file.write("    }\n    return x;\n}\nint g(int k) {\n    int s = 0;\n")
    file.writelines(f"    int v{i} = k;\n" for i in range(N))
    file.write("    if (k > 3) {\n")
    file.writelines(f"        v{i} = k + {i};\n" for i in range(N))
    file.write("    }\n")
    file.writelines(f"    s += v{i};\n" for i in range(N))
    file.write("    return s;\n}\nvoid main() { printf(\"%d %d\\n\", f(3), g(4)); }\n")
