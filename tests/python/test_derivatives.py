"""Derivatives in the manner of JAX: against differences, in both modes, with rows and without."""
import numpy as np
import pytest
import slope
from conftest import differences

X, S = np.array([0.3, -1.2, 0.7]), 1.5


def test_gradients_are_those_of_differences(m):
    value, (by_x, by_s) = slope.value_and_grad(m.cubic, (0, 1))(X, S)
    assert value == m.cubic(X, S)
    assert np.allclose(by_x, differences(lambda x: m.cubic(x, S), X), atol=1e-8)
    assert np.allclose(by_s, differences(lambda s: m.cubic(X, s), S), atol=1e-8)


def test_modes_agree(m):
    u = np.array([0.2, 0.5, -1.0])
    value, tangent = slope.jvp(m.cubic, (X, S), (u, 0.25))
    by_x, by_s = slope.vjp(m.cubic, X, S)[1](1.0)
    assert value == m.cubic(X, S) and np.isclose(tangent, by_x @ u + by_s * 0.25)
    assert np.isclose(slope.jvp(m.cubic, (X, S), (u, None))[1], by_x @ u)


def test_gradients_of_rows(m):
    rows = np.random.default_rng(2).normal(size=(7, 3))
    one = slope.grad(m.cubic)
    assert np.allclose(one(rows, S), [one(row, S) for row in rows])
    by_s = slope.grad(m.cubic, 1)
    assert np.isclose(by_s(rows, S), sum(by_s(row, S) for row in rows))  # shared by all rows
    assert by_s(rows, np.full((7, 1), S)).shape == (7, 1)
    assert slope.grad(m.cubic)(np.zeros((0, 3)), S).shape == (0, 3)
    assert slope.jacobian(m.turned)(np.zeros((0, 3))).shape == slope.hessian(m.cubic)(np.zeros((0, 3)), S).shape == (0, 3, 3)
    assert slope.jacobian(m.cubic)(np.zeros((2, 0, 3)), S).shape == (2, 0, 3)


def test_gradients_of_structs(m):
    material = {"base": [1, 2, 3], "rough": 0.5, "id": 2}
    gradient = slope.grad(m.shade)(material, 3.0)
    assert set(gradient) == {"base", "rough"} and np.array_equal(gradient.base, [0, 3, 0]) and gradient.rough == 12
    rows = slope.grad(m.shade)(dict(material, rough=np.arange(4.0)), 3.0)
    assert rows.rough.shape == (4,) and np.allclose(rows.base, [0, 36, 0])
    assert [part.rough for part in slope.grad(m.total)([material, dict(material, rough=4)])] == [4, 0.5]


def test_several_results(m):
    (y, q, w), pullback = slope.vjp(m.outs, [1, 2, 3], 2.0)
    by_y, by_q = pullback(([1, 0, 0], 1, 1))
    assert np.array_equal(by_y, [4, 0, 0]) and by_q == 3
    _, (dy, dq, dw) = slope.jvp(m.outs, ([1, 2, 3], 2.0), ([1, 0, 0], 1.0))
    assert np.array_equal(dy, [2, 0, 0]) and dq == 2 and dw == 3


def test_jacobians(m):
    wanted = [[2, 1, 0], [0, 3, 2], [3, 0, 1]]
    assert np.array_equal(slope.jacobian(m.turned)([1, 2, 3]), wanted)
    rows = slope.jacobian(m.turned)(np.array([[1, 2, 3], [0, 0, 0]]))
    assert rows.shape == (2, 3, 3) and np.array_equal(rows[0], wanted) and not rows[1].any()
    assert np.array_equal(slope.jacobian(m.corners)([[1, 2], [3, 4]]), [[4, 0], [0, 1]])


