#!/usr/bin/env python3
"""Speed of compiled programs against the same code in C, and of derivatives against derivatives written by hand in C.

Each bench/NAME.c runs the kernels of NAME.slang and its own version of them, on one thread, on the same data, and compares the results. C is
compiled by clang -O3 for this very machine, as Slope compiles; --plain compiles it for any machine. Figures are ratios: above 1 in
a column "/C", Slope is slower than C. The columns "C by ..." are the gradient that `slope build -target c` makes, compiled by them with -O3,
as a ratio to the same through LLVM, one item at a time, which is what `slope build` makes unless it is asked for more. With ENZYME=PATH, the plugin of Enzyme for that clang, the gradient that Enzyme makes of
the function in C is measured, too. Of derivatives, instructions are counted as well (by callgrind, where it is installed): they do not
depend on what else the machine does. See docs/benchmarks.md.

    bench/run.py [--build DIR] [--plain] [--no-count] [--json FILE] [NAME...]
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLAIN = ("matmul", "nbody")
DERIVATIVES = ("brdf", "march", "mlp", "mlp_buffer", "mlp_tensor", "gmm", "bundle", "residual", "ode", "inverse", "filter", "splat", "particle", "lstm")
TOLERANCE = 1e-3  # of plain kernels, relative; sums are taken in another order
WORKS = ("primal", "gradient", "forward", "primal in C", "gradient in C", "gradient, one by one")  # what a benchmark of derivatives measures, in its order
ENZYME = os.environ.get("ENZYME")  # where its plugin for clang is
BY_ENZYME = ("gradient by Enzyme",) if ENZYME else ()
THROUGH_C = {"gcc": "gradient by gcc", "clang": "gradient by clang"}  # the compilers of what -target c makes, and what they give
C_FLAGS = ["-std=gnu17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-shared", "-fPIC"]
RATIOS = {  # name: dividend, divisor, target
    "primal/C": ("primal", "primal in C", 1.1),
    "gradient/primal": ("gradient", "primal", 4.0),
    "gradient/C": ("gradient", "gradient in C", 1.5),
    "forward/primal": ("forward", "primal", 2.5),
    **{"gradient/Enzyme": ("gradient", work, 1.0) for work in BY_ENZYME},
    "C by gcc": ("gradient by gcc", "gradient, one by one", 1.05),
    "C by clang": ("gradient by clang", "gradient, one by one", 1.05),
}
X86 = platform.machine() in ("x86_64", "AMD64")
NATIVE = ["-march=native"] if X86 else ["-mcpu=native"]
COUNTED = ["-march=x86-64-v3"] if X86 else NATIVE  # the processor that valgrind plays has no AVX-512


def understood(command, flags):
    """clang takes an arm64 processor to have what its kind has, also where the kernel does not let programs use it."""
    features = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else "sve"
    lacks = "clang" in command and not re.search(r"\bsve\b", features)
    return ["-mcpu=native+nosve" if lacks and flag == "-mcpu=native" else flag for flag in flags]


def compiler():
    return next((name for name in ("clang-19", "clang", "gcc") if shutil.which(name)), "clang")


def compile_c(build, name, flags, folder):
    program = Path(folder) / name
    if ENZYME and name in DERIVATIVES:
        flags = [*flags, f"-fplugin={ENZYME}", "-DENZYME"]
    subprocess.run([compiler(), "-std=c17", "-O3", *understood(compiler(), flags), "-fno-math-errno", "-D_GNU_SOURCE",
                    f"-I{HERE.parent / 'include'}", str(HERE / f"{name}.c"), "-o", str(program), f"-L{build}", "-lslope", "-lm", f"-Wl,-rpath,{build}"],
                   check=True)
    return program


def compile_generated(build, name, flags, folder):
    """Libraries of the program as C, one by each compiler that there is."""
    code, libraries = Path(folder) / "generated.c", {}
    subprocess.run([Path(build) / "slope", "build", f"{name}.slang", "--threads", "1", "-o", code], cwd=HERE, check=True)
    for kind in THROUGH_C:
        command = compiler() if kind == "clang" else kind
        if not shutil.which(command):
            continue
        libraries[kind] = Path(folder) / f"{kind}.so"
        subprocess.run([command, *C_FLAGS, *understood(command, flags), code, "-o", libraries[kind], "-lm"], check=True)
    return libraries


def execute(name, command):
    """The numbers it prints."""
    result = subprocess.run([str(part) for part in command], cwd=HERE, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{name}: {result.stderr.strip()[-2000:]}")
    return [float(number) for number in result.stdout.split()]


def measure_plain(build, name, flags, folder):
    """Milliseconds of Slope and of C."""
    slope, c, difference = execute(name, [compile_c(build, name, flags, folder)])
    if not difference <= TOLERANCE:
        sys.exit(f"{name}: the results differ by {difference}")
    return {"slope": slope, "C": c}


def measure(build, name, flags, folder):
    """Milliseconds of each work."""
    libraries = compile_generated(build, name, flags, folder)
    works = WORKS + BY_ENZYME + tuple(THROUGH_C[kind] for kind in libraries)
    return dict(zip(works, execute(name, [compile_c(build, name, flags, folder), *libraries.values()])))


def count(build, name, flags, folder):
    """Instructions of each work."""
    program, out = compile_c(build, name, flags, folder), Path(folder) / "callgrind"
    libraries = compile_generated(build, name, flags, folder)
    execute(name, ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", program, "count",
                   *libraries.values()])
    names, found = {str(library): THROUGH_C[kind] for kind, library in libraries.items()}, {}
    for path in Path(folder).glob("callgrind*"):
        text = path.read_text()
        work = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if work and total:
            found[names.get(work[1], work[1])] = int(total[1])
    if not set(found) >= set(WORKS + BY_ENZYME):
        sys.exit(f"{name}: callgrind counted {sorted(found) or 'nothing'}; are valgrind's headers installed?")
    return found


def ratios(figures):
    return {name: figures[over] / figures[under] for name, (over, under, _) in RATIOS.items() if over in figures}


def show_plain(name, row):
    print(f"{name:12} {row['slope']:9.3f} ms {row['C']:9.3f} ms {row['slope'] / row['C']:7.2f}", flush=True)


def show_ratio(name, value):
    return f"{value:>{len(name)}.2f}{'!' if value > RATIOS[name][2] else ' '} "


def show(name, row):
    cells = [f"{row['time']['gradient']:9.3f} ms  "]
    for kind in ("time", "instructions"):
        if kind in row:
            cells.append("".join(show_ratio(column, value) for column, value in ratios(row[kind]).items()) + "  ")
    print(f"{name:12}" + "".join(cells).rstrip(), flush=True)


def show_head(counted):
    columns = "".join(f"{name}  " for name in RATIOS)
    kinds = "time".ljust(len(columns) + 2) + ("instructions" if counted else "")
    print(f"\n{'':12}{'gradient':>12}  {kinds}")
    print(f"{'':12}{'':12}  {columns}  {columns if counted else ''}".rstrip())
    targets = "".join(f"{'<= ' + format(target, 'g'):>{len(name)}}  " for name, (_, _, target) in RATIOS.items())
    print(f"{'target':12}{'':12}  {targets}  {targets if counted else ''}".rstrip())


def run_all(options, build, report):
    flags = [] if options.plain else NATIVE
    names = options.names or PLAIN + DERIVATIVES
    counted = not options.no_count and shutil.which("valgrind") is not None
    for group, table in ((PLAIN, "plain"), (DERIVATIVES, "derivatives")):
        chosen = [name for name in names if name in group]
        if not chosen:
            continue
        if table == "plain":
            print(f"{'':12} {'slope':>12} {'C':>12} {'ratio':>7}")
        else:
            show_head(counted)
        for name in chosen:
            with tempfile.TemporaryDirectory() as folder:
                if table == "plain":
                    row = measure_plain(build, name, flags, folder)
                    show_plain(name, row)
                else:
                    row = {"time": measure(build, name, flags, folder)}
                    if counted:
                        row["instructions"] = count(build, name, [] if options.plain else COUNTED, folder)
                    show(name, row)
            report[table][name] = row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build")
    parser.add_argument("--plain", action="store_true", help="compile C with -O3 alone")
    parser.add_argument("--no-count", action="store_true", help="measure time only")
    parser.add_argument("--json", metavar="FILE", help="write all figures: milliseconds and instructions per call, and their ratios")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PLAIN + DERIVATIVES]
    if unknown:
        parser.error(f"no benchmark '{unknown[0]}': there are {', '.join(PLAIN + DERIVATIVES)}")
    report = {"date": datetime.date.today().isoformat(), "machine": platform.machine(), "plain": {}, "derivatives": {}}
    run_all(options, Path(options.build).resolve(), report)
    if options.json:
        for row in report["derivatives"].values():
            row["ratios"] = {kind: ratios(row[kind]) for kind in ("time", "instructions") if kind in row}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
