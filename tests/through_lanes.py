#!/usr/bin/env python3
"""Kernels with lanes: the functions of tests/diff and their derivatives, as kernels over a thousand items of random data, one
item at a time and several at once. What they write must be the same but for rounding: arithmetic is as it is written
(--fp strict), but sums of derivatives have no order that anybody wrote.

    tests/through_lanes.py [--build DIR] [-j N] [--of N] [--lanes 4,16] [--rounds] [-v] [NAME...]    one file of N; only those with a NAME in theirs

With --rounds, one thread does all items in a loop, of which several rounds are done at once.
"""
import concurrent.futures
import math
import os
import random
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run

ITEMS = 1008  # no multiple of 64: the last groups of a row are fewer than a worker takes at once
THREADS = 28  # of a group: with 16 lanes, some are left over
TYPES = {"float": 1, "float2": 2, "float3": 3, "float4": 4, "int": 1}
FUNCTION = re.compile(r"^\[(?:Backward)?Differentiable\]\s*\n?(?:public\s+)?(float[234]?) (\w+)\(([^()]*)\)\s*\n?\{", re.M)
BOUND = re.compile(r"--(?:bind|set) (\w+)\S*")
CHECKED = re.compile(r"^// cmd: %slope check ", re.M)  # a program that is not made to be run
ENDS_IN = 5  # seconds of the processor; what takes longer one item at a time does not end
PARAM = re.compile(r"^\s*(?:no_diff )?(float[234]?|int) (\w+)\s*$")


def functions(text):
    """(result, name, [(type, is differentiable)]) of those that take and return numbers"""
    for result, name, params in FUNCTION.findall(text):
        found = [PARAM.match(param) for param in params.split(",")] if params.strip() else []
        if found and all(found):
            yield result, name, [(match[1], "no_diff" not in match[0] and match[1] != "int") for match in found]


def has_kernels(text):
    return not CHECKED.search(text) and any(functions(text))


def kernel(number, result, name, params, threads=THREADS, rounds=0):
    """One that calls the function and its backward derivative, and the names of what it writes; `rounds`: for so many items, in a loop"""
    size = sum(TYPES[kind] for kind, _ in params)
    lines, args, pairs, outs, at = [], [], [], [], 0
    for i, (kind, is_diff) in enumerate(params):
        parts = [f"lanes_in{number}[tid.x * {size} + {at + k}]" for k in range(TYPES[kind])]
        at += TYPES[kind]
        value = f"{kind}({', '.join(parts)})"
        lines.append(f"    {kind} a{i} = {value};")
        args.append(f"a{i}")
        if is_diff:
            lines.append(f"    DifferentialPair<{kind}> p{i} = diffPair(a{i});")
        pairs.append(f"p{i}" if is_diff else f"a{i}")
        if is_diff:
            outs.append((f"lanes_d{number}_{i}", kind, f"p{i}.d"))
    outs.append((f"lanes_y{number}", result, f"{name}({', '.join(args)})"))
    buffers = [f"RWStructuredBuffer<float> lanes_in{number};"]
    buffers += [f"RWStructuredBuffer<{kind}> {buffer};" for buffer, kind, _ in outs]
    lines.append(f"    bwd_diff({name})({', '.join(pairs)}, {result}(1));")
    lines += [f"    {buffer}[tid.x] = {value};" for buffer, _, value in outs]
    head = f'[shader("compute")] [numthreads({1 if rounds else threads}, 1, 1)]\nvoid lanes_kernel{number}('
    head += f") {{ for (int item = 0; item < {rounds}; item++) {{ uint3 tid = item;" if rounds else "uint3 tid : SV_DispatchThreadID) { {"
    return "\n".join([*buffers, head, *lines, "}}", ""]), outs, size


def data(chosen, size, path):
    """Numbers of every kind of size, so that items go different ways"""
    values = [chosen.choice((chosen.uniform(-2, 2), chosen.uniform(0, 1), chosen.uniform(0, 9), float(chosen.randint(-1, 6))))
              for _ in range(size * ITEMS)]
    path.write_text("\n".join(repr(value) for value in values))


def bound(text):
    """What the program says that it is to be given, unless it writes there: items would then write in any order"""
    found = [match for args in re.findall(r"^// args: (.*)", text, re.M) for match in BOUND.finditer(args)]
    written = any(re.search(rf"\b{match[1]}\[[^;=<>!]*[^;=<>!]=[^=]", text) for match in found)
    return [] if written else " ".join(match[0] for match in found).split()


