#!/usr/bin/env python3
"""The pictures of README.md, with nothing but Python.

    pictures.py --demo SCENE.txt FOLDER    scene.png (target, start, found) and loss.svg, of what examples/scene.c --save has written
    pictures.py --benchmarks FOLDER        benchmarks.svg, of the table in docs/benchmarks.md
    pictures.py --check                    whether docs/pictures/benchmarks.svg is that of the table
"""
import math
import re
import struct
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCALE, GAP = 6, 12
TEXT = 'font-family="sans-serif" font-size="13" fill="#444"'


# ---- PNG


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows):
    """Rows of grey values, 0 to 255."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def enlarged(picture):
    rows = []
    for line in picture:
        row = [min(255, max(0, round(255 * min(value, 1) ** (1 / 2.2)))) for value in line for _ in range(SCALE)]
        rows += [row] * SCALE
    return rows


def beside(pictures):
    """Pictures of equal height in a row, white between them."""
    parts = [enlarged(picture) for picture in pictures]
    return [[value for part in parts for value in [*part[y], *[255] * GAP]][:-GAP] for y in range(len(parts[0]))]


# ---- SVG


def svg(width, height, body):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
                      f'<rect width="{width}" height="{height}" fill="white"/>', *body, "</svg>", ""])


def text(x, y, words, anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" {TEXT} text-anchor="{anchor}">{words}</text>'


def loss_curve(points):
    """The error on a logarithmic scale."""
    width, height, left, low = 480, 220, 60, 190
    logs = [math.log10(max(error, 1e-9)) for _, error in points]
    bottom, top = math.floor(min(logs)), math.ceil(max(logs))
    x = [left + (width - left - 20) * step / points[-1][0] for step, _ in points]
    y = [low - (low - 20) * (value - bottom) / (top - bottom) for value in logs]
    body = []
    for power in range(bottom, top + 1):
        at = low - (low - 20) * (power - bottom) / (top - bottom)
        body += [f'<line x1="{left}" y1="{at:g}" x2="{width - 20}" y2="{at:g}" stroke="#ddd"/>', text(left - 8, at + 4, f"1e{power}", "end")]
    body.append('<polyline fill="none" stroke="#1f6fb4" stroke-width="2" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y)) + '"/>')
    body += [text(left, height - 8, "step 0"), text(width - 20, height - 8, f"step {points[-1][0]}", "end"), text(left + 8, 16, "mean squared error of the picture")]
    return svg(width, height, body)


def figures():
    """(kernel, gradient / C in float, in double) by time, from the table; the first row of each kind."""
    page = (ROOT / "docs/benchmarks.md").read_text()
    found = {}
    for line in page.splitlines():
        cells = [cell.strip(" !") for cell in line.strip("|").split("|")]
        if len(cells) == 9 and all(re.fullmatch(r"[\d.]+", cells[at]) for at in (3, 7)):
            found.setdefault(cells[0].split("_")[0], (float(cells[3]), float(cells[7])))
    return [(name, *ratios) for name, ratios in found.items()]


def bars(rows):
    width, left, unit, step = 480, 100, 160, 36
    body = [text(left, 16, "time of the gradient, above in float, below in double; 1 is the gradient written by hand in C")]
    for index, (name, *ratios) in enumerate(rows):
        y = 28 + index * step
        body.append(text(left - 8, y + 20, name, "end"))
        for place, (ratio, colour) in enumerate(zip(ratios, ("#1f6fb4", "#7fb2dd"))):
            at = y + 15 * place
            body += [f'<rect x="{left}" y="{at}" width="{unit * ratio:.1f}" height="13" fill="{colour}"/>', text(left + unit * ratio + 6, at + 11, f"{ratio:.2f}")]
    end = 28 + len(rows) * step
    body.append(f'<line x1="{left + unit}" y1="24" x2="{left + unit}" y2="{end}" stroke="#c33" stroke-width="2"/>')
    return svg(width, end + 8, body)


# ---- all of it


def read_demo(path):
    pictures, points = {}, []
    for line in Path(path).read_text().splitlines():
        words = line.split()
        if words[0] == "error":
            points.append((int(words[1]), float(words[2])))
            continue
        width, values = int(words[1]), [float(word) for word in words[3:]]
        pictures[words[0]] = [values[at:at + width] for at in range(0, len(values), width)]
    return pictures, points


def main(arguments):
    mode = arguments[0] if arguments else ""
    if mode == "--check":
        same = (ROOT / "docs/pictures/benchmarks.svg").read_text() == bars(figures())
        print("current" if same else "docs/pictures/benchmarks.svg is not that of docs/benchmarks.md: run scripts/pictures.py --benchmarks docs/pictures")
        return 0 if same else 1
    folder = Path(arguments[-1])
    folder.mkdir(parents=True, exist_ok=True)
    if mode == "--benchmarks":
        (folder / "benchmarks.svg").write_text(bars(figures()))
    elif mode == "--demo":
        pictures, points = read_demo(arguments[1])
        (folder / "scene.png").write_bytes(png(beside([pictures[name] for name in ("target", "start", "found")])))
        (folder / "loss.svg").write_text(loss_curve(points))
        print(f"pictures of the target, the start and what was found: {folder}/scene.png; the error: {folder}/loss.svg")
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
