"""Functions of Slang in programs of JAX.

    f = slope.jax.wrap(m.f)
    jax.grad(lambda x: f(x, 2.0).sum())(x)

The function is called back from the compiled program (`jax.pure_callback`), on the CPU; its derivative in reverse mode is the one that Slope
makes (`jax.custom_vjp`), and so is the derivative of that. Rows are broadcast as with numpy, so that `jax.vmap` calls it with all of them at once.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from ._derivatives import Derivative, as_tuple, lead_of
from ._module import Function
from ._types import Type

Arrays = Tuple[Any, ...]


def dtype_of(kind: Type) -> Any:
    """The type that JAX has for the numbers: of 32 bits, unless jax_enable_x64 is set."""
    return jnp.asarray(np.zeros((), kind.scalar)).dtype


def callback(function: Callable[..., Any], wanted: Sequence[Any], *arguments: Any, vmap_method: str) -> List[Any]:
    return list(jax.pure_callback(function, list(wanted), *arguments, vmap_method=vmap_method))


def like(value: Any) -> Any:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def zero_of(value: Any) -> Any:
    """What JAX wants as the derivative by something that has none."""
    return jnp.zeros_like(value) if jnp.issubdtype(value.dtype, jnp.floating) else np.zeros(value.shape, jax.dtypes.float0)


class Operation:
    """A function with its derivatives. What is called back takes arrays whose leading dimensions are as many, so that one that vmap puts in
    front of all of them is the first of each."""

    def __init__(self, function: Function):
        self.function, self.derivative = function, Derivative(function)
        self.slots = self.derivative.slots
        for param in [*function.inputs, *self.slots]:
            if not param.type.plain:
                raise TypeError(f"{function.expression}: '{param.name}' is a {param.type.name}; only numbers and arrays go to JAX")
        known = {param.name for param in self.derivative.backward.params}
        self.smooth_slots = [place for place, slot in enumerate(self.slots) if slot.name in known and slot.type.is_floating]
        self.smooth = [place for place, smooth in enumerate(self.derivative.differentiable) if smooth]
        self.shorter: Dict[Function, "Operation"] = {}
        self.pull = jax.custom_vjp(self._pull)
        self.pull.defvjp(lambda values, seeds: (self.pull(values, seeds), (values, seeds)), self._pull_backward)
        self.value = jax.custom_vjp(self._value)
        self.value.defvjp(lambda *values: (self.value(*values), values), self._value_backward)

    def __call__(self, *args: Any, **named: Any) -> Any:
        shorter = self.function.given(args, named)
        if shorter is not self.function:
            return self.shorter.setdefault(shorter, Operation(shorter))(*args, **named)
        values = [jnp.asarray(value) for value in self.function.bind(args, named)]
        found = self.value(*self._aligned(values))
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<operation of JAX: {self.function.__doc__}>"

    # ---- in the program of JAX

    def _lead(self, values: Sequence[Any]) -> Tuple[int, ...]:
        return lead_of(self.function, [np.broadcast_to(np.zeros((), value.dtype), value.shape) for value in values])

    def _aligned(self, values: Sequence[Any]) -> List[Any]:
        """With as many leading dimensions each."""
        rank, ranks = len(self._lead(values)), [len(param.type.shape) for param in self.function.inputs]
        return [value.reshape((1,) * (rank + inner - value.ndim) + value.shape) for value, inner in zip(values, ranks)]

    def _value(self, *values: Any) -> Arrays:
        lead, dtypes = self._lead(values), [dtype_of(slot.type) for slot in self.slots]
        shapes = [jax.ShapeDtypeStruct(lead + slot.type.shape, dtype) for slot, dtype in zip(self.slots, dtypes)]
        return tuple(callback(functools.partial(self.run_value, dtypes), shapes, *values, vmap_method="expand_dims"))

    def _value_backward(self, values: Arrays, cotangents: Arrays) -> Arrays:
        if not self.smooth or not self.smooth_slots:
            return tuple(zero_of(value) for value in values)
        return self._spread(self.pull(values, tuple(cotangents[place] for place in self.smooth_slots)), values)

    def _spread(self, found: Sequence[Any], values: Arrays) -> Arrays:
        """Gradients by all arguments."""
        given = iter(found)
        return tuple(next(given) if place in self.smooth else zero_of(value) for place, value in enumerate(values))

    def _pull(self, values: Arrays, seeds: Arrays) -> Arrays:
        return tuple(callback(self.run_pull, [like(values[place]) for place in self.smooth], values, seeds,
                              vmap_method="broadcast_all"))

    def _pull_backward(self, kept: Tuple[Arrays, Arrays], along: Arrays) -> Tuple[Arrays, Arrays]:
        values, seeds = kept
        wanted = [*[like(values[place]) for place in self.smooth], *[like(seed) for seed in seeds]]
        found = callback(self.run_second, wanted, values, seeds, tuple(along), vmap_method="broadcast_all")
        return self._spread(found[:len(self.smooth)], values), tuple(found[len(self.smooth):])

    # ---- called back

    def run_value(self, dtypes: Sequence[Any], *values: Any) -> List[np.ndarray]:
        found = as_tuple(self.function.call([np.asarray(value) for value in values]))
        return [np.asarray(part, dtype) for part, dtype in zip(found, dtypes)]

    def _seeds(self, seeds: Sequence[Any]) -> Dict[str, Any]:
        found: Dict[str, Any] = {slot.name: None for slot in self.slots}
        found.update((self.slots[place].name, np.asarray(seed)) for place, seed in zip(self.smooth_slots, seeds))
        return found

    def _reduced(self, gradients: Sequence[Any], values: Sequence[np.ndarray]) -> List[np.ndarray]:
        found = self.derivative.reduce(gradients, values)
        return [np.asarray(found[place], values[place].dtype).reshape(values[place].shape) for place in self.smooth]

    def run_pull(self, values: Arrays, seeds: Arrays) -> List[np.ndarray]:
        arrays = [np.asarray(value) for value in values]
        return self._reduced(self.derivative.pull(arrays, self._seeds(seeds)), arrays)

    def run_second(self, values: Arrays, seeds: Arrays, along: Arrays) -> List[np.ndarray]:
        """The derivatives of the gradient along `along`: by the arguments, and by the seeds, where it is the tangent of the results."""
        arrays, tangents = [np.asarray(value) for value in values], [None] * len(values)
        for place, move in zip(self.smooth, along):
            tangents[place] = np.asarray(move)  # type: ignore[call-overload]
        moved = self.derivative.push_pull(arrays, self._seeds(seeds), tangents)
        pushed = self.derivative.push(arrays, tangents)[1]
        by_slot = as_tuple(pushed) if len(self.slots) == 1 else pushed
        by_seed = [np.asarray(by_slot[place], seed.dtype).reshape(seed.shape) for place, seed in zip(self.smooth_slots, seeds)]
        return [*self._reduced(moved, arrays), *by_seed]


def wrap(function: Function) -> Callable[..., Any]:
    """The function as an operation of JAX, with derivatives in reverse mode. All its arguments are numbers or arrays."""
    return Operation(function)
