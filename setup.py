"""pip install . takes libslope along if it was built (`make`); otherwise the package looks for an installed one."""
import re
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
LIBRARIES = [path for path in (ROOT / "build" / name for name in ("libslope.so", "libslope-llvm.so")) if path.exists()]


class BuildWithLibraries(build_py):
    def run(self):
        super().run()
        for library in LIBRARIES:
            shutil.copy(library, Path(self.build_lib) / "slope" / library.name)


class Binary(Distribution):
    """The libraries are for one kind of machine."""

    def has_ext_modules(self):
        return bool(LIBRARIES)


version = re.search(r'#define SLOPE_VERSION "(.*)"', (ROOT / "include" / "slope.h").read_text())[1]
setup(version=version, cmdclass={"build_py": BuildWithLibraries}, distclass=Binary)
