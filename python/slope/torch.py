"""Functions of Slang as differentiable operations of PyTorch, on tensors of the CPU or of a GPU.

    f = slope.torch.wrap(m.f)
    f(x, y).sum().backward()

Backward, forward mode (`torch.autograd.forward_ad`) and double backward (`create_graph=True`) are derivatives that Slope makes.
Rows are broadcast as with numpy. Tensors are seen where they lie; only results are new memory. In what torch.compile compiles, the function is
an operator that PyTorch knows by name (_operator.py).
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch

from . import _operator
from ._derivatives import Derivative, as_tuple
from ._module import Function
from ._types import Type


def uncompiled(method: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile leaves the call as it is, between what it compiles before and after."""
    disable = getattr(getattr(torch, "compiler", None), "disable", None)
    return disable(method) if disable else method


def is_compiling() -> bool:
    """Whether torch.compile is looking at this."""
    asked = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return bool(asked and asked())


HAS_TRANSFORMS = hasattr(torch.autograd.Function, "setup_context")  # torch.func, since PyTorch 2


def is_batched(value: Any) -> bool:
    """Whether vmap of PyTorch 1 has put one row in place of all of them."""
    places = (getattr(torch._C, "_functorch", None), sys.modules.get("functorch._C"))
    tests = [getattr(place, "is_batchedtensor") for place in places if hasattr(place, "is_batchedtensor")]
    return isinstance(value, torch.Tensor) and any(test(value) for test in tests)


def refuse_vmap(name: str, values: Sequence[Any]) -> None:
    if not HAS_TRANSFORMS and any(map(is_batched, values)):
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
        self.operator = _operator.register(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if is_compiling() and self.operator is not None and len(args) + len(named) == len(self.function.inputs):
            values = self.function.bind(args, named)
            if self.operator.takes(values):
                return self.operator(values)
        return self._call(args, named)

    @uncompiled
    def _call(self, args: Sequence[Any], named: Dict[str, Any]) -> Any:
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
        self._refuse_places(values)

    def _refuse_places(self, values: Sequence[Any]) -> None:
        """All tensors are in one place, but for single numbers on the CPU."""
        devices = {values[place].device: self.function.inputs[place].name for place in self.places
                   if values[place].dim() or values[place].device.type != "cpu"}
        if len(devices) > 1:
            places = " and ".join(f"'{name}' on {device}" for device, name in devices.items())
            raise TypeError(f"{self.function.expression}: the tensors are in different places, {places}")

    def kinds(self) -> List[Type]:
        """The types of the tensors."""
        return [self.function.inputs[place].type for place in self.places]

    def slot_kinds(self) -> List[Type]:
        return [slot.type for slot in self.derivative.slots]

    def whole(self) -> List[int]:
        """Which of the tensors have gradients: under vmap each row has its own."""
        return [index for index, place in enumerate(self.places) if place in self.smooth]

    def reshaped(self, found: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], dims: Sequence[Optional[int]],
                 size: int) -> Tuple[torch.Tensor, ...]:
        """Gradients under vmap, the first of what was found, in the shapes of the arguments."""
        shapes = []
        for index in self.whole():
            shape, dim = list(tensors[index].shape), dims[index]
            if dim is not None:
                del shape[dim]
            shapes.append((size, *shape))
        return (*[part.reshape(shape) for part, shape in zip(found, shapes)], *found[len(shapes):])

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
        return [as_tensor(reduced[place]).to(given[place].device, given[place].dtype) for place in self.smooth]


def refuse_hidden_tensors(name: str, value: Any) -> None:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for part in inside:
        if isinstance(part, torch.Tensor):
            raise TypeError(f"'{name}': tensors inside a {type(value).__name__} are not followed by PyTorch; "
                            "write a function that takes them one by one")
        refuse_hidden_tensors(name, part)


def memory_of(tensor: torch.Tensor, name: str) -> Any:
    """The tensor as calls take it: an array, or what is on a GPU as it is."""
    if tensor.is_cuda and tensor.layout == torch.strided:
        return tensor.detach().resolve_neg().resolve_conj()
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(f"'{name}' is on {tensor.device}; Slope runs on the CPU, and on GPUs of NVIDIA: give it as .cpu()")
    if tensor.layout != torch.strided:
        raise TypeError(f"'{name}' is sparse; give it as .to_dense()")
    try:
        return tensor.detach().resolve_neg().resolve_conj().numpy()
    except TypeError:  # numpy has no such numbers
        raise TypeError(f"'{name}' is a tensor of {tensor.dtype}; give it as .float()") from None


def as_tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))


def tensor_of(value: Any, kind: Type) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.asarray(value, kind.scalar))


# ---- what PyTorch differentiates


def separate(kind: Any) -> Any:
    """Since PyTorch 2, `setup_context` says what is kept, apart from the computation; before, `forward` does both."""
    if not HAS_TRANSFORMS:
        run, keep = kind.forward, kind.setup_context

        def forward(ctx: Any, *inputs: Any) -> Any:
            found = run(*inputs)
            keep(ctx, inputs, found)
            return found

        kind.forward = staticmethod(forward)
    return kind