def test_jacobians_by_columns_and_by_rows():
    code = """[Differentiable] double[6] wave(double2 x, double k[2])
        { double y[6]; for (int i = 0; i < 6; i++) y[i] = sin(x.x * i) * x.y * k[i % 2]; return y; }
        [Differentiable] double2 ends(double x[6]) { return double2(x[0] * x[5], x[1] * x[2] * x[3]); }
        [Differentiable] double3 wider(float x) { return double3(x, 1e60 * double(x), 3 * x); }
        [BackwardDerivative(twice_bwd)] double2 twice(double x) { return double2(2 * x, x * x); }
        void twice_bwd(inout DifferentialPair<double> x, double2 d) { x = diffPair(x.p, 2 * d.x + 2 * x.p * d.y); }"""
    m = slope.compile(code)
    x, k = np.array([0.3, 2.0]), np.array([1.5, -1.0])
    by_x, by_k = slope.jacobian(m.wave, (0, 1))(x, k)
    assert by_x.shape == (6, 2) and np.allclose(by_x, [differences(lambda y: m.wave(y, k)[i], x) for i in range(6)], atol=1e-8)
    assert np.allclose(by_k, [differences(lambda w: m.wave(x, w)[i], k) for i in range(6)], atol=1e-8)
    rows = slope.jacobian(m.wave)(np.stack([x, 2 * x, 3 * x]), k)
    assert rows.shape == (3, 6, 2) and np.allclose(rows[0], by_x, rtol=1e-14)
    assert np.array_equal(slope.jacobian(m.ends)(np.arange(6.0)), [[5, 0, 0, 0, 0, 0], [0, 6, 3, 2, 0, 0]])
    assert slope.jacobian(m.wider)(1.0).dtype == np.float32  # a row has the type of the argument
    assert np.array_equal(slope.jacobian(m.twice)(3.0), [2, 6])


def test_hessians(m):
    gradient = slope.grad(m.cubic)
    wanted = np.array([differences(lambda x: gradient(x, S)[k], X) for k in range(3)])
    found = slope.hessian(m.cubic)(X, S)
    assert np.allclose(found, wanted, atol=1e-8) and np.allclose(found, found.T)
    u = np.array([0.2, 0.5, -1.0])
    by_x, by_s = slope.hvp(m.cubic, (X, S), (u, None))
    assert np.allclose(by_x, found @ u)
    (xx, xs), (sx, ss) = slope.hessian(m.cubic, (0, 1))(X, S)
    assert np.allclose(xx, found) and np.allclose(xs, sx) and np.isclose(by_s, xs @ u)
    assert slope.hessian(m.cubic)(np.zeros((4, 3)), S).shape == (4, 3, 3)


@pytest.mark.parametrize("name, w", [("line", np.array([2.0, 3.0])), ("bilinear", np.arange(6.0).reshape(2, 3))])
@pytest.mark.parametrize("x", [1.5, np.array([0.5, 1.0, -2.0])], ids=["one", "rows"])
def test_references_are_arrays(m, name, w, x):
    f = m[name]
    by_w, by_x = slope.grad(f, (0, 1))(w, x)
    assert np.allclose(by_w, differences(lambda w: np.sum(f(w, x)), w), atol=1e-7) and by_w.shape == w.shape
    u = np.cos(w)
    assert np.isclose(np.sum(slope.jvp(f, (w, x), (u, None))[1]), (u * by_w).sum())


def test_second_derivatives_of_references(m):
    w, x, u = np.array([2.0, 3.0]), np.array([0.5, 1.0, -2.0]), np.array([0.3, -1.0])
    moved = slope.hvp(m.line, (w, x), (u, None))[0]
    gradient = slope.grad(m.line)
    assert np.allclose(moved, (gradient(w + 1e-6 * u, x) - gradient(w - 1e-6 * u, x)) / 2e-6, atol=1e-6)


def test_custom_derivatives_hold_after_a_call():
    module = slope.compile("""
        [BackwardDerivative(backward)] float own(float x) { return x * x; }
        void backward(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 100 * d); }
        [Differentiable] float f(float x) { return 2 * own(x); }""")
    assert module.f(1.0) == 2.0 and slope.grad(module.f)(1.0) == 200.0


def test_pairs_for_those_who_know_slang(m):
    (x,) = [m.power.bwd_diff({"p": 2.0, "d": 0.0}, 3, 1.0)]
    assert x.d == 12.0
    assert m.power.fwd_diff({"p": 2.0, "d": 1.0}, 3) == {"p": 8.0, "d": 12.0}
    assert m["fwd_diff(power)"](x=[{"p": 2.0, "d": 1.0}][0], n=3).d == 12.0


def test_gradcheck(m):
    result = m.cubic.gradcheck(samples=8)
    assert result and result.verdict == "right" and result.samples == 8
    wrong = slope.compile("""
        [BackwardDerivative(g)] float f(float x) { return x * x; }
        void g(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 3 * x.p * d); }""")
    with pytest.raises(slope.SlopeError, match="f: "):
        wrong.f.gradcheck()
