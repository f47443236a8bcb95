"""How functions are named and chosen: defaults, overloads, methods, generics; arrays behind tensors."""
import numpy as np
import pytest
import slope

PROGRAM = """
[Differentiable] float scaled(float x, float y = 2, int n = 3) { return x * y * n; }
[Differentiable] float turned(float2x2 m, float2 v = float2(1, 2)) { return mul(m, v).x; }
[Differentiable] float square(float x) { return x * x; }
[Differentiable] float3 square(float3 x) { return x * x; }
float square(float x, float y) { return x * y; }
void split(float x, out float half, out float rest, float at = 0.5) { half = x * at; rest = x - half; }
struct Camera {
    float focal;
    float2 project(float3 p) { return p.xy * focal / p.z; }
    float zoomed(float k = 2) { return focal * k; }
    static float unit() { return 1; }
}
T twice<T : __BuiltinFloatingPointType>(T x) { return x + x; }
float total(TensorView<float> t) {
    float sum = 0;
    for (uint i = 0; i < t.size(0); i++)
        for (uint k = 0; k < t.size(1); k++) sum += t[uint2(i, k)] * (i + 1);
    return sum;
}
"""


@pytest.fixture(scope="module")
def n():
    return slope.compile(PROGRAM)


def test_arguments_with_defaults_may_be_left_out(n):
    assert [n.scaled(2.0), n.scaled(2.0, 3.0), n.scaled(2.0, 3.0, 1), n.scaled(x=2.0), n.scaled(2.0, y=5.0)] == [12, 18, 6, 12, 30]
    assert n.scaled(np.arange(3.0)).tolist() == [0, 6, 12]
    assert n.split(2.0) == (1.0, 1.0) and n.split(2.0, 0.25) == (0.5, 1.5)
    assert n.turned([[1, 2], [3, 4]]) == 5
    with pytest.raises(TypeError, match="the argument 'y' is missing"):
        n.scaled(2.0, n=1)
    with pytest.raises(TypeError, match="the argument 'x' is missing"):
        n.scaled()
    with pytest.raises(TypeError, match="^scaled has no parameter 'z'"):
        n.scaled(2.0, z=1)


def test_derivatives_know_defaults(n):
    assert slope.grad(n.scaled)(2.0) == 6 and slope.grad(n.scaled, (0, 1))(2.0, 3.0) == (9, 6)
    assert slope.value_and_grad(n.scaled)(2.0) == (12, 6)
    assert slope.vjp(n.scaled, 2.0)[1](1.0) == (6,) and slope.jvp(n.scaled, (2.0,), (1.0,)) == (12, 6)
    assert slope.jacobian(n.turned)([[1, 2], [3, 4]]).tolist() == [[1, 2], [0, 0]]
    assert slope.hessian(n.scaled)(2.0) == 0


def test_overloads_are_chosen_by_arguments(n):
    assert n.square(3.0) == 9 and n.square(3.0, 4.0) == 12 and n.square([1, 2, 3]).tolist() == [1, 4, 9]
    assert n.square(np.ones(4)).shape == (4,) and n.square(np.ones((4, 3))).shape == (4, 3)
    assert slope.grad(n["square(float)"])(3.0) == 6
    assert slope.jacobian(n["square(float3)"])([1, 2, 3]).diagonal().tolist() == [2, 4, 6]
    with pytest.raises(TypeError, match=r"name one by its types: m\["):
        slope.grad(n.square)
    with pytest.raises(TypeError, match="no overload of square takes these arguments:\n    float square"):
        n.square("x")


def test_methods_are_attributes_of_their_type(n):
    camera = n.Camera(focal=2.0)
    assert n.Camera.project(camera, [1, 2, 4]).tolist() == [0.5, 1]
    assert n.Camera.project(camera, np.ones((5, 3))).shape == (5, 2)
    assert n.Camera.unit() == 1 and n.Camera.zoomed(camera) == 4 and n.Camera.zoomed(camera, 3.0) == 6
    with pytest.raises(AttributeError, match="has no member 'nope'"):
        n.Camera.nope


def test_generics_are_named_by_their_arguments(n):
    assert n["twice<double>"](1e300) == 2e300 and n["twice<float>"](1.5) == 3


def test_arrays_stand_for_tensors(n):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert n.total(array) == 3 + 2 * 12
    with pytest.raises(ValueError, match="at most 5 dimensions, the array 6"):
        n.total(np.zeros((1,) * 6, np.float32))
    with pytest.raises(ValueError, match="not contiguous"):
        n.total(array.T)
