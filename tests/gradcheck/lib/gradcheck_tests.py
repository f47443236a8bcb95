#!/usr/bin/env python3
"""Gives the tests of derivatives and the examples to `slope gradcheck`, whatever else they are tests of.

Left out are those that must not compile, those that write derivatives of their own, which are wrong on purpose more often than not,
those whose threads exchange values, as gradcheck calls a function in one, and those that the suite gives to gradcheck anyway.

    gradcheck_tests.py SLOPE [NAME...]     only files whose path contains a NAME
"""
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OWN = re.compile(r"(Forward|Backward)Derivative|ForwardPass|deriv_method|\bdadd\(|expect: error|// error|IDifferentiablePtrType|__func_extension|\bWave\w+\(")
ANYWAY = re.compile(r"^// gradcheck\s*$", re.MULTILINE)
SECONDS = 120


def files():
    for folder in ("tests/diff", "examples"):
        for path in sorted((ROOT / folder).rglob("*.slang")):
            text = path.read_text()
            left_out = {"lib", "lost"} & set(path.parts) or path.with_suffix(".err").exists() or OWN.search(text) or ANYWAY.search(text)
            if not left_out:
                yield path


def includes(path):
    """Where it finds its modules."""
    found = re.search(r"^// args: (.*)$", path.read_text(), re.MULTILINE)
    return re.findall(r"-I ?\S+", found[1]) if found else []


def check(slope, path):
    """None, or what is wrong."""
    command = [slope, "gradcheck", "--interpret", path.name, "-w", "--samples=4", *(word for text in includes(path) for word in text.split())]
    try:
        result = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"took longer than {SECONDS} s"
    wrong = [line for line in result.stdout.splitlines() if "wrong:" in line]
    return None if result.returncode == 0 else "\n".join(wrong) + result.stderr[:2000]


def run(slope, names=()):
    """How many files are right, and a list of (name, what went wrong)."""
    chosen = [path for path in files() if not names or any(name in str(path) for name in names)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        problems = list(pool.map(lambda path: check(slope, path), chosen))
    failures = [(str(path.relative_to(ROOT)), problem) for path, problem in zip(chosen, problems) if problem is not None]
    return len(chosen) - len(failures), failures


def main():
    right, failures = run(str(Path(sys.argv[1]).resolve()), sys.argv[2:])
    for name, what in failures:
        print(f"{name}\n    {what}")
    print(f"{right} right, {len(failures)} not")
    return 1 if failures or not right else 0


if __name__ == "__main__":
    sys.exit(main())
