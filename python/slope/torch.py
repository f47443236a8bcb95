"""Functions of Slang as differentiable operations of PyTorch, on tensors of the CPU.

    f = slope.torch.wrap(m.f)
    f(x, y).sum().backward()

Backward, forward mode (`torch.autograd.forward_ad`) and double backward (`create_graph=True`) are derivatives that Slope makes.
Rows are broadcast as with numpy. Tensors are seen where they lie; only results are new memory.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch

from ._derivatives import Derivative, as_tuple
from ._module import Function
from ._types import Type


def uncompiled(method: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile leaves the call as it is, between what it compiles before and after."""
    disable = getattr(getattr(torch, "compiler", None), "disable", None)
    return disable(method) if disable else method


def is_batched(value: Any) -> bool:
    """Whether torch.vmap has put one row in place of all of them."""
    for place in (getattr(torch._C, "_functorch", None), sys.modules.get("functorch._C")):
        test = getattr(place, "is_batchedtensor", None)
        if test and isinstance(value, torch.Tensor) and test(value):
            return True
    return False


def refuse_vmap(name: str, values: Sequence[Any]) -> None:
    if any(map(is_batched, values)):
        raise TypeError(f"{name} under vmap: call it with all rows at once; dimensions before those of its parameters are rows")


class Operation:
    """A function with its derivative."""

    def __init__(self, function: Function):
        self.function = function
        self.derivative = Derivative(function)
        known = {param.name for param in self.derivative.backward.params}
        self.smooth_slots = [slot.name in known for slot in self.derivative.slots]
        for slot in self.derivative.slots:
            if not slot.type.plain:
                raise TypeError(f"{function.expression} gives a {slot.type.name}, which is no tensor")

    @uncompiled
    def __call__(self, *args: Any, **named: Any) -> Any:
        shorter = self.function.given(args, named)
        if shorter is not self.function:
            return Operation(shorter)(*args, **named)
        values = self.function.bind(args, named)
        refuse_vmap(self.function.expression, values)
        call = Call(self, values)
        found = Apply.apply(call, *[values[place] for place in call.places])
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<operation of PyTorch: {self.function.__doc__}>"


class Call:
    """One call: which arguments are tensors, and what the others are."""

    def __init__(self, operation: Operation, values: Sequence[Any]):
        self.operation, self.function, self.derivative = operation, operation.function, operation.derivative
        self.places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]
        self.fixed = [None if isinstance(value, torch.Tensor) else value for value in values]
        for param, value in zip(self.function.inputs, values):
            if value is None:
                raise TypeError(f"{self.function.expression}: the argument '{param.name}' is None")
            refuse_hidden_tensors(param.name, value)
        self.smooth = [place for place in self.places if self.derivative.differentiable[place]
                       and values[place].is_floating_point()]

    def values(self, tensors: Sequence[torch.Tensor]) -> List[Any]:
        values = list(self.fixed)
        for place, tensor in zip(self.places, tensors):
            values[place] = memory_of(tensor, self.function.inputs[place].name)
        return values

    def seeds(self, cotangents: Sequence[Optional[torch.Tensor]]) -> Dict[str, Any]:
        slots = zip(self.derivative.slots, self.operation.smooth_slots, cotangents)
        return {slot.name: None if seed is None else memory_of(seed, "a gradient") for slot, smooth, seed in slots if smooth}

    def tangents(self, places: Sequence[int], tangents: Sequence[Optional[torch.Tensor]]) -> List[Any]:
        """Of all arguments; None is zero."""
        found: List[Any] = [None] * len(self.fixed)
        for place, tangent in zip(places, tangents):
            if tangent is not None and place in self.smooth:
                found[place] = memory_of(tangent, "a tangent")
        return found

    def results(self, found: Any) -> Tuple[Any, ...]:
        return tuple(None if part is None else tensor_of(part, slot.type)
                     for part, slot in zip(as_tuple(found), self.derivative.slots))

    def gradients(self, found: Sequence[Any], values: Sequence[Any], tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """Of the smooth arguments, in their shapes and types."""
        reduced, given = self.derivative.reduce(found, values), dict(zip(self.places, tensors))
        return [torch.as_tensor(np.asarray(reduced[place])).to(given[place].dtype) for place in self.smooth]


def refuse_hidden_tensors(name: str, value: Any) -> None:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for part in inside:
        if isinstance(part, torch.Tensor):
            raise TypeError(f"'{name}': tensors inside a {type(value).__name__} are not followed by PyTorch; "
                            "write a function that takes them one by one")
        refuse_hidden_tensors(name, part)


def memory_of(tensor: torch.Tensor, name: str) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise TypeError(f"'{name}' is on {tensor.device}; Slope runs on the CPU: give it as .cpu()")
    if tensor.layout != torch.strided:
        raise TypeError(f"'{name}' is sparse; give it as .to_dense()")
    return tensor.detach().resolve_neg().resolve_conj().numpy()


def tensor_of(value: Any, kind: Type) -> torch.Tensor:
    return torch.from_numpy(np.asarray(value, kind.scalar))


class Apply(torch.autograd.Function):
    """The function itself."""

    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.call = call
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        found = call.results(call.function.call(call.values(tensors)))
        ctx.mark_non_differentiable(*[part for part, smooth in zip(found, call.operation.smooth_slots) if not smooth])
        return found

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        call, tensors = ctx.call, ctx.saved_tensors
        found = dict(zip(call.smooth, Pull.apply(call, *tensors, *cotangents) if call.smooth else ()))
        return (None, *[found.get(place) for place in call.places])

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Optional[torch.Tensor]) -> Any:
        call = ctx.call
        values = call.values(ctx.saved_tensors)
        return call.results(call.derivative.push(values, call.tangents(call.places, tangents))[1])


