#!/usr/bin/env python3
"""Feeds broken programs to `slope check` and looks for anything but a message; `make fuzz-front`.

The programs are the sources of the tests, changed at random: pieces cut, doubled, moved, exchanged with pieces of others,
bytes overwritten. A program is found bad if the compiler ends with a status other than 0 and 1, takes longer than ten
seconds or too much memory. It is then made smaller and kept in BUILD/fuzz. Runs are repeatable by --seed.

    tests/fuzz/front.py [--build DIR] [--seconds N] [--seed N]
"""
import argparse
import concurrent.futures
import os
import random
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import run

TOKENS = [b"{", b"}", b"(", b")", b"<", b">", b"[", b"]", b";", b",", b".", b"=", b"#", b"\"", b"/*", b"*/", b"\\\n", b"\0",
          b"\xff", b"struct ", b"interface ", b"extension ", b"__generic<", b"if (", b"for (", b"#define A A A\n", b"#if 1\n",
          b"9999999999999999999999", b"0x", b"1e999", b"float4x4 ", b"this", b"operator+", b"fwd_diff(", b"where T : "]


def pieces(text):
    return re.findall(rb"\s+|\w+|[^\w\s]", text)


def change(generator, parts, corpus):
    """One random change to a list of tokens, in place."""
    at = generator.randrange(len(parts) + 1)
    length = min(generator.choice((1, 1, 2, 5, 20)), len(parts) - at)
    kind = generator.randrange(6)
    if kind == 0:
        del parts[at:at + length]
    elif kind == 1:
        parts[at:at] = parts[at:at + length] * generator.choice((1, 1, 2, 50))
    elif kind == 2:
        parts.insert(at, generator.choice(TOKENS))
    elif kind == 3:
        other = generator.choice(corpus)
        start = generator.randrange(len(other) + 1)
        parts[at:at + length] = other[start:start + generator.choice((1, 3, 10, 40))]
    elif kind == 4 and length:
        moved = parts[at:at + length]
        del parts[at:at + length]
        to = generator.randrange(len(parts) + 1)
        parts[to:to] = moved
    elif kind == 5:
        del parts[at:]


def make_program(generator, corpus):
    parts = list(generator.choice(corpus))
    for _ in range(generator.choice((1, 2, 3, 5, 10))):
        change(generator, parts, corpus)
    return b"".join(parts)


def find_problem(suite, path):
    """None, or what is bad about the program in that file."""
    result = run.execute(suite, [str(suite.slope), "check", path.name], path.parent)
    if result.trouble:
        return f"{result.trouble}\n{result.err[-3000:]}"
    return None if result.status in (0, 1) else f"exit status {result.status}\n{result.err[-3000:]}"


def kind_of(problem):
    """Two problems of one kind are probably one defect."""
    place = re.search(r"(\S+\.c:\d+)", problem)
    return (problem.split("\n")[0], place[1] if place else "")


def shrink(suite, path, kind):
    """Takes away lines, then tokens, as long as the problem stays the same."""
    for split in (lambda text: text.splitlines(keepends=True), pieces):
        parts = split(path.read_bytes())
        size = max(1, len(parts) // 2)
        deadline = time.monotonic() + 60
        while size and time.monotonic() < deadline:
            at = 0
            while at < len(parts) and time.monotonic() < deadline:
                tried = parts[:at] + parts[at + size:]
                path.write_bytes(b"".join(tried))
                problem = find_problem(suite, path)
                if problem and kind_of(problem) == kind:
                    parts = tried
                else:
                    at += size
            size //= 2
        path.write_bytes(b"".join(parts))


def work(suite, corpus, folder, seed, until):
    """One thread: how many programs it tried, and what it found."""
    generator = random.Random(seed)
    path = folder / f"try-{seed}.slang"
    count, found = 0, []
    while time.monotonic() < until:
        path.write_bytes(make_program(generator, corpus))
        count += 1
        problem = find_problem(suite, path)
        if problem:
            kept = folder / f"bad-{seed}-{count}.slang"
            path.rename(kept)
            found.append((kept, problem))
    path.unlink(missing_ok=True)
    return count, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=run.HERE.parent / "build-sanitize")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    suite = run.Suite(options.build)
    suite.seconds = 10
    corpus = [pieces(path.read_bytes()) for path in sorted(run.HERE.rglob("*.slang")) if path.stat().st_size < 20000]
    corpus = [parts for parts in corpus if parts]
    if not corpus or not suite.slope.exists():
        sys.exit(f"front: there is no {'program to start from' if not corpus else suite.slope}")
    folder = suite.build / "fuzz"
    folder.mkdir(exist_ok=True)
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    jobs, until = os.cpu_count() or 1, time.monotonic() + options.seconds
    print(f"front: seed {seed}, {len(corpus)} programs to start from", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda i: work(suite, corpus, folder, seed + i, until), range(jobs)))
    kinds = {}
    for path, problem in (item for _, found in results for item in found):
        kinds.setdefault(kind_of(problem), (path, problem))
    for kind, (path, problem) in kinds.items():
        shrink(suite, path, kind)
        print(f"FAIL {path}\n    " + problem.strip().replace("\n", "\n    "))
    print(f"{sum(count for count, _ in results)} programs tried, {len(kinds)} kinds of failure")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
