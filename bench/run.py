#!/usr/bin/env python3
"""Speed of compiled programs against the same code in C, and of derivatives against derivatives written by hand in C.

Each bench/NAME.c runs the kernels of NAME.slang and its own version of them, on one thread, on the same data, and compares the results: in float and in double,
with parameters in structs, in a DiffBuffer and in DiffTensors (NAME, NAME_buffer, NAME_tensor). C is compiled by clang -O3 for this very machine, as Slope
compiles; --plain compiles it for any machine. Figures are ratios: above 1 in a column "/C", Slope is slower than C. With --count, instructions are counted as well (by callgrind): they do
not depend on what else the machine does. With --through-c, the columns "C by ..." are the gradient that `slope build -target c` makes, compiled by them with -O3,
as a ratio to the same through LLVM, one item at a time, which is what `slope build` makes unless it is asked for more. With ENZYME=PATH, the plugin of Enzyme
for that clang, the gradient that Enzyme makes of the function in C is measured, too. See docs/benchmarks.md.

    bench/run.py [--build DIR] [--precision float|double|both] [--plain] [--count] [--through-c] [--json FILE] [NAME...]
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
ARRAYS = ("struct", "buffer", "tensor")
KINDS = {  # of derivatives, NAME.c and NAME.slang: where the parameters lie; what the gradient may take, as a multiple of that by hand
    "brdf": (ARRAYS, 1.2),
    "march": (("struct",), 1.2),
    "mlp": (ARRAYS, 1.2),
    "gmm": (ARRAYS, 2),
    "bundle": (ARRAYS, 1.2),
    "residual": (("struct",), 1.2),
    "ode": (ARRAYS, 1.2),
    "inverse": (ARRAYS, 1.2),
    "filter": (("buffer", "tensor"), 1.2),
    "splat": (ARRAYS, 2),
    "particle": (ARRAYS, 1.2),
    "lstm": (ARRAYS, 2),
}
ROWS = {kind if storage == "struct" else f"{kind}_{storage}": (kind, storage) for kind, (storages, _) in KINDS.items() for storage in storages}
PRECISIONS = ("float", "double")
TOLERANCE = 1e-3  # of plain kernels, relative; sums are taken in another order
WORKS = ("primal", "gradient", "forward", "primal in C", "gradient in C", "gradient, one by one")  # what a benchmark of derivatives measures, in its order
ENZYME = os.environ.get("ENZYME")  # where its plugin for clang is
BY_ENZYME = ("gradient by Enzyme",) if ENZYME else ()
THROUGH_C = {"gcc": "gradient by gcc", "clang": "gradient by clang"}  # the compilers of what -target c makes, and what they give
C_FLAGS = ["-std=gnu17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-shared", "-fPIC"]
RATIOS = {  # name: dividend, divisor, target; None: as KINDS says
    "primal/C": ("primal", "primal in C", 1.1),
    "gradient/primal": ("gradient", "primal", 4.0),
    "gradient/C": ("gradient", "gradient in C", None),
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
    return ["-mcpu=native+nosve" if lacks and flag == "-mcpu=native" else flag for flag in flags] + tuned(command, flags)


def without_gathers(command):
    """Neither compiler knows that gathers are slow on some processors (src/emit/llvm/target.c names them); both can be told."""
    if "clang" in command:
        asked = subprocess.run([command, "-march=native", "-###", "-c", "-x", "c", "/dev/null"], capture_output=True, text=True).stderr
        known, options = re.search(r'"-target-cpu" "([^"]+)"', asked), ["-mno-gather", "-mno-scatter"]
    else:
        asked = subprocess.run([command, "-march=native", "-Q", "--help=target"], capture_output=True, text=True).stdout
        known, options = re.search(r"-march=\s+(\S+)", asked), ["-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather"]
    slow = re.search(r"unwanted_features.*?\n}", (HERE.parent / "src/emit/llvm/target.c").read_text(), re.DOTALL)[0]
    return options if known and f'"{known[1]}"' in slow and understands(command, options) else []


def understands(command, options):
    """clang knows of gathers that are not wanted since version 17."""
    return subprocess.run([command, *options, "-fsyntax-only", "-x", "c", "/dev/null"], capture_output=True).returncode == 0


def tuned(command, flags):
    """gcc tunes for no processor in particular where it does not know this one, as gcc 12 does not know those after Sapphire Rapids; the newest whose costs it has a table of is Ice Lake."""
    if "-march=native" not in flags:
        return []
    if "gcc" not in command or "avx512f" not in Path("/proc/cpuinfo").read_text():
        return without_gathers(command)
    known = subprocess.run([command, *flags, "-Q", "--help=target"], capture_output=True, text=True).stdout
    return ["-mtune=icelake-server"] if re.search(r"-mtune=\s+generic", known) else without_gathers(command)


def for_generated(command):
    """clang calls functions of vectors only if it is told of the library that has them; C tells gcc."""
    return C_FLAGS + (["-fveclib=libmvec"] if X86 and "clang" in command else [])


def compiler():
    return next((name for name in ("clang-19", "clang", "gcc") if shutil.which(name)), "clang")


def variant(name, precision):
    """The program of a row, and what is defined for it."""
    kind, storage = ROWS[name]
    own = f"{name}.slang"
    return own if (HERE / own).exists() else f"{kind}.slang", {"REAL": precision, storage.upper(): "1"}


def compile_c(build, name, flags, folder, precision="float"):
    program, source = Path(folder) / name, name
    if name in ROWS:
        source, storage = ROWS[name]
        flags = [*flags, f"-DREAL={precision}", f"-DSTORAGE={storage.upper()}", f'-DPROGRAM="{variant(name, precision)[0]}"']
        flags += [f"-fplugin={ENZYME}", "-DENZYME"] if ENZYME else []
    subprocess.run([compiler(), "-std=c17", "-O3", *understood(compiler(), flags), "-fno-math-errno", "-D_GNU_SOURCE",
                    f"-I{HERE.parent / 'include'}", str(HERE / f"{source}.c"), "-o", str(program), f"-L{build}", "-lslope", "-lm", f"-Wl,-rpath,{build}"],
                   check=True)
    return program


def compile_generated(build, name, flags, folder, precision):
    """Libraries of the program as C, one by each compiler that there is."""
    code, libraries = Path(folder) / "generated.c", {}
    source, defines = variant(name, precision)
    subprocess.run([Path(build) / "slope", "build", source, *(f"-D{key}={value}" for key, value in defines.items()), "--threads", "1", "-o", code], cwd=HERE, check=True)
    for kind in THROUGH_C:
        command = compiler() if kind == "clang" else kind
        if not shutil.which(command):
            continue
        libraries[kind] = Path(folder) / f"{kind}.so"
        subprocess.run([command, *for_generated(command), *understood(command, flags), code, "-o", libraries[kind], "-lm"], check=True)
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


def measure(options, name, precision, folder):
    """Milliseconds of each work."""
    flags = [] if options.plain else NATIVE
    libraries = compile_generated(options.build, name, flags, folder, precision) if options.through_c else {}
    works = WORKS + BY_ENZYME + tuple(THROUGH_C[kind] for kind in libraries)
    return dict(zip(works, execute(name, [compile_c(options.build, name, flags, folder, precision), *libraries.values()])))


def count(options, name, precision, folder):
    """Instructions of each work."""
    flags = [] if options.plain else COUNTED
    program, out = compile_c(options.build, name, flags, folder, precision), Path(folder) / "callgrind"
    libraries = compile_generated(options.build, name, flags, folder, precision) if options.through_c else {}
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
    print(f"{name:16} {row['slope']:9.3f} ms {row['C']:9.3f} ms {row['slope'] / row['C']:7.2f}", flush=True)


def target_of(name, column):
    return RATIOS[column][2] or KINDS[ROWS[name][0]][1]


def show_ratio(name, column, value):
    return f"{value:>{len(column)}.2f}{'!' if value > target_of(name, column) else ' '} "


def show(name, row):
    cells = [f"{row['time']['gradient']:9.3f} ms  "]
    for kind in ("time", "instructions"):
        if kind in row:
            cells.append("".join(show_ratio(name, column, value) for column, value in ratios(row[kind]).items()) + "  ")
    print(f"{name:16}" + "".join(cells).rstrip(), flush=True)


def show_head(options, precision):
    shown = {name: ratio for name, ratio in RATIOS.items() if options.through_c or ratio[0] not in THROUGH_C.values()}
    columns = "".join(f"{name}  " for name in shown)
    kinds = "time".ljust(len(columns) + 2) + ("instructions" if options.count else "")
    print(f"\n{precision:16}{'gradient':>12}  {kinds}")
    print(f"{'':16}{'':12}  {columns}  {columns if options.count else ''}".rstrip())
    targets = "".join(f"{'<= ' + format(target, 'g') if target else '1.2, 2':>{len(name)}}  " for name, (_, _, target) in shown.items())
    print(f"{'target':16}{'':12}  {targets}  {targets if options.count else ''}".rstrip())


def run_plain(options, report):
    print(f"{'':16} {'slope':>12} {'C':>12} {'ratio':>7}")
    for name in PLAIN:
        if name in options.names:
            with tempfile.TemporaryDirectory() as folder:
                report[name] = measure_plain(options.build, name, [] if options.plain else NATIVE, folder)
            show_plain(name, report[name])


def run_derivatives(options, precision, report):
    show_head(options, precision)
    for name in ROWS:
        if name in options.names:
            with tempfile.TemporaryDirectory() as folder:
                row = {"time": measure(options, name, precision, folder)}
                if options.count:
                    row["instructions"] = count(options, name, precision, folder)
            show(name, row)
            report[name] = {**row, "ratios": {kind: ratios(figures) for kind, figures in row.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=HERE.parent / "build", type=Path)
    parser.add_argument("--precision", choices=(*PRECISIONS, "both"), default="both")
    parser.add_argument("--plain", action="store_true", help="compile C with -O3 alone")
    parser.add_argument("--count", action=argparse.BooleanOptionalAction, default=False, help="count instructions, too; takes ten times as long")
    parser.add_argument("--through-c", action="store_true", help="measure the gradient that -target c makes, by gcc and clang, too")
    parser.add_argument("--json", metavar="FILE", help="write all figures: milliseconds and instructions per call, and their ratios")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    everything = (*PLAIN, *ROWS)
    unknown = [name for name in options.names if name not in everything]
    if unknown:
        parser.error(f"no benchmark '{unknown[0]}': there are {', '.join(everything)}")
    options.build = options.build.resolve()
    options.names = options.names or everything
    if options.count and not shutil.which("valgrind"):
        parser.error("--count needs valgrind")
    precisions = PRECISIONS if options.precision == "both" else (options.precision,)
    report = {"date": datetime.date.today().isoformat(), "machine": platform.machine(), "plain": {}, "derivatives": {precision: {} for precision in precisions}}
    if set(options.names) & set(PLAIN):
        run_plain(options, report["plain"])
    if set(options.names) & set(ROWS):
        for precision in precisions:
            run_derivatives(options, precision, report["derivatives"][precision])
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