class Pull(torch.autograd.Function):
    """The gradient of the function, as a function of its arguments and of the derivatives of its results."""

    @staticmethod
    def forward(ctx: Any, call: Call, *both: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.call = call
        ctx.save_for_backward(*both)
        tensors, cotangents = both[:len(call.places)], both[len(call.places):]
        values = call.values(tensors)
        return tuple(call.gradients(call.derivative.pull(values, call.seeds(cotangents)), values, tensors))

    @staticmethod
    def backward(ctx: Any, *along: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        call, both = ctx.call, ctx.saved_tensors
        found = iter(Second.apply(call, *both, *along))
        by_tensor = {place: next(found) for place in call.smooth}
        by_seed = [next(found) if smooth else None for smooth in call.operation.smooth_slots]
        return (None, *[by_tensor.get(place) for place in call.places], *by_seed)


class Second(torch.autograd.Function):
    """The derivatives of the gradient g = J(x)^T s along u: by s it is J(x) u, and by x, second derivatives being symmetric,
    how g changes along u."""

    @staticmethod
    def forward(ctx: Any, call: Call, *all_of_them: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.expression = call.function.expression
        count, results = len(call.places), len(call.derivative.slots)
        tensors, cotangents = all_of_them[:count], all_of_them[count:count + results]
        values, tangents = call.values(tensors), call.tangents(call.smooth, all_of_them[count + results:])
        moved = call.derivative.push_pull(values, call.seeds(cotangents), tangents)
        by_seed = call.results(call.derivative.push(values, tangents)[1])
        slots = zip(by_seed, call.operation.smooth_slots)
        return (*call.gradients(moved, values, tensors), *[part for part, smooth in slots if smooth])

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise RuntimeError(f"{ctx.expression}: third derivatives go through Slang, not through PyTorch; "
                           "wrap a function that computes the first ones")


def wrap(function: Function) -> Callable[..., Any]:
    """The function as a differentiable operation on tensors of the CPU. Arguments that are no tensors are constants."""
    return Operation(function)


class Module(torch.nn.Module):
    """A function some of whose arguments are parameters to be learned.

        layer = slope.torch.Module(m.f, weights=torch.zeros(3))
        layer(x)    # m.f(x, weights=layer.weights)
    """

    def __init__(self, function: Function, **parameters: Any):
        super().__init__()
        self._operation = Operation(function)
        names = [param.name for param in function.inputs]
        for name, value in parameters.items():
            if name not in names:
                raise TypeError(f"{function.expression} has no parameter '{name}'")
            self.register_parameter(name, torch.nn.Parameter(torch.as_tensor(value)))
        self._open = [name for name in names if name not in parameters]

    def forward(self, *args: Any, **named: Any) -> Any:
        if len(args) > len(self._open):
            raise TypeError(f"{self._operation.function.expression} takes {len(self._open)} more arguments, not {len(args)}")
        return self._operation(**dict(zip(self._open, args)), **named, **dict(self.named_parameters()))
