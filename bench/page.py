#!/usr/bin/env python3
"""Writes the figures of a run into the tables of docs/benchmarks.md: those of its machine, and what C takes if it was measured.

    bench/page.py FILE.json...     as `bench/run.py --through-c --json FILE` writes them; then scripts/pictures.py --benchmarks docs/pictures
"""
import json
import re
import sys

import run

PAGE = run.HERE.parent / "docs" / "benchmarks.md"
TABLES = {"aarch64": "arm64 server", "x86_64": "x86-64 server"}  # the line above the table of a machine begins so
COLUMNS = ("primal/C", "gradient/primal", "gradient/C", "forward/primal")
THROUGH_C = ("C by gcc", "C by clang")


def cell(name, column, value):
    shown = f"{value:.2f}"
    return shown + (" !" if float(shown) > run.target_of(name, column) else "")


def cells(report, name, columns):
    """Of a row, float and then double; None where one was not measured."""
    rows = [report["derivatives"].get(precision, {}).get(name, {}).get("ratios", {}).get("time", {}) for precision in run.PRECISIONS]
    return [cell(name, column, row[column]) if column in row else None for row in rows for column in columns]


def replace_rows(lines, begin, report, columns, offset):
    """From the first table after line `begin` on, the cells from `offset` on."""
    at = next(i for i in range(begin, len(lines)) if lines[i].startswith("|"))
    while at < len(lines) and lines[at].startswith("|"):
        old = [part.strip() for part in lines[at].strip("|\n").split("|")]
        if old[0] in run.ROWS:
            for i, new in enumerate(cells(report, old[0], columns)):
                old[1 + offset + i] = new or old[1 + offset + i]
            lines[at] = "| " + " | ".join(old) + " |"
        at += 1


def main():
    lines = PAGE.read_text().split("\n")
    for path in sys.argv[1:]:
        report = json.loads(open(path, encoding="utf-8").read())
        machine = report["machine"]
        replace_rows(lines, next(i for i, line in enumerate(lines) if line.startswith(TABLES[machine])), report, COLUMNS, 0)
        through_c = next(i for i, line in enumerate(lines) if re.match(r"### Through C", line))
        replace_rows(lines, through_c, report, THROUGH_C, 4 if machine == "x86_64" else 0)
    PAGE.write_text("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    main()
