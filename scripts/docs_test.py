#!/usr/bin/env python3
"""Everything that the documentation shows is run: README.md, ARCHITECTURE.md, docs/*.md.

A block ```slang is a program: it must compile, without a warning, and if it has a main it is run; what it prints must be what
the comments behind its printf lines say, if there are any, or the block ```output right after it. A comment <!-- run: OPTIONS --> after the
block makes it run with these. ```slang error: it must have just the errors that its comments name, `// error E1234`.
A block ```console is a session in an empty folder, one per page: after `$ cat FILE` stand the lines that FILE is made of, after `$ slope ...`
the lines that the command prints (a line `...`: some are left out), and so with `$ cc ...` and `$ ./program`. Other blocks are only text. Links to files lead somewhere.

    scripts/docs_test.py BUILD [--bless]      with --bless, outputs in ```console and ```output are rewritten
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(slang|slang error|console|output)\n(.*?)^```\n(?:<!-- run: (.*?) -->)?", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^.*\bprintf\(.*\); *// (.*)$", re.MULTILINE)
SECONDS = 120


def pages():
    return [path for path in (ROOT / "README.md", ROOT / "ARCHITECTURE.md") if path.exists()] + sorted((ROOT / "docs").glob("*.md"))


def agrees(wanted, found):
    """Lines, of which `...` stands for any number."""
    pattern = "".join(".*?" if line.strip() == "..." else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(line + "\n" for line in found), re.DOTALL) is not None


class Page:
    def __init__(self, build, path, folder, bless):
        self.slope = str(Path(build).resolve() / "slope")
        self.path, self.folder, self.bless = path, Path(folder), bless
        self.passed, self.failures, self.printed = 0, [], None

    def fail(self, where, what):
        line = self.text.count("\n", 0, where) + 1
        self.failures.append((f"{self.path.relative_to(ROOT)}:{line}", what))

    def execute(self, words):
        try:
            result = subprocess.run(words, cwd=self.folder, shell=isinstance(words, str), capture_output=True, text=True,
                                    timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return -1, f"took longer than {SECONDS} s"
        return result.returncode, result.stdout + result.stderr

    def slang(self, start, body, options):
        path = self.folder / "example.slang"
        path.write_text(body)
        runs = options or re.search(r"^void main\(", body, re.MULTILINE)
        status, text = self.execute([self.slope, "run" if runs else "check", path.name, *options.split()])
        self.printed, wanted = text.splitlines(), PRINTED.findall(body)
        if status or (wanted and wanted != self.printed) or (not runs and text):
            self.fail(start, f"exit status {status}\n{text}")
        else:
            self.passed += 1

    def error(self, start, body):
        path = self.folder / "example.slang"
        path.write_text(body)
        status, text = self.execute([self.slope, "check", path.name])
        wanted, found = re.findall(r"// error (E\d+)", body), re.findall(r": error (E\d+):", text)
        if status == 1 and wanted and wanted == found:
            self.passed += 1
        else:
            self.fail(start, f"errors {found}, not {wanted}")

    def output(self, start, body):
        if agrees(body.splitlines(), self.printed or []):
            self.passed += 1
            return body
        if self.bless:
            return "".join(line + "\n" for line in self.printed or [])
        self.fail(start, "it prints:\n" + "\n".join(self.printed or []))
        return body

    def console(self, start, body):
        made = []
        for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
            if not part:
                continue
            head, _, rest = part.partition("\n")
            lines = rest.splitlines()
            if head.startswith("$ cat "):
                (self.folder / head[6:].strip()).write_text(rest)
            elif head.startswith(("$ slope ", "$ cc ", "$ ./")):
                command = head[2:].split('  #')[0]
                command = f"{self.slope} {command[6:]}" if command.startswith("slope ") else command
                text = self.execute(command)[1].rstrip("\n").splitlines()
                if agrees(lines, text):
                    self.passed += 1
                elif self.bless:
                    lines = text
                else:
                    self.fail(start, f"{head}\nprints:\n" + "\n".join(text))
            made.append("\n".join([head, *lines]) + "\n")
        return "".join(made)

    def block(self, found):
        kind, made, start = found[1], found[2], found.start()
        if kind == "slang":
            self.slang(start, made, found[3] or "")
        elif kind == "slang error":
            self.error(start, made)
        else:
            made = self.output(start, made) if kind == "output" else self.console(start, made)
        return found[0].replace(found[2], made, 1)

    def links(self):
        """Links to files of ours lead somewhere."""
        for found in re.finditer(r"\]\((?!https?:|#)([^)#]+)", self.text):
            if (self.path.parent / found[1]).exists():
                self.passed += 1
            else:
                self.fail(found.start(), f"there is no {found[1]}")

    def run(self):
        self.text = self.path.read_text()
        self.links()
        made = BLOCK.sub(self.block, self.text)
        if self.bless and made != self.text:
            self.path.write_text(made)


def run_all(build, bless=False):
    """(number passed, failures)"""
    passed, failures = 0, []
    for path in pages():
        with tempfile.TemporaryDirectory() as folder:
            page = Page(build, path, folder, bless)
            page.run()
        passed += page.passed
        failures += page.failures
    return passed, failures


if __name__ == "__main__":
    count, wrong = run_all(sys.argv[1], "--bless" in sys.argv)
    for name, what in wrong:
        print(f"FAIL {name}\n    " + what.replace("\n", "\n    "))
    print(f"{count} passed, {len(wrong)} failed")
    sys.exit(bool(wrong))
