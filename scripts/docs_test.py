#!/usr/bin/env python3
"""Everything that the documentation shows is run: README.md, ARCHITECTURE.md, docs/*.md.

A block ```slang is a program: it must compile, and if it has a main it is run. Comments at the end of its lines that
hold printed text are not looked at; a block ```output right after it is what it prints, exactly. ```slang error: it must not compile.
A block ```console is a session in an empty folder, one per page: after `$ cat FILE` stand the lines that FILE is made of, after `$ slope ...`
the lines that the command prints (a line `...`: some are left out). Other blocks are only text.

Links to files lead somewhere.

    scripts/docs_test.py BUILD [--bless]      with --bless, outputs in ```console and ```output are rewritten
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(slang|slang error|console|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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

    def slang(self, start, body, wrong):
        path = self.folder / "example.slang"
        path.write_text(body)
        command = "run" if re.search(r"^void main\(", body, re.MULTILINE) and not wrong else "check"
        status, text = self.execute([self.slope, command, path.name])
        self.printed = text.splitlines()
        if (status == 1) == wrong and status in (0, 1):
            self.passed += 1
        else:
            self.fail(start, f"exit status {status}\n{text}")
        return body

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
            elif head.startswith("$ slope "):
                text = self.execute(f"{self.slope} {head[8:].split('  #')[0]}")[1].rstrip("\n").splitlines()
                if agrees(lines, text):
                    self.passed += 1
                elif self.bless:
                    lines = text
                else:
                    self.fail(start, f"{head}\nprints:\n" + "\n".join(text))
            made.append("\n".join([head, *lines]) + "\n")
        return "".join(made)

    def block(self, found):
        kind, body = found[1], found[2]
        if kind.startswith("slang"):
            made = self.slang(found.start(), body, kind == "slang error")
        else:
            made = self.output(found.start(), body) if kind == "output" else self.console(found.start(), body)
        return f"```{kind}\n{made}```"

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