def keep_inputs(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.call = inputs[0]
    ctx.save_for_backward(*inputs[1:])
    ctx.save_for_forward(*inputs[1:])


@separate
class Apply(torch.autograd.Function):
    """The function itself."""

    @staticmethod
    def forward(call: Call, *tensors: torch.Tensor) -> Tuple[torch.Tensor, ...]:  # type: ignore[override]
        return call.results(call.function.call(call.values(tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        keep_inputs(ctx, inputs, output)
        smooth_slots = inputs[0].operation.smooth_slots
        ctx.mark_non_differentiable(*[part for part, smooth in zip(output, smooth_slots) if not smooth])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        call, tensors = ctx.call, ctx.saved_tensors
        found = dict(zip(call.smooth, Pull.apply(call, *tensors, *cotangents) if call.smooth else ()))
        return (None, *[found.get(place) for place in call.places])

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Optional[torch.Tensor]) -> Any:
        return Push.apply(ctx.call, *ctx.saved_tensors, *tangents)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Call, *tensors: torch.Tensor) -> Any:
        found = Apply.apply(call, *in_front(call.kinds(), tensors, in_dims[1:], info.batch_size))
        return found, (0,) * len(found)


@separate
class Push(torch.autograd.Function):
    """How the results change along tangents of the arguments, which follow these."""

    @staticmethod
    def forward(call: Call, *both: Optional[torch.Tensor]) -> Tuple[Optional[torch.Tensor], ...]:  # type: ignore[override]
        count = len(call.places)
        values = call.values(both[:count])
        return call.results(call.derivative.push(values, call.tangents(call.places, both[count:]))[1])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.expression = inputs[0].function.expression

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise RuntimeError(f"{ctx.expression}: the tangents of forward mode are not followed; take the gradient first, and that forward")

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Call, *both: torch.Tensor) -> Any:
        found = Push.apply(call, *in_front(call.kinds() * 2, both, in_dims[1:], info.batch_size))
        return found, tuple(None if part is None else 0 for part in found)


@separate
class Pull(torch.autograd.Function):
    """The gradient of the function, as a function of its arguments and of the derivatives of its results."""

    @staticmethod
    def forward(call: Call, *both: torch.Tensor) -> Tuple[torch.Tensor, ...]:  # type: ignore[override]
        tensors, cotangents = both[:len(call.places)], both[len(call.places):]
        values = call.values(tensors)
        return tuple(call.gradients(call.derivative.pull(values, call.seeds(cotangents)), values, tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        keep_inputs(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *along: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        call, both = ctx.call, ctx.saved_tensors
        found = iter(Second.apply(call, *both, *along))
        by_tensor = {place: next(found) for place in call.smooth}
        by_seed = [next(found) if smooth else None for smooth in call.operation.smooth_slots]
        return (None, *[by_tensor.get(place) for place in call.places], *by_seed)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Call, *both: torch.Tensor) -> Any:
        found = Pull.apply(call, *in_front(call.kinds() + call.slot_kinds(), both, in_dims[1:], info.batch_size, call.whole()))
        return call.reshaped(found, both, in_dims[1:], info.batch_size), (0,) * len(found)


@separate
class Second(torch.autograd.Function):
    """The derivatives of the gradient g = J(x)^T s along u: by s it is J(x) u, and by x, second derivatives being symmetric,
    how g changes along u."""

    @staticmethod
    def forward(call: Call, *all_of_them: torch.Tensor) -> Tuple[torch.Tensor, ...]:  # type: ignore[override]
        count, results = len(call.places), len(call.derivative.slots)
        tensors, cotangents = all_of_them[:count], all_of_them[count:count + results]
        values, tangents = call.values(tensors), call.tangents(call.smooth, all_of_them[count + results:])
        moved = call.derivative.push_pull(values, call.seeds(cotangents), tangents)
        by_seed = call.results(call.derivative.push(values, tangents)[1])
        slots = zip(by_seed, call.operation.smooth_slots)
        return (*call.gradients(moved, values, tensors), *[part for part, smooth in slots if smooth])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.expression = inputs[0].function.expression

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise RuntimeError(f"{ctx.expression}: third derivatives go through Slang, not through PyTorch; "
                           "wrap a function that computes the first ones")

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Call, *given: torch.Tensor) -> Any:
        kinds = call.kinds() + call.slot_kinds() + [call.function.inputs[place].type for place in call.smooth]
        found = Second.apply(call, *in_front(kinds, given, in_dims[1:], info.batch_size, call.whole()))
        return call.reshaped(found, given, in_dims[1:], info.batch_size), (0,) * len(found)


def in_front(kinds: Sequence[Type], tensors: Sequence[Any], dims: Sequence[Optional[int]], size: int, whole: Sequence[int] = ()) -> List[Any]:
    """The batch of vmap as the first of the leading dimensions; those of all that has one are as many. `whole` get one in any case."""
    ranks = [tensor.dim() - (dim is not None) - len(kind.shape) for kind, tensor, dim in zip(kinds, tensors, dims)
             if tensor is not None and kind.plain]
    found = []
    for place, (kind, tensor, dim) in enumerate(zip(kinds, tensors, dims)):
        if tensor is None or (dim is None and place not in whole):
            found.append(tensor)
            continue
        if not kind.plain:
            raise TypeError(f"under vmap: a {kind.name} is one for all rows; call the function for each of them")
        tensor = tensor.movedim(dim, 0) if dim is not None else tensor.expand(size, *tensor.shape)
        missing = max(ranks) - (tensor.dim() - 1 - len(kind.shape))
        found.append(tensor.reshape(size, *[1] * missing, *tensor.shape[1:]))
    return found


def wrap(function: Function) -> Callable[..., Any]:
    """The function as a differentiable operation on tensors. Arguments that are no tensors are constants."""
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
