"""Tests of the Python package, on the library that SLOPE_LIBRARY names, or build/libslope.so."""
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True
if "SLOPE_LIBRARY" in os.environ:  # for programs that run elsewhere
    os.environ["SLOPE_LIBRARY"] = os.path.abspath(os.environ["SLOPE_LIBRARY"])

PROGRAM = """
struct Material : IDifferentiable { float3 base; float rough; int id; }
struct Camera {
    float focal;
    float2 project(float3 p) { return p.xy * focal / p.z; }
}
[Differentiable] float product(float x, float3 y, no_diff float z) { return x * y.x * y.y + x * x * z; }
[Differentiable] float3 outs(float3 y, inout float q, out float w) { w = q * y.x; q = q * 2; return y * y; }
[Differentiable] double cubic(double3 x, double s) { return x.x * x.y * x.z * s * s + sin(x.x); }
[Differentiable] float3 turned(float3 x) { return x * x.yzx; }
[Differentiable] float corners(float2x2 a) { return a[0][0] * a[1][1]; }
[Differentiable] float shade(Material m, float x) { return m.rough * m.base.y * x * m.id; }
[Differentiable] float power(float x, int n) { float y = 1; for (int i = 0; i < n; i++) y *= x; return y; }
[Differentiable] float total(Material ms[2]) { return ms[0].rough * ms[1].rough; }
[Differentiable] double line(DiffBuffer<double> w, double x) { return w.load(0) * x * x + w.load(1) * w.load(0); }
[Differentiable] double bilinear(DiffTensor<double, 2> a, double x) {
    double sum = 0;
    for (int i = 0; i < a.size(0); i++)
        for (int k = 0; k < a.size(1); k++) sum += a.load({i, k}) * a.load({i, k}) * (i + 2 * k) * x;
    return sum;
}
T square<T : __BuiltinFloatingPointType>(T x) { return x * x; }
float plain(float x) { return x; }
float2x3 doubled(float2x3 m) { return m * 2; }
float element(StructuredBuffer<float> b, int i) { return b[i]; }
void fill(RWStructuredBuffer<float3> b, float3 x) { b[1] = x; }
bool inverted(bool b) { return !b; }
uint8_t small(uint8_t x) { return x; }
half halved(half x) { return x / half(2); }
double scaled(double x) { return x * scale; }
uniform float scale;
RWStructuredBuffer<float> data;
RWStructuredBuffer<float> other;
StructuredBuffer<Material> materials;
[shader("compute")] [numthreads(4, 1, 1)]
void ramp(uint3 t : SV_DispatchThreadID, uniform int start) { data[t.x] = scale * t.x + start; }
[shader("compute")] [numthreads(1, 1, 1)]
void roughness(uint3 t : SV_DispatchThreadID) { other[t.x] = materials[t.x].rough; }
void fails(int x) { if (x > 1) abort("it fails"); }
void says(int x) { printf("x = %d\\n", x); }
"""


@pytest.fixture(scope="session")
def m():
    import slope
    return slope.compile(PROGRAM, path="program.slang")


def differences(function, x, step=1e-6):
    """The gradient of a function of one array by central differences."""
    x = np.asarray(x, np.float64)
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        result[place] = (function(up) - function(down)) / (2 * step)
    return result
