#!/usr/bin/env python3
"""The same programs through CUDA: what `slope run` prints in tests/run, tests/diff and tests/library, the program that `-target cuda`
makes prints too. Compiled with nvcc where there is one; run where there is a GPU. PTX is made of them as well, and given to the assembler.

    tests/through_cuda.py [--build DIR] [-j N] [--of N] [NAME...]          makes, compiles and, with a GPU, runs them
    tests/through_cuda.py --generate DIR [--build DIR] [--of N] [NAME...]  only makes the .cu files, with what they should print
    tests/through_cuda.py --run DIR [-j N] [NAME...]                       compiles and runs those; needs python3 and nvcc alone

--of N takes one test of N. Without nvcc nothing is compiled, and the script says so.
"""
import concurrent.futures
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

LACKING = re.compile(r"this target (has no|does not)|printf of this target")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)")
RELATIVE, ABSOLUTE = 2e-4, 1e-5  # elementary functions of the device, and contracted products, differ in last digits
NVCC_SECONDS, RUN_SECONDS = 400, 60
LARGE = 500000      # bytes of source for which nvcc takes minutes


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def has_gpu():
    """A driver that knows of a device."""
    found = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return bool(found and found.returncode == 0 and "GPU" in found.stdout)


def is_near(found, expected):
    if found == expected:
        return True
    try:
        a, b = float(found), float(expected)
    except ValueError:
        return False
    return a != a and b != b or abs(a - b) <= ABSOLUTE + RELATIVE * abs(b)


def agree(found, expected):
    """The same words, and numbers that are near each other."""
    if len(found) != len(expected):
        return False
    for line, other in zip(found, expected):
        numbers, others = NUMBER.findall(line), NUMBER.findall(other)
        if NUMBER.sub("#", line) != NUMBER.sub("#", other) or len(numbers) != len(others):
            return False
        if not all(map(is_near, numbers, others)):
            return False
    return True


# ---- making the files

def make(suite, test, folder):
    """None, or what went wrong."""
    import run
    import through_c
    name = test.name.replace("/", "-")
    code = folder / f"{name}.cu"
    made = run.execute(suite, [str(suite.slope), "build", test.source.path.name, "-target", "cuda", "-o", str(code),
                               *through_c.arguments(test)], test.source.path.parent)
    if made.status and LACKING.search(made.err):
        return None
    if made.status or made.trouble:
        return f"slope build: {made.trouble or made.err}"
    if "int main(void)" not in code.read_text():    # its entry point has another name, and a host would launch it
        code.unlink()
        return None
    (folder / f"{name}.expected").write_text("".join(f"{line}\n" for line in through_c.expected_of(test)))
    return None


def make_hosted(suite, folder):
    """Kernels of tests/emit with a host program beside them: one file of both. What went wrong, by name."""
    import run
    for main in sorted((suite.root / "emit").glob("*.d/main.cu")):
        source, code = main.parent.with_suffix(".slang"), folder / f"emit-{main.parent.stem}.cu"
        made = run.execute(suite, [str(suite.slope), "build", source.name, "-target", "cuda"], source.parent)
        if made.status or made.trouble:
            yield f"{source.stem} to CUDA", made.trouble or made.err
            continue
        code.write_text(made.out + main.read_text())
        code.with_suffix(".expected").write_text((main.parent / "expected").read_text())


def generate(build, folder, filters=(), jobs=None, share=1):
    """(number of files, failures)"""
    import run
    import through_c
    suite = run.Suite(build)
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.cu"), *folder.glob("*.expected")]:
        old.unlink()
    tests = through_c.choose(suite, filters, share)
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        problems = list(pool.map(lambda test: make(suite, test, folder), tests))
    failures = [(f"{test.name} to CUDA", problem) for test, problem in zip(tests, problems) if problem]
    failures += make_hosted(suite, folder)
    return len(list(folder.glob("*.cu"))), failures


# ---- compiling and running them

def attempt(command, seconds, folder=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, cwd=folder)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"took more than {seconds} s")


