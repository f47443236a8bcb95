"""JAX: values and derivatives through jit, grad and vmap, where JAX is installed."""
import numpy as np
import pytest
import slope

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import slope.jax  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

PROGRAM = """
[Differentiable] float power(float3 x, float s, int n) { float y = 1; for (int i = 0; i < n; i++) y *= dot(x, x) * s; return y; }
[Differentiable] float3 turned(float3 x, float s) { return s * x * x.yzx; }
[Differentiable] double wide(double x) { return x * x * x; }
[Differentiable] float outs(float3 y, inout float q, out int n) { n = 3; float r = dot(y, y) * q; q = q * q; return r; }
[Differentiable] float scaled(float x, float y = 2) { return x * x * y; }
[Differentiable] float corners(float2x2 a, float b[3]) { return a[0][0] * a[1][1] * b[1] + a[0][1] * b[2] * b[2]; }
struct S { float a; }
[Differentiable] float inside(S s, float x) { return x; }
"""
X = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]], np.float32)


@pytest.fixture(scope="module")
def m():
    return slope.compile(PROGRAM)


def test_values_and_gradients(m):
    f, x = slope.jax.wrap(m.power), jnp.asarray(X[0])
    assert np.isclose(f(x, 0.5, 2), 49) and np.isclose(jax.jit(f)(x, 0.5, 2), 49)
    assert np.allclose(jax.jit(jax.grad(f))(x, 0.5, 2), slope.grad(m.power)([1, 2, 3], 0.5, 2))
    rows = jnp.ones((4, 3))
    assert np.allclose(jax.grad(lambda s: f(rows, s, 1).sum())(0.5), 12)
    assert np.allclose(f(x=rows, s=0.5, n=2), 2.25)


def test_second_derivatives(m):
    turned, corners = slope.jax.wrap(m.turned), slope.jax.wrap(m.corners)
    check_grads(turned, (X, jnp.float32(0.5)), order=2, modes=["rev"], atol=2e-2, rtol=2e-2)
    check_grads(corners, (X[:, :2], X[0]), order=2, modes=["rev"], atol=2e-2, rtol=2e-2)
    hessian = jax.jacrev(jax.jacrev(lambda x: turned(x, 0.5).sum()))(X[0])
    assert np.allclose(hessian, [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])


def test_vmap(m):
    power, turned = slope.jax.wrap(m.power), slope.jax.wrap(m.turned)
    assert np.allclose(jax.vmap(lambda row: power(row, 0.5, 2))(jnp.ones((4, 3))), 2.25)
    s = jnp.asarray([1.0, 2.0])
    assert np.allclose(jax.vmap(turned)(X, s), X * X[:, [1, 2, 0]] * [[1], [2]])
    rows = jnp.stack([X, X + 1, X + 2])  # rows of its own, and a batch in front
    assert np.allclose(jax.vmap(turned)(rows, jnp.arange(3.0))[2], turned(X + 2, 2.0))
    by_row = jax.jit(jax.vmap(jax.grad(lambda x, s: turned(x, s).sum(), (0, 1)), (0, None)))(X, 0.5)
    assert np.allclose(by_row[1], [11, -1.5 - 1 + 1.0]) and by_row[0].shape == X.shape
    assert jax.vmap(jax.vmap(turned, (0, None)), (None, 0))(X, s).shape == (2, 2, 3)


def test_several_results_and_integers(m):
    outs = slope.jax.wrap(m.outs)
    r, q, n = jax.jit(outs)(X, 2.0)
    assert n.dtype == jnp.int32 and np.allclose(r, [28, 10.5]) and np.allclose(q, 4)
    gradient = jax.grad(lambda y, q: outs(y, q)[0].sum() + outs(y, q)[1].sum(), (0, 1))(X, 2.0)
    assert np.allclose(gradient[0], 4 * X) and np.isclose(gradient[1], 14 + 5.25 + 8)


def test_types_are_those_of_jax(m):
    wide = slope.jax.wrap(m.wide)
    assert wide(2.0).dtype == jnp.float32 and np.isclose(jax.grad(wide)(2.0), 12)
    assert np.isclose(jax.grad(jax.grad(wide))(2.0), 12)


def test_defaults_may_be_left_out(m):
    scaled = slope.jax.wrap(m.scaled)
    assert np.isclose(scaled(3.0), 18) and np.isclose(jax.grad(scaled)(3.0), 12)


def test_what_is_wrong_is_said(m):
    with pytest.raises(TypeError, match="only numbers and arrays go to JAX"):
        slope.jax.wrap(m.inside)
    with pytest.raises(ValueError, match="does not end"):
        jax.jit(slope.jax.wrap(m.turned))(jnp.ones(2), 1.0)
    with pytest.raises(TypeError, match="int was expected"):
        slope.jax.wrap(m.power)(X[0], 1.0, 1.5)