def outputs(suite, folder, source, number, outs, lanes, temporary, rounds, level="-O2", seconds=None):
    command = [str(suite.slope), "run", str(source), "-I", str(folder), level, "--fp", "strict", "--lanes", str(lanes), "--threads", "1", "--remarks",
               "--entry", f"lanes_kernel{number}", "--dispatch", str(1 if rounds else ITEMS // THREADS), "--bind", f"lanes_in{number}=@{temporary}/in.csv", *bound(source.read_text())]
    for buffer, _, _ in outs:
        command += ["--bind", f"{buffer}=zeros:{ITEMS}", "--print", buffer]
    return run.execute(suite, command, folder, seconds=seconds)


def is_close(a, b):
    if a == b:  # also what is no number: some programs print
        return True
    try:
        a, b = float(a), float(b)
    except ValueError:
        return False
    return (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-3 * max(abs(a), abs(b)) + 1e-5


def in_order(output, written):
    """What was written stands at the end; what items print before, they print in some order."""
    lines = output.splitlines()
    return " ".join([*sorted(lines[:-written]), *lines[-written:]]).split()


def is_rounding(a, b, plain):
    """Does one at a time differ about as much from itself without optimisations? Then what is left of large numbers is."""
    try:
        a, b, plain = float(a), float(b), float(plain)
    except ValueError:
        return False
    return abs(b - plain) <= 4 * abs(a - plain)


def difference(one, several, written, plain=None):
    """None, or lines that differ"""
    one, several = in_order(one, written), in_order(several, written)
    if len(one) != len(several):
        return f"{len(several)} numbers, not {len(one)}"
    plain = in_order(plain, written) if plain else []
    rounded = {i for i, (a, b, c) in enumerate(zip(one, several, plain)) if is_rounding(a, b, c)}
    wrong = [f"{i}: {a} is {b}" for i, (a, b) in enumerate(zip(one, several)) if not is_close(a, b) and i not in rounded]
    return f"{len(wrong)} of {len(one)} numbers differ\n" + "\n".join(wrong[:8]) if wrong else None


def check(suite, path, widths, temporary, rounds):
    """Failures, and how many kernels were and were not widened"""
    text, problems, done, declined = path.read_text(), [], 0, []
    source = Path(temporary) / path.name
    kernels = [kernel(i, *function, rounds=rounds and ITEMS) for i, function in enumerate(functions(text))]
    at_once, one_by_one = ("rounds at once", "one round at a time") if rounds else ("items at once", "one item at a time")
    source.write_text(text + "\n" + "\n".join(made for made, _, _ in kernels))
    for number, (_, outs, size) in enumerate(kernels):
        data(random.Random(number), size, Path(temporary) / "in.csv")
        written = ITEMS * sum(TYPES[kind] for _, kind, _ in outs)
        one = outputs(suite, path.parent, source, number, outs, 1, temporary, rounds, seconds=ENDS_IN)
        if one.status or one.trouble:
            continue  # a function that has no backward derivative, or one that does not end
        for width in widths:
            several = outputs(suite, path.parent, source, number, outs, width, temporary, rounds)
            fails = several.status or several.trouble
            wrong = several.trouble or several.err if fails else difference(one.out, several.out, written)
            if wrong and not fails:
                plain = outputs(suite, path.parent, source, number, outs, 1, temporary, rounds, "-O0")
                wrong = difference(one.out, several.out, written, plain.out)
            if wrong:
                problems.append((f"{path.stem} kernel {number} with {width} lanes", wrong[:1500]))
            elif at_once in several.err:
                done += 1
            else:
                declined += [line for line in several.err.splitlines() if one_by_one in line][:1]
    return problems, done, declined


def run_all(build, filters=(), jobs=None, share=1, widths=(4, 16), rounds=False):
    """(number of kernels that agree, failures, remarks)"""
    suite = run.Suite(build)
    files = sorted(path for path in (run.HERE / "diff").rglob("*.slang") if "lib" not in path.parts)
    files = [path for path in files if run.wanted(str(path), filters) and has_kernels(path.read_text())][::share]

    def one(path):
        with tempfile.TemporaryDirectory(prefix="slope-lanes-") as temporary:
            return check(suite, path, widths, temporary, rounds)

    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        results = list(pool.map(one, files))
    failures = [failure for problems, _, _ in results for failure in problems]
    return sum(done for _, done, _ in results), failures, [remark for _, _, remarks in results for remark in remarks]


def main():
    parser = run.programs_parser()
    parser.add_argument("--lanes", default="4,16")
    parser.add_argument("--rounds", action="store_true")
    parser.add_argument("-v", action="store_true", help="say why kernels were left as they are")
    options = parser.parse_args()
    widths = [int(width) for width in options.lanes.split(",")]
    passed, failures, remarks = run_all(options.build, options.names, options.jobs, options.of, widths, options.rounds)
    run.report(failures)
    if options.v:
        print("\n".join(sorted(remarks)))
    print(f"{passed} passed, {len(failures)} failed, {len(remarks)} not widened")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
