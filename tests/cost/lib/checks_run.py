#!/usr/bin/env python3
"""checks_run.py SLOPE FILE: how often indices are tested one by one while kernels run whose buffers are just large enough, by their C.

A line `NEST name(...) ... // A, B` says of name_once, name_forward and name_reverse how many elements A and B have, by n and m. Told are the kernels that test some, for any of
a few n and m, more than a few: the copy of a nest with checks runs though all is in range, or there is no other."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = [(7, 3), (40, 12), (70, 33), (1, 1), (0, 0)]

MAIN = r"""
#include <stdio.h>
static void renew(Buffer_float *b, uint64_t count) {
    free(b->data);
    b->count = count;
    b->data = calloc(count + 1, sizeof(float));
    for (uint64_t i = 0; i < count; i++) b->data[i] = 1.0f / 64;
}
static void try_one(const char *name, void (*kernel)(uint32_t, uint32_t, uint32_t), int the_n, int the_m, uint64_t a, uint64_t b) {
    n = the_n, m = the_m, checks = 0;
    renew(&A, a), renew(&dA, a), renew(&B, b), renew(&dB, b), renew(&R, 1);
    kernel(1, 1, 1);
    if (checks > 8) printf("%s n=%d m=%d: %ld\n", name, n, m, checks);
}
"""


def main():
    slope, path = sys.argv[1:3]
    rows = re.findall(r"^NEST (\w+)\(.*?// (.+)$", Path(path).read_text(), re.M)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "nests.c")
        subprocess.run([slope, "build", path, "-target", "c", "-o", source], check=True)
        text, found = re.subn(r"SLOPE_LIKELY\(\(uint64_t\)i < b\.count\)", "(checks++, (uint64_t)i < b.count)", source.read_text())
        assert found > 1
        text = "static long checks;\n" + text + MAIN + "int main(void) {\n"
        for name, elements in rows:
            for kind in ("once", "forward", "reverse"):
                for n, m in SIZES:
                    sizes = [max(0, size) for size in eval(elements, {"max": max, "min": min}, {"n": n, "m": m})]
                    text += f'    try_one("{name}_{kind}", {name}_{kind}, {n}, {m}, {sizes[0]}, {sizes[1]});\n'
        source.write_text(text + "}\n")
        program = Path(folder, "nests")
        subprocess.run(["cc", "-O0", "-w", source, "-o", program, "-lm"], check=True)
        lines = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True).stdout.splitlines()
    if "-v" in sys.argv:
        print(*lines, sep="\n")
    print(f"{len(rows)} nests; with tests when run:", " ".join(sorted({line.split()[0] for line in lines})) or "none")


main()