def check_file(nvcc, code, gpu, architecture):
    """None, or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="slope-cuda-") as temporary:
        program = f"{temporary}/t"
        kind = ["-o", program] if gpu else ["-cubin", "-Xptxas", "-O0", "-o", f"{program}.cubin"]   # nobody runs it
        compiled = attempt([nvcc, f"-arch={architecture}", "-O1", "-w", str(code), *kind], NVCC_SECONDS)
        if compiled.returncode:
            return f"nvcc: {compiled.stderr[:3000]}"
        if not gpu:
            return None
        result = attempt([program], RUN_SECONDS)
    expected = code.with_suffix(".expected").read_text().splitlines()
    if result.returncode:
        return f"exit status {result.returncode}\n{result.stdout[-500:]}{result.stderr[-1500:]}"
    if not agree(result.stdout.splitlines(), expected):
        return "\n".join(list(difflib.unified_diff(expected, result.stdout.splitlines(), "expected", "printed",
                                                   lineterm=""))[:30])
    return None


def check_files(folder, filters=(), jobs=None):
    """(number passed, failures)"""
    nvcc, gpu = find_nvcc(), has_gpu()
    if not nvcc:
        print("no nvcc: CUDA is not compiled")
        return 0, []
    print("on the GPU" if gpu else "no GPU: compiled only")
    files = [code for code in sorted(Path(folder).glob("*.cu"))
             if not filters or any(part.replace("/", "-") in code.name for part in filters)]
    if not gpu and not filters:
        large = [code for code in files if code.stat().st_size > LARGE]
        files = [code for code in files if code not in large]
        print("".join(f"{code.stem}: not compiled, nvcc takes minutes for so much\n" for code in large), end="")
    architecture = "native" if gpu else "sm_90"
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        problems = list(pool.map(lambda code: check_file(nvcc, code, gpu, architecture), files))
    failures = [(f"{code.stem} through CUDA", problem) for code, problem in zip(files, problems) if problem]
    return len(files) - len(failures), failures


def check_ptx(suite, test, folder):
    """PTX of the program, which the assembler takes. None, or what went wrong."""
    import through_c
    code = Path(folder) / (test.name.replace("/", "-") + ".ptx")
    made = attempt([str(suite.slope), "build", test.source.path.name, "-target", "ptx-nvrtc", "-o", str(code), *through_c.arguments(test)], NVCC_SECONDS,
                   test.source.path.parent)
    if made.returncode:
        return None if LACKING.search(made.stderr) else made.stderr[-3000:]
    assembled = attempt(["ptxas", "-arch=sm_90", "-O0", str(code), "-o", "/dev/null"], NVCC_SECONDS)
    return assembled.stderr[:3000] if assembled.returncode else None


def run_ptx(build, filters=(), jobs=None, share=1):
    """(number passed, failures); what NVRTC and the assembler are needed for"""
    import run
    import through_c
    if not shutil.which("ptxas"):
        print("no ptxas: PTX is not made")
        return 0, []
    suite = run.Suite(build)
    tests = through_c.choose(suite, filters, share)
    with tempfile.TemporaryDirectory(prefix="slope-ptx-") as folder, concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        problems = list(pool.map(lambda test: check_ptx(suite, test, folder), tests))
    failures = [(f"{test.name} to PTX", problem) for test, problem in zip(tests, problems) if problem]
    return len(tests) - len(failures), failures


def run_all(build, filters=(), jobs=None, share=1):
    """(number passed, failures)"""
    with tempfile.TemporaryDirectory(prefix="slope-cuda-") as folder:
        _, failures = generate(build, folder, filters, jobs, share)
        passed, more = check_files(folder, (), jobs)
    made, unmade = run_ptx(build, filters, jobs, share if share == 1 else 4 * share)
    return passed + made, failures + more + unmade


def main():
    import run
    parser = run.programs_parser()
    parser.add_argument("--generate", metavar="DIR")
    parser.add_argument("--run", metavar="DIR")
    options = parser.parse_args()
    if options.run:
        passed, failures = check_files(options.run, options.names, options.jobs)
    elif options.generate:
        passed, failures = generate(options.build, options.generate, options.names, options.jobs, options.of)
    else:
        passed, failures = run_all(options.build, options.names, options.jobs, options.of)
    for name, problem in failures:
        print(f"--- {name}\n{problem}")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
