#!/usr/bin/env python3
"""Makes docs/messages.md, the page of every error and warning, from src/diag/diag.def and src/diag/explain.def.

    scripts/messages_page.py            writes the page
    scripts/messages_page.py --check    says what is wrong: a page that is not current, an explanation of a code that does not exist
"""
import ast
import re
from pathlib import Path

import made

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "messages.md"
STRING = r'"(?:[^"\\]|\\.)*"'
STRINGS = rf"{STRING}(?:\s*{STRING})*"
ROW = re.compile(rf"^DIAG\((\w+), (error|warning), (\d+),\s*({STRINGS})\)", re.MULTILINE)
EXPLANATION = re.compile(rf"^EXPLAIN\((\d+),\s*({STRINGS}),\s*({STRINGS}),\s*({STRINGS})\)", re.MULTILINE)
CHAPTERS = {1: "Characters, literals, macros", 2: "Grammar", 3: "Names, types, calls, statements", 4: "Generics, interfaces, modules",
            5: "Differentiation", 6: "Making code", 7: "Running"}
HEAD = """# Messages

Every error and warning of Slope, by its code; `slope explain E5102` prints the same. A `%s` or `%d` stands for what the
message names. Codes never change their meaning.

Made by `scripts/messages_page.py` from `src/diag/diag.def` and `src/diag/explain.def`; change those.
"""


def text_of(literals):
    return "".join(ast.literal_eval(part) for part in re.findall(STRING, literals))


def read():
    rows = [(int(code), severity, text_of(text)) for _, severity, code, text in ROW.findall((ROOT / "src/diag/diag.def").read_text())]
    explained = {int(code): tuple(text_of(part) for part in parts)
                 for code, *parts in EXPLANATION.findall((ROOT / "src/diag/explain.def").read_text())}
    return sorted(rows), explained


def entry(code, severity, text, explanation):
    letter = "E" if severity == "error" else "W"
    if not explanation:
        return f"- **{letter}{code}** {text}\n"
    cause, example, remedy = explanation
    block = f"\n```slang error\n{example}```\n" if severity == "error" else f"\n```\n{example}```\n"
    return f"\n### {letter}{code}\n\n{text}\n\n{cause}\n{block if example else ''}\n{remedy}\n\n"


def make():
    rows, explained = read()
    page, chapter = HEAD, 0
    for code, severity, text in rows:
        if code // 1000 != chapter:
            chapter = code // 1000
            page += f"\n## {CHAPTERS[chapter]}\n\n"
        page += entry(code, severity, text, explained.get(code))
    return re.sub(r"\n{3,}", "\n\n", page).rstrip() + "\n"


def check():
    rows, explained = read()
    codes = {code for code, _, _ in rows}
    unknown = [f"src/diag/explain.def: there is no message {code}" for code in explained if code not in codes]
    written = (ROOT / "src/diag/explain.def").read_text().count("\nEXPLAIN(")
    if written != len(explained):
        unknown.append("src/diag/explain.def: a row cannot be read, or a code occurs twice")
    current = PAGE.read_text() if PAGE.exists() else ""
    return unknown + ([] if current == make() else ["docs/messages.md is not current: run scripts/messages_page.py"])


def write():
    PAGE.write_text(make())


if __name__ == "__main__":
    made.run(write, check)
