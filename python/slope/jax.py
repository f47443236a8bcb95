"""Functions of Slang in programs of JAX, on the CPU.

    f = slope.jax.wrap(m.f)
    jax.grad(lambda x: f(x, 2.0).sum())(x)

The function is called back from the compiled program (`jax.pure_callback`); its derivative in reverse mode is the one that Slope makes
(`jax.custom_vjp`). Rows are broadcast as with numpy, so that `jax.vmap` calls it with all of them at once.
"""
from __future__ import annotations

from typing import Any, Callable, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from ._derivatives import Derivative, as_tuple, lead_of
from ._module import Function


def wrap(function: Function) -> Callable[..., Any]:
    """The function as an operation of JAX, with a derivative in reverse mode. All its arguments are numbers or arrays."""
    derivative = Derivative(function)
    for param in [*function.inputs, *derivative.slots]:
        if not param.type.plain:
            raise TypeError(f"{function.expression}: '{param.name}' is a {param.type.name}; only numbers and arrays go to JAX")

    def shapes(values: Tuple[Any, ...]) -> Any:
        lead = lead_of(function, [np.broadcast_to(np.zeros((), value.dtype), value.shape) for value in values])
        found = [jax.ShapeDtypeStruct(lead + slot.type.shape, slot.type.scalar) for slot in derivative.slots]
        return found[0] if len(found) == 1 else tuple(found)

    def evaluate(*values: Any) -> Any:
        found = [np.asarray(part, slot.type.scalar)
                 for part, slot in zip(as_tuple(function.call([np.asarray(value) for value in values])), derivative.slots)]
        return found[0] if len(found) == 1 else tuple(found)

    def pull(cotangents: Any, *values: Any) -> List[np.ndarray]:
        arrays = [np.asarray(value) for value in values]
        seeds = derivative.seeds(cotangents if len(derivative.slots) == 1 else tuple(map(np.asarray, cotangents)))
        found = derivative.reduce(derivative.pull(arrays, seeds), arrays)
        return [np.asarray(gradient, value.dtype) for gradient, value in zip(found, arrays) if gradient is not None]

    @jax.custom_vjp
    def operation(*values: Any) -> Any:
        return jax.pure_callback(evaluate, shapes(values), *values)

    def forward(*values: Any) -> Tuple[Any, Any]:
        return operation(*values), values

    def backward(values: Any, cotangents: Any) -> Tuple[Any, ...]:
        smooth = derivative.differentiable
        wanted = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value, one in zip(values, smooth) if one]
        found = iter(jax.pure_callback(pull, wanted, cotangents, *values))
        return tuple(next(found) if one else zero_of(value) for value, one in zip(values, smooth))

    operation.defvjp(forward, backward)
    return lambda *args, **named: operation(*[jnp.asarray(value) for value in function.bind(args, named)])


def zero_of(value: Any) -> Any:
    """What JAX wants as the derivative by something that has none."""
    return jnp.zeros_like(value) if jnp.issubdtype(value.dtype, jnp.floating) else np.zeros(value.shape, jax.dtypes.float0)
