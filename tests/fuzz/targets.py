#!/usr/bin/env python3
"""Runs the targets of libFuzzer (tests/fuzz/targets), one after the other, each for a share of the time; `make fuzz-all SECONDS=n`.

Inputs begin with the tests: programs for `front`, IR texts for `ir`; what libFuzzer finds worth keeping stays in BUILD/corpus, findings
in BUILD/findings. The dictionary has the words of the .def files and of the library.

    tests/fuzz/targets.py --build DIR [--seconds N] [--seed N] [NAME...]
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"front": ".slang", "ir": ".ir", "api": None}  # what they read, of the tests
LARGEST_SEED = 8000
SHARE = {"front": 0.5, "ir": 0.3, "api": 0.2}


def words():
    """Names of operations, keywords and attributes: every row of a .def file begins with one; and what the library declares."""
    found = set()
    for path in sorted((ROOT / "src").rglob("*.def")):
        found.update(re.findall(r"^[A-Z_]+\((\w+)", path.read_text(), re.MULTILINE))
        if path.name != "diag.def":
            found.update(re.findall(r'"([A-Za-z_]\w*)"', path.read_text()))
    for path in sorted((ROOT / "prelude").glob("*.slang")):
        found.update(re.findall(r"\b(?:struct|interface)\s+(\w+)", path.read_text()))
    return sorted(found)


def write_dictionary(path):
    path.write_text("".join(f'"{word}"\n' for word in words()))


def plant(folder, suffix):
    """The tests as seeds, once."""
    folder.mkdir(parents=True, exist_ok=True)
    if suffix is None or any(folder.iterdir()):
        return
    for path in sorted((ROOT / "tests").rglob(f"*{suffix}")):
        if path.stat().st_size <= LARGEST_SEED:
            (folder / "-".join(path.relative_to(ROOT / "tests").parts)).write_bytes(path.read_bytes())


def run(build, name, seconds, seed):
    """How often it ran, and what it found."""
    corpus, findings = build / "corpus" / name, build / "findings" / name
    plant(corpus, TARGETS[name])
    findings.mkdir(parents=True, exist_ok=True)
    dictionary = build / "slope.dict"
    write_dictionary(dictionary)
    command = [str(build / "tests" / f"fuzz_{name}"), str(corpus), f"-dict={dictionary}", f"-artifact_prefix={findings}/",
               f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=8000", "-timeout=120", "-rss_limit_mb=3000",
               "-entropic=0", "-print_final_stats=1", "-verbosity=1", "-close_fd_mask=1"]
    quick = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")  # arenas do not leak; looking for it takes longer than the rest
    result = subprocess.run(command, env=quick, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    runs = re.search(r"stat::number_of_executed_units: (\d+)", result.stdout)
    print(f"{name}: {runs[1] if runs else '?'} executions in {seconds} s{'' if result.returncode == 0 else ', FOUND:'}", flush=True)
    if result.returncode:
        print("\n".join(result.stdout.splitlines()[-60:]), flush=True)
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", choices=[*TARGETS, []])
    options = parser.parse_args()
    names = options.names or list(TARGETS)
    total = sum(SHARE[name] for name in names)
    results = [run(options.build.resolve(), name, max(1, int(options.seconds * SHARE[name] / total)), options.seed) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
