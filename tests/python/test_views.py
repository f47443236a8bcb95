"""Gradients of kernels as they are written for PyTorch (bench/views.slang), against differences of the kernels themselves, in double."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))
import views

COMPILED = ("linear", "splat", "volume", "bundle", "network")  # the others are interpreted, which takes less


@pytest.mark.parametrize("name", views.KERNELS)
def test_gradients_are_slopes(name):
    assert views.error_of_gradient(name, 1, interpret=name not in COMPILED, cache=False) < 1e-6


@pytest.mark.parametrize("name", COMPILED[:3])
@pytest.mark.parametrize("lanes", [1, 16])
def test_gradients_are_slopes_with_lanes(name, lanes):
    assert views.error_of_gradient(name, 1, lanes=lanes, threads=1, cache=False) < 1e-6
