"""JAX: values and gradients through jit and vmap, where JAX is installed."""
import numpy as np
import pytest
import slope

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import slope.jax  # noqa: E402

PROGRAM = """
[Differentiable] float power(float3 x, float s, int n) { float y = 1; for (int i = 0; i < n; i++) y *= dot(x, x) * s; return y; }
struct S { float a; }
[Differentiable] float inside(S s, float x) { return x; }
"""


def test_values_and_gradients():
    m = slope.compile(PROGRAM)
    f, x = slope.jax.wrap(m.power), jnp.asarray([1.0, 2.0, 3.0])
    assert np.isclose(f(x, 0.5, 2), 49)
    assert np.allclose(jax.jit(jax.grad(f))(x, 0.5, 2), slope.grad(m.power)([1, 2, 3], 0.5, 2))
    rows = jnp.ones((4, 3))
    assert np.allclose(jax.vmap(lambda row: f(row, 0.5, 2))(rows), 2.25)
    assert np.allclose(jax.grad(lambda s: f(rows, s, 1).sum())(0.5), 12)


def test_structs_are_refused():
    with pytest.raises(TypeError, match="only numbers and arrays go to JAX"):
        slope.jax.wrap(slope.compile(PROGRAM).inside)
