"""Operations as operators that PyTorch knows by name, with their shapes, so that torch.compile takes them into its graphs.

For each operation there are three: the function, its gradient (`_pull`) and the derivatives of that (`_second`), each of which is the
derivative of the one before. They take tensors only; numbers become tensors. They need torch.library.custom_op (PyTorch 2.4); before that
torch.compile compiles what is before and after a call.
"""
from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import torch

from ._device import bits_dtype, shown_dtype
from ._module import Param
from ._types import Type

if TYPE_CHECKING:
    from .torch import Operation

NUMBERS = itertools.count()


def can_register() -> bool:
    return all(hasattr(torch.library, name) for name in ("custom_op", "register_fake"))


def register(operation: "Operation") -> Optional["Operator"]:
    """None if PyTorch is too old, or if the function takes what is no tensor."""
    inputs = operation.function.inputs
    if not can_register() or not inputs or not all(param.type.plain or param.type.is_reference for param in inputs):
        return None
    return Operator(operation)


def signature(inputs: int, outputs: int) -> str:
    given = ", ".join(f"Tensor a{index}" for index in range(inputs))
    return f"({given}) -> " + ("Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})")


def one_or_all(found: Sequence[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


class Operator:
    """The three operators of an operation."""

    def __init__(self, operation: "Operation"):
        self.operation, self.derivative = operation, operation.derivative
        self.inputs: List[Param] = operation.function.inputs
        self.dtypes = [bits_dtype(param.type.scalar) if param.type.plain else None for param in self.inputs]  # type: ignore[arg-type]
        self.smooth = [place for place, smooth in enumerate(self.derivative.differentiable) if smooth]
        self.slots = self.derivative.slots
        self.smooth_slots = [slot for slot, smooth in zip(self.slots, operation.smooth_slots) if smooth]
        self.name = f"slope::{re.sub(r'[^A-Za-z0-9]+', '_', operation.function.expression).strip('_')}_{next(NUMBERS)}"
        given, seeds, smooth = len(self.inputs), len(self.smooth_slots), len(self.smooth)
        whole = self._define("", given, len(self.slots), self._forward, self._shapes)
        pull = second = None
        if smooth and seeds:
            second = self._define("_second", given + seeds + smooth, smooth + seeds, self._second, self._second_shapes)
            pull = self._define("_pull", given + seeds, smooth, self._pull, self._pull_shapes)
            whole.register_autograd(self._backward, setup_context=keep_inputs)
            pull.register_autograd(self._pull_backward, setup_context=keep_inputs)
        self.whole, self.pull, self.second = map(overload, (whole, pull, second))

    def _define(self, suffix: str, inputs: int, outputs: int, run: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
        made = torch.library.custom_op(self.name + suffix, run, mutates_args=(), schema=signature(inputs, outputs))
        made.register_fake(shapes)
        return made

    # ---- calls, as torch.compile follows them

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether everything is a tensor, or a number or list that becomes one."""
        for value, dtype in zip(values, self.dtypes):
            if not isinstance(value, torch.Tensor) and (dtype is None or not isinstance(value, (bool, int, float, list, tuple))):
                return False
        return True

    def __call__(self, values: Sequence[Any]) -> Any:
        devices = [value.device for value in values if isinstance(value, torch.Tensor)]
        device = devices[0] if devices else None
        return self.whole(*[value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype, device=device)
                            for value, dtype in zip(values, self.dtypes)])

    # ---- what they do

    def _call(self, tensors: Sequence[torch.Tensor]) -> Any:
        from .torch import Call
        call = Call(self.operation, tensors)
        call.smooth = self.smooth
        return call

    def _forward(self, *tensors: torch.Tensor) -> Any:
        call = self._call(tensors)
        return one_or_all(call.results(call.function.call(call.values(tensors))))

    def _seeds(self, call: Any, seeds: Sequence[torch.Tensor]) -> Any:
        given = iter(seeds)
        return call.seeds([next(given) if smooth else None for smooth in self.operation.smooth_slots])

    def _pull(self, *both: torch.Tensor) -> Any:
        tensors, seeds = both[:len(self.inputs)], both[len(self.inputs):]
        call = self._call(tensors)
        values = call.values(tensors)
        return one_or_all(call.gradients(self.derivative.pull(values, self._seeds(call, seeds)), values, tensors))

    def _second(self, *everything: torch.Tensor) -> Any:
        tensors, seeds, along = self._parted(everything)
        call = self._call(tensors)
        values, tangents = call.values(tensors), call.tangents(self.smooth, along)
        moved = self.derivative.push_pull(values, self._seeds(call, seeds), tangents)
        by_seed = zip(call.results(self.derivative.push(values, tangents)[1]), self.operation.smooth_slots)
        return one_or_all([*call.gradients(moved, values, tensors), *[part for part, smooth in by_seed if smooth]])

    def _parted(self, everything: Sequence[torch.Tensor]) -> Tuple[Sequence[torch.Tensor], ...]:
        first, second = len(self.inputs), len(self.inputs) + len(self.smooth_slots)
        return everything[:first], everything[first:second], everything[second:]

    # ---- their derivatives

    def _backward(self, ctx: Any, *cotangents: Optional[torch.Tensor]) -> Tuple[Optional[torch.Tensor], ...]:
        tensors, slots = ctx.saved_tensors, zip(cotangents, self.slots, self.operation.smooth_slots)
        seeds = [new_like(tensors, self._lead(tensors), slot.type).zero_() if seed is None else seed
                 for seed, slot, smooth in slots if smooth]
        found = as_list(self.pull(*tensors, *seeds))
        return tuple(found.pop(0) if place in self.smooth else None for place in range(len(self.inputs)))

    def _pull_backward(self, ctx: Any, *along: Optional[torch.Tensor]) -> Tuple[Optional[torch.Tensor], ...]:
        tensors = ctx.saved_tensors[:len(self.inputs)]
        moves = [torch.zeros_like(tensors[place]) if move is None else move for place, move in zip(self.smooth, along)]
        found = as_list(self.second(*ctx.saved_tensors, *moves))
        by_tensor = [found.pop(0) if place in self.smooth else None for place in range(len(self.inputs))]
        return (*by_tensor, *found)

    # ---- the shapes of what they give

    def _lead(self, tensors: Sequence[torch.Tensor]) -> Tuple[Any, ...]:
        leads = []
        for param, tensor in zip(self.inputs, tensors):
            rank = len(param.type.shape)
            if param.type.plain and tuple(tensor.shape[tensor.dim() - rank:]) != param.type.shape:
                raise ValueError(f"{param.name}: {param.type.name} has the shape {param.type.shape}, which does not end "
                                 f"{tuple(tensor.shape)}")
            leads.append(tensor.shape[:tensor.dim() - rank] if param.type.plain else ())
        return tuple(torch.broadcast_shapes(*leads))

    def _shapes(self, *tensors: torch.Tensor) -> Any:
        lead = self._lead(tensors)
        return one_or_all([new_like(tensors, lead, slot.type) for slot in self.slots])

    def _pull_shapes(self, *both: torch.Tensor) -> Any:
        return one_or_all([both[place].new_empty(both[place].shape) for place in self.smooth])

    def _second_shapes(self, *everything: torch.Tensor) -> Any:
        tensors = everything[:len(self.inputs)]
        lead = self._lead(tensors)
        return one_or_all([*[tensors[place].new_empty(tensors[place].shape) for place in self.smooth],
                           *[new_like(tensors, lead, slot.type) for slot in self.smooth_slots]])


def overload(made: Any) -> Any:
    """The operator itself, which is what graphs call."""
    return made._opoverload if made is not None else None


def as_list(found: Any) -> List[Any]:
    return [found] if isinstance(found, torch.Tensor) else list(found)


def keep_inputs(ctx: Any, inputs: Tuple[torch.Tensor, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def new_like(tensors: Sequence[torch.Tensor], lead: Tuple[Any, ...], kind: Type) -> torch.Tensor:
    """Memory for results: where the tensors are, single numbers on the CPU aside."""
    where = next((tensor for tensor in tensors if tensor.device.type != "cpu"), tensors[0])
    return where.new_empty(lead + kind.shape, dtype=shown_dtype(kind.scalar))  # type: ignore[arg-type]
