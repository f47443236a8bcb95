#!/usr/bin/env python3
"""Runs the examples of a page, beyond what scripts/docs_test.py does: what is printed must be what the comments behind the printf lines say;
a block without `main` must be free of errors, a ```slang error block must have the errors named in its comments.
A comment <!-- run: OPTIONS --> after a block makes it run with these.

    examples.py SLOPE PAGE
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```slang( error)?\n(.*?)^```\n(?:<!-- run: (.*?) -->)?", re.MULTILINE | re.DOTALL)


def expected_of(code):
    return re.findall(r"^.*\bprintf\(.*\); *// (.*)$", code, re.MULTILINE)


def try_block(slope, folder, code, is_error, options):
    """None, or what is wrong."""
    path = Path(folder) / "example.slang"
    path.write_text(code)
    runs = "void main()" in code or options
    result = subprocess.run([slope, "run" if runs else "check", str(path), *options.split()], capture_output=True, text=True)
    if is_error:
        wanted, found = re.findall(r"// error (E\d+)", code), re.findall(r": error (E\d+):", result.stderr)
        return None if wanted and wanted == found else f"errors {found}, not {wanted}"
    if result.returncode or result.stderr:
        return f"exit status {result.returncode}\n{result.stderr}"
    wanted, found = expected_of(code), result.stdout.splitlines()
    return None if wanted == found and (wanted or not runs) else f"prints {found}, not {wanted}"


def main():
    slope, page = sys.argv[1], Path(sys.argv[2]).read_text()
    right = wrong = 0
    with tempfile.TemporaryDirectory(prefix="slope-docs-") as folder:
        for found in BLOCK.finditer(page):
            problem = try_block(slope, folder, found[2], found[1], found[3] or "")
            right, wrong = right + (problem is None), wrong + (problem is not None)
            if problem:
                print(f"{sys.argv[2]}:{page.count(chr(10), 0, found.start()) + 1}: {problem}")
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
