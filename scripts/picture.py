#!/usr/bin/env python3
"""Draws docs/structure.svg: the folders of src/ and which of them include which, from the sources themselves.

    scripts/picture.py            writes the picture
    scripts/picture.py --check    says whether it is current

A folder stands below everything that includes it. Its description is the first sentence of its header. An arrow that other
arrows imply (driver to type, where driver goes to ir and ir to type) is left out.
"""
import re
from html import escape
from pathlib import Path

import made

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "structure.svg"
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 205, 62, 26, 46, 20
LINE_LENGTH = 30  # characters of a description that fit beside each other


def description(folder):
    """The first sentence of the header that begins with the folder's name."""
    texts = (re.sub(r"\n \* ?", " ", path.read_text()) for path in sorted((ROOT / "src" / folder).glob("*.h")))
    found = [match[1] for text in texts for match in [re.match(rf"/\* {folder}: (.+?)[.:](?:\s|$)", text)] if match]
    return found[0]


def includes(folder):
    others = set()
    for path in (ROOT / "src" / folder).rglob("*.[ch]"):
        names = re.findall(r'^#include "(?:(\w+)/\w|(slope\.h))', path.read_text(), re.MULTILINE)
        others |= {"driver" if public else other for other, public in names}
    return others - {folder}


def read():
    """Every folder with those it includes; the command line includes the driver by its public header."""
    folders = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())
    graph = {folder: includes(folder) & set(folders) for folder in folders}
    graph["driver"] -= {"gradcheck", "cli"}
    return graph


def reach(graph, folder):
    below = set()
    for other in graph[folder]:
        below |= {other} | reach(graph, other)
    return below


def essential(graph):
    return {folder: {other for other in others if not any(other in reach(graph, between) for between in others)}
            for folder, others in graph.items()}


def levels(graph, above):
    """How far down each folder is: one row below the lowest of those that include it."""
    level = {}

    def depth(folder):
        if folder not in level:
            level[folder] = 1 + max((depth(other) for other in above[folder]), default=-1)
        return level[folder]
    for folder in graph:
        depth(folder)
    return level


def columns(row, wanted):
    """Each folder of a row near where it is wanted, none upon another: from left to right, then all moved back."""
    found, last = {}, None
    for folder in row:
        found[folder] = last = wanted[folder] if last is None else max(wanted[folder], last + 1)
    excess = sum(found[folder] - wanted[folder] for folder in row) / len(row)
    return {folder: place - excess for folder, place in found.items()}


def places(graph):
    """The corner of every box, in the middle below those that include it, and the size of it all."""
    above = {folder: [other for other in graph if folder in graph[other]] for folder in graph}
    level, column = levels(graph, above), {}
    for number in range(max(level.values()) + 1):
        members = [folder for folder in graph if level[folder] == number]
        wanted = {folder: sum(column[other] for other in above[folder]) / max(1, len(above[folder])) for folder in members}
        row = sorted(members, key=lambda folder: (wanted[folder], -len(reach(graph, folder)), folder))
        column.update(columns(row, wanted))
    left, right = min(column.values()), max(column.values())
    found = {folder: (round(MARGIN + (column[folder] - left) * (WIDTH + GAP_X)), MARGIN + level[folder] * (HEIGHT + GAP_Y))
             for folder in graph}
    lowest = max(level.values())
    return found, (round(2 * MARGIN + (right - left) * (WIDTH + GAP_X) + WIDTH), 2 * MARGIN + lowest * (HEIGHT + GAP_Y) + HEIGHT)


def wrapped(text):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= LINE_LENGTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines if len(lines) <= 2 else [lines[0], lines[1] + " ..."]


def box(folder, x, y):
    yield f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
    yield f'<text class="name" x="{x + 10:g}" y="{y + 20:g}">{folder}</text>'
    for number, line in enumerate(wrapped(description(folder))):
        yield f'<text x="{x + 10:g}" y="{y + 36 + 14 * number:g}">{escape(line)}</text>'


def arrow(start, end):
    x, y, to_x, to_y = start[0] + WIDTH / 2, start[1] + HEIGHT, end[0] + WIDTH / 2, end[1] - 2
    bend = min(40, (to_y - y) / 2)
    return f'<path d="M{x:g} {y:g} C{x:g} {y + bend:g} {to_x:g} {to_y - bend:g} {to_x:g} {to_y:g}"/>'


STYLE = """<style>
rect { fill: #f4f6f8; stroke: #44546a; }
text { font: 11px sans-serif; fill: #44546a; }
text.name { font: bold 14px sans-serif; fill: #1b2a41; }
path { fill: none; stroke: #7f8fa6; marker-end: url(#tip); }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0 0 8 4 0 8" fill="#7f8fa6"/></marker></defs>"""


def make():
    graph = read()
    arrows = essential(graph)
    corners, (width, height) = places(arrows)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">',
             STYLE, f'<rect x="0" y="0" width="{width:g}" height="{height:g}" style="fill: white; stroke: none"/>']
    for folder, others in sorted(arrows.items()):
        lines += [arrow(corners[folder], corners[other]) for other in sorted(others)]
    for folder in sorted(graph):
        lines += box(folder, *corners[folder])
    return "\n".join(lines + ["</svg>"]) + "\n"


def check():
    current = PICTURE.read_text() if PICTURE.exists() else ""
    return [] if current == make() else ["docs/structure.svg is not current; run scripts/picture.py"]


def write():
    PICTURE.write_text(make())


if __name__ == "__main__":
    made.run(write, check)
