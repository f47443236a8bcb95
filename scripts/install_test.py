#!/usr/bin/env python3
"""Installs a build into an empty folder and uses it from there, as a stranger would.

Every examples/*.c is compiled against the installed library, once by what pkg-config says and once by a CMake project,
and run in examples/; what it prints must be what the .out file beside it holds. The header must also be C++.

    scripts/install_test.py BUILD
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(stranger LANGUAGES C)
find_package(slope REQUIRED)
add_executable(stranger {source})
target_link_libraries(stranger PRIVATE slope::slope m)
"""
SUBPROJECT = """cmake_minimum_required(VERSION 3.20)
project(stranger LANGUAGES C)
add_subdirectory({root} slope EXCLUDE_FROM_ALL)
foreach(target slope::slope slope::static)
  if(NOT TARGET ${{target}})
    message(FATAL_ERROR "no target ${{target}}")
  endif()
endforeach()
"""
CLASH = """#include <slope.h>
int coerce(void) {{ return 0; }}
void *map_get(void *map) {{ return map; }}
{main}"""
USES = "#include <slope.h>\nint main(void) {{ return slope_version()[0] {test} '0'; }}\n"


class Trouble(Exception):
    pass


def execute(command, folder, **environment):
    result = subprocess.run(command, cwd=folder, env=dict(os.environ, **environment), capture_output=True, text=True,
                            timeout=120)
    if result.returncode:
        raise Trouble(f"{shlex.join(map(str, command))}\nexit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Installation:
    def __init__(self, build, folder):
        self.folder = Path(folder)
        self.prefix = self.folder / "prefix"
        execute(["cmake", "--install", build, "--prefix", self.prefix], ROOT)
        found = list(self.prefix.rglob("slope.pc"))
        if not found:
            raise Trouble("no slope.pc was installed")
        self.package_path = found[0].parent
        self.libraries = self.package_path.parent

    def by_pkg_config(self, source):
        flags = execute(["pkg-config", "--cflags", "--libs", "slope"], ROOT, PKG_CONFIG_PATH=str(self.package_path))
        program = self.folder / f"{source.stem}-pc"
        execute(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", source, "-o", program, *shlex.split(flags), "-lm",
                 f"-Wl,-rpath,{self.libraries}"], ROOT)
        return program

    def by_static_library(self, source):
        flags = execute(["pkg-config", "--static", "--cflags", "--libs", "slope"], ROOT,
                        PKG_CONFIG_PATH=str(self.package_path))
        words = [str(self.libraries / "libslope.a") if word == "-lslope" else word for word in shlex.split(flags)]
        program = self.folder / f"{source.stem}-static"
        execute(["gcc", "-std=c17", source, "-o", program, *words, f"-Wl,-rpath,{self.libraries}"], ROOT)  # for libslope-llvm.so
        return program

    def by_cmake(self, source):
        project = self.folder / f"{source.stem}-cmake"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT.format(source=source))
        execute(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}"], ROOT)
        execute(["cmake", "--build", project / "build"], ROOT)
        return project / "build" / "stranger"


def check_static_names(installation):
    """Names of the library's own are free for the host."""
    source = installation.folder / "clash.c"
    source.write_text(CLASH.format(main=USES.format(test="-").split("\n", 1)[1]))
    execute([installation.by_static_library(source)], ROOT)


def check_subdirectory(installation):
    project = installation.folder / "subdirectory"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(SUBPROJECT.format(root=ROOT))
    execute(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja"], ROOT)


def check_header_is_cpp(installation):
    source = installation.folder / "header.cc"
    source.write_text(USES.format(test="!="))
    execute(["clang", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
             "-I", installation.prefix / "include", source], ROOT)


def check_command_runs(installation):
    version = execute([installation.prefix / "bin" / "slope", "--version"], ROOT)
    if not version.startswith("slope "):
        raise Trouble(f"slope --version prints '{version}'")


def check_completion(installation):
    """In bash: `slope bu` becomes build, `slope run --watc` --watch; the manual page is there."""
    found = list(installation.prefix.rglob("bash-completion/completions/slope"))
    if not found or not list(installation.prefix.rglob("man1/slope.1")):
        raise Trouble("no completion, or no manual page, was installed")
    ask = 'source "$0"; COMP_WORDS=(slope "$@"); COMP_CWORD=$#; _slope; echo "${COMPREPLY[@]}"'
    for words, answer in ((["bu"], "build"), (["run", "--watc"], "--watch"), (["build", "x.slang", "-target", "cu"], "cuda")):
        said = execute(["bash", "-c", ask, found[0], *words], installation.folder).strip()
        if said != answer:
            raise Trouble(f"{words}: '{said}', not '{answer}'")


def check_python(installation):
    """The package finds the library that was installed with it."""
    packages = [path.parent.parent for path in installation.prefix.rglob("slope/py.typed")]
    if not packages:
        raise Trouble("the Python package was not installed")
    program = "import slope; print(slope.compile('float f(float x) { return x + 1; }').f(1))"
    environment = {name: value for name, value in os.environ.items() if name != "SLOPE_LIBRARY"}
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # with numpy, by scripts/setup.sh
    result = subprocess.run([python, "-B", "-c", program], env=dict(environment, PYTHONPATH=str(packages[0])),
                            capture_output=True, text=True, timeout=120)
    if result.stdout != "2.0\n":
        raise Trouble(f"found:\n{result.stdout}{result.stderr}")


def check_example(installation, source, way):
    expected = source.with_suffix(".out")
    if not expected.exists():
        raise Trouble(f"there is no {expected.name} beside it")
    printed = execute([way(installation, source)], source.parent)
    if printed != expected.read_text():
        raise Trouble(f"expected:\n{expected.read_text()}found:\n{printed}")


def all_checks(installation):
    """(name, function) of each."""
    yield "the header is C++", lambda: check_header_is_cpp(installation)
    yield "the command runs", lambda: check_command_runs(installation)
    yield "completion and manual", lambda: check_completion(installation)
    yield "the Python package", lambda: check_python(installation)
    plain = installation.folder / "plain.c"
    plain.write_text(USES.format(test="-"))
    ways = {"pkg-config": Installation.by_pkg_config, "CMake": Installation.by_cmake,
            "static": Installation.by_static_library}
    yield "pkg-config", lambda: execute([installation.by_pkg_config(plain)], ROOT)
    yield "CMake", lambda: execute([installation.by_cmake(plain)], ROOT)
    yield "names of the static library", lambda: check_static_names(installation)
    yield "add_subdirectory", lambda: check_subdirectory(installation)
    yield "static library", lambda: execute([installation.by_static_library(plain)], ROOT)
    for source in sorted((ROOT / "examples").glob("*.c")):
        for name, way in ways.items():
            yield f"{source.name} by {name}", lambda source=source, way=way: check_example(installation, source, way)


def run_all(build):
    """How many passed, and a list of (name, what went wrong)."""
    passed, failures = 0, []
    with tempfile.TemporaryDirectory(prefix="slope-install-") as folder:
        try:
            installation = Installation(build, folder)
        except (Trouble, OSError, subprocess.TimeoutExpired) as trouble:
            return 0, [("installation", str(trouble))]
        for name, function in all_checks(installation):
            try:
                function()
                passed += 1
            except (Trouble, OSError, subprocess.TimeoutExpired) as trouble:
                failures.append((f"installation: {name}", str(trouble)))
    return passed, failures


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    passed, failures = run_all(sys.argv[1])
    for name, what in failures:
        print(f"FAIL {name}\n    " + what.strip().replace("\n", "\n    "))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
