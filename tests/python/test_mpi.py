"""The example of many processes in C, where MPI is installed."""
import os
import shutil
import subprocess

import pytest
from conftest import ROOT

FLAGS = ["--allow-run-as-root", "--oversubscribe"]  # of Open MPI: in containers, on small machines


@pytest.mark.skipif(not shutil.which("mpicc") or not shutil.which("mpirun"), reason="MPI is not installed")
def test_two_processes_have_the_gradient_of_one(tmp_path):
    library = os.environ.get("SLOPE_LIBRARY", str(ROOT / "build"))
    folder = library if os.path.isdir(library) else os.path.dirname(library)
    example = ROOT / "examples" / "mpi"
    subprocess.run(["mpicc", str(example / "fit.c"), f"-I{ROOT / 'include'}", f"-L{folder}", "-lslope", "-lm",
                    f"-Wl,-rpath,{os.path.abspath(folder)}", "-o", str(tmp_path / "fit")], check=True)
    result = subprocess.run(["mpirun", *FLAGS, "-np", "2", str(tmp_path / "fit")], cwd=example, capture_output=True, text=True, timeout=120)
    assert result.stdout == "the gradient of 2 processes is that of one\nweights 3.00 -1.00 0.50\n", result.stderr
