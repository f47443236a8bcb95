"""Derivatives in the manner of JAX, over fwd_diff, bwd_diff and fwd_diff(bwd_diff(f)).

Gradients have the shapes of the arguments. With rows, the function is the sum over them: an argument that all rows share gets the
sum of their gradients, one with a row per call the gradient of each.
"""
from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._library import SlopeError
from ._module import Function, Overloads, Param
from ._types import STRUCT, VOID, Shape, Struct, Type, on_device

Argnums = Union[int, Sequence[int]]


class Slot(NamedTuple):
    """A value that comes out of a function: its result, or a parameter."""
    name: str
    type: Type


def is_pair(pair: Type, primal: Type) -> bool:
    """Whether `pair` is the DifferentialPair of `primal`."""
    return pair.kind == STRUCT and [name for name, _ in pair.fields] == ["p", "d"] and pair.field("p").name == primal.name


def outputs(function: Function) -> List[Slot]:
    result = [] if function.result.kind == VOID else [Slot("dResult", function.result)]
    return result + [Slot(param.name, param.type) for param in function.params if param.is_output]


def known_as(overloads: Overloads) -> str:
    return " or ".join(f'm["{overloads.__name__}({", ".join(param.type.name for param in function.params)})"]'
                       for function in overloads.functions)


class Derivative:
    """How the parameters of a function stand in those of its derivatives."""

    def __init__(self, function: Function):
        if isinstance(function, Overloads):
            raise TypeError(f"{function.__name__} has several overloads; name one by its types: {known_as(function)}")
        if not isinstance(function, Function):
            raise TypeError(f"a function of a slope module was expected, not {type(function).__name__}")
        self.function = function
        self.backward = function.bwd_diff
        self.slots = outputs(function)
        of_backward = {param.name: param for param in self.backward.params}
        self.differentiable = [param.name in of_backward and is_pair(of_backward[param.name].type, param.type)
                               for param in function.inputs]
        self.own = {param.name for param, smooth in zip(function.inputs, self.differentiable) if smooth}
        self.has_references = any(param.type.is_reference for param in function.inputs)
        places = {param.name: place for place, param in enumerate(function.inputs)}
        results = {slot.name: place for place, slot in enumerate(outputs(self.backward))}
        # How bwd_diff is called: each parameter with the place of the argument it belongs to, and where the gradient of each is found.
        self.plan = [(param.name, places.get(param.name, -1), param.name in self.own) for param in self.backward.inputs]
        self.found_at = [(param.name, results.get(param.name, -1) if smooth else -1)
                         for param, smooth in zip(function.inputs, self.differentiable)]

    def argument(self, index: int) -> int:
        """The place of an argument that can be differentiated by."""
        inputs = self.function.inputs
        if not isinstance(index, (int, np.integer)) or not -len(inputs) <= index < len(inputs):
            raise ValueError(f"{self.function.shown} has no argument {index!r}")
        if not self.differentiable[index]:
            raise SlopeError(f"{self.function.shown}: there is no derivative by '{inputs[index].name}'")
        return int(index) % len(inputs)

    def scalar_seed(self) -> Dict[str, Any]:
        if len(self.slots) != 1 or not self.slots[0].type.is_floating or self.slots[0].type.shape:
            raise TypeError(f"{self.function.shown}: only a function with one number as its result has a gradient; "
                            "use vjp or jacobian")
        if self.slots[0].name not in [param.name for param in self.backward.params]:
            raise SlopeError(f"{self.function.shown}: its result has no derivative")
        return {self.slots[0].name: 1.0}

    def seeds(self, cotangent: Any) -> Dict[str, Any]:
        """Derivatives of what comes out, by name."""
        given = cotangent if len(self.slots) != 1 else (cotangent,)
        if not isinstance(given, (tuple, list)) or len(given) != len(self.slots):
            raise TypeError(f"{self.function.shown} has {len(self.slots)} results; as many derivatives were expected")
        return {slot.name: seed for slot, seed in zip(self.slots, given)}

    # ---- the three derivatives, with rows

    def pull(self, values: Sequence[Any], seeds: Dict[str, Any]) -> List[Any]:
        """The gradient of each argument, a row per call; None for those without one."""
        gathered = self.memory(values) if self.has_references else {}
        arguments: List[Any] = []
        for name, place, is_own in self.plan:
            if is_own:
                arguments.append({"p": values[place], "d": gathered[name] if name in gathered else seeds.get(name)})
            else:
                arguments.append(seeds[name] if name in seeds else values[place])
        found = as_tuple(self.backward.call(arguments, ("d",)))
        return [gathered[name] if name in gathered else found[index] if index >= 0 else None for name, index in self.found_at]

    def push(self, values: Sequence[Any], tangents: Sequence[Any]) -> Tuple[Any, Any]:
        """The results and their tangents."""
        forward = self.function.fwd_diff
        of_function = {param.name: param for param in self.function.inputs}
        zero = self.memory(values)
        arguments = [{"p": value, "d": zero.get(param.name) if tangent is None else tangent}
                     if is_pair(param.type, of_function[param.name].type) else value
                     for param, value, tangent in zip(forward.inputs, values, tangents)]
        found = as_tuple(forward.call(arguments))
        pairs = [(part["p"], part["d"]) if is_pair(slot.type, kind.type) else (part, None)
                 for part, slot, kind in zip(found, outputs(forward), self.slots)]
        primals, differentials = zip(*pairs) if pairs else ((), ())
        return (primals[0], differentials[0]) if len(pairs) == 1 else (tuple(primals), tuple(differentials))

    def push_pull(self, values: Sequence[Any], seeds: Dict[str, Any], tangents: Sequence[Any]) -> List[Any]:
        """How gradients change along tangents of the arguments, a row per call."""
        second, own = self.backward.fwd_diff, self.own
        names = [param.name for param in self.function.inputs]
        given, moved = dict(zip(names, values)), dict(zip(names, tangents))
        of_backward = {param.name: param for param in self.backward.inputs}
        arguments, gathered = [], self.memory(values)
        unused, still = self.memory(values), self.memory(values)
        for param in second.inputs:
            paired = is_pair(param.type, of_backward[param.name].type)
            if param.name in gathered:
                tangent = moved[param.name] if moved[param.name] is not None else still[param.name]
                arguments.append({"p": {"p": given[param.name], "d": unused[param.name]},
                                  "d": {"p": tangent, "d": gathered[param.name]}})
            elif param.name in own:
                arguments.append({"p": {"p": given[param.name], "d": seeds.get(param.name)},
                                  "d": {"p": moved[param.name], "d": None}})
            else:
                value = seeds.get(param.name) if param.name in seeds else given[param.name]
                arguments.append({"p": value, "d": None} if paired else value)
        found = named_results(second, second.call(arguments, ("d", "d")))
        return [gathered[name] if name in gathered else found[name] if name in own else None for name in names]

    def memory(self, values: Sequence[Any]) -> Dict[str, np.ndarray]:
        """Zeros for the differentials of arguments that are references."""
        kinds = {param.name: param.type for param in self.backward.params}
        return {param.name: kinds[param.name].field("d").zeros_like(value, param.name)
                for param, value, smooth in zip(self.function.inputs, values, self.differentiable)
                if smooth and param.type.is_reference}

    def reduce(self, gradients: Sequence[Any], values: Sequence[Any]) -> List[Any]:
        """Gradients in the shapes of the arguments: rows that share an argument are added."""
        return [gradient if gradient is None or type(gradient) is float or param.type.is_reference else reduce_to(param, gradient, value)
                for param, gradient, value in zip(self.function.inputs, gradients, values)]


def as_tuple(found: Any) -> Tuple[Any, ...]:
    return found if isinstance(found, tuple) else () if found is None else (found,)


def named_results(function: Function, found: Any) -> Dict[str, Any]:
    return {slot.name: part for slot, part in zip(outputs(function), as_tuple(found))}


def reduce_to(param: Param, gradient: Any, value: Any) -> Any:
    return reduce_value(gradient, param.type, param.type.convert(value, param.name)[0])


def reduce_value(gradient: Any, kind: Type, value: Any) -> Any:
    if kind.plain:
        return unbroadcast(gradient, np.shape(value))
    if kind.kind == STRUCT:
        return Struct((name, reduce_value(part, kind.field(name), value[name])) for name, part in gradient.items())
    return [reduce_value(part, kind.element, inner) for part, inner in zip(gradient, value)]  # type: ignore[arg-type]


def unbroadcast(gradient: Any, shape: Shape) -> Any:
    if np.shape(gradient) == shape:
        return gradient
    extra = np.ndim(gradient) - len(shape)
    ones = tuple(axis + extra for axis, size in enumerate(shape) if size == 1)
    summed = gradient.sum(axis=tuple(range(extra)) + ones, keepdims=True).reshape(shape)
    return summed if shape or on_device(summed) else summed.item()


def pick(gradients: Sequence[Any], places: Sequence[int], argnums: Argnums) -> Any:
    chosen = tuple(gradients[place] for place in places)
    return chosen[0] if isinstance(argnums, (int, np.integer)) else chosen


def places_of(derivative: Derivative, argnums: Argnums) -> List[int]:
    indices = [argnums] if isinstance(argnums, (int, np.integer)) else list(argnums)
    return [derivative.argument(index) for index in indices]


# ---- what users call


def resolving(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Where arguments with defaults are left out, the same of the function without these parameters."""

    @functools.wraps(maker)
    def made(function: Function, argnums: Argnums = 0) -> Callable[..., Any]:
        call = maker(function, argnums)

        def resolved(*args: Any, **named: Any) -> Any:
            shorter = function.given(args, named)
            return call(*args, **named) if shorter is function else made(shorter, argnums)(*args, **named)

        return resolved

    return made


def without_defaults(function: Function, primals: Sequence[Any]) -> Function:
    return function.given(primals, {}) if isinstance(function, Function) else function


@resolving
def value_and_grad(function: Function, argnums: Argnums = 0) -> Callable[..., Tuple[Any, Any]]:
    """A function that gives the value and the gradient by one argument, or a tuple of them by several."""
    derivative = Derivative(function)
    places, seeds = places_of(derivative, argnums), derivative.scalar_seed()

    def call(*args: Any, **named: Any) -> Tuple[Any, Any]:
        values = function.bind(args, named)
        value = function(*values)
        return value, pick(derivative.reduce(derivative.pull(values, seeds), values), places, argnums)

    return call


@resolving
def grad(function: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """The gradient of a function whose result is one number, by one argument or several."""
    derivative = Derivative(function)
    places, seeds = places_of(derivative, argnums), derivative.scalar_seed()

    def call(*args: Any, **named: Any) -> Any:
        values = checked(function, function.bind(args, named))
        return pick(derivative.reduce(derivative.pull(values, seeds), values), places, argnums)

    return call


def checked(function: Function, values: Sequence[Any]) -> List[Any]:
    for param, value in zip(function.inputs, values):
        if value is None:
            raise TypeError(f"{function.shown}: the argument '{param.name}' is None")
    return list(values)


def vjp(function: Function, *primals: Any) -> Tuple[Any, Callable[[Any], Tuple[Any, ...]]]:
    """The results, and a function from derivatives of the results to those of the arguments (None where there is none)."""
    function = without_defaults(function, primals)
    derivative = Derivative(function)
    values = checked(function, function.bind(primals, {}))

    def pullback(cotangent: Any) -> Tuple[Any, ...]:
        return tuple(derivative.reduce(derivative.pull(values, derivative.seeds(cotangent)), values))

    return function(*values), pullback


def require_tuples(name: str, primals: Any, tangents: Any) -> None:
    if not (hasattr(primals, "__len__") and hasattr(tangents, "__len__")):
        raise TypeError(f"arguments and tangents are tuples, also of one: {name}(f, (x,), (dx,))")


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Tuple[Any, Any]:
    """The results, and how they change along the tangents (None: not at all) of the arguments."""
    require_tuples("jvp", primals, tangents)
    function = without_defaults(function, primals)
    derivative = Derivative(function)
    values = checked(function, function.bind(primals, {}))
    if len(tangents) != len(values):
        raise TypeError(f"{function.shown}: {len(values)} tangents were expected, not {len(tangents)}")
    return derivative.push(values, tangents)


def basis(kind: Type, rank: int) -> np.ndarray:
    """All unit values of a type, with room for leading dimensions."""
    size = numbers(kind)
    return np.eye(size, dtype=kind.scalar).reshape((size,) + (1,) * rank + kind.shape)


def lead_of(function: Function, values: Sequence[Any]) -> Shape:
    leads = [param.type.convert(value, param.name)[1] for param, value in zip(function.inputs, values)]
    return np.broadcast_shapes(*leads)


def in_order(found: Any, units: Shape, lead: Shape, inner: Shape) -> np.ndarray:
    """Unit directions come first in `found`; they belong behind the rows."""
    array = np.asarray(found).reshape((math.prod(units),) + lead + inner)
    return np.moveaxis(array, 0, len(lead)).reshape(lead + units + inner).copy()


def plain_type(derivative: Derivative, place: int) -> Type:
    param = derivative.function.inputs[place]
    if not param.type.is_floating:
        raise TypeError(f"{derivative.function.shown}: '{param.name}' is a {param.type.name}; only numbers, vectors, "
                        "matrices and arrays of them have a jacobian")
    return param.type


def numbers(kind: Type) -> int:
    return int(np.prod(kind.shape, dtype=np.int64))


def is_cheaper_by_columns(derivative: Derivative, types: Sequence[Type]) -> bool:
    """Whether a forward pass for each number of the arguments costs less than a reverse pass, which takes about twice as long, for each of the result."""
    kinds = {kind.scalar for kind in types} | {derivative.slots[0].type.scalar}
    fewer = 2 * sum(numbers(kind) for kind in types) <= 3 * numbers(derivative.slots[0].type)
    return fewer and len(kinds) == 1 and not derivative.has_references and has_forward(derivative.function)


def has_forward(function: Function) -> bool:
    try:
        return function.fwd_diff is not None
    except SlopeError:
        return False


@resolving
def jacobian(function: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """All partial derivatives: rows, then the shape of the result, then the shape of the argument."""
    derivative = Derivative(function)
    places = places_of(derivative, argnums)
    types = {place: plain_type(derivative, place) for place in places}
    if len(derivative.slots) != 1 or not derivative.slots[0].type.is_floating:
        raise TypeError(f"{function.shown}: only one number, vector, matrix or array as its result has a jacobian")
    slot = derivative.slots[0]
    by_columns = is_cheaper_by_columns(derivative, list(types.values()))

    def columns(values: List[Any], lead: Shape, place: int) -> np.ndarray:
        tangents = [basis(types[place], len(lead)) if at == place else None for at in range(len(values))]
        array = np.asarray(derivative.push(values, tangents)[1]).reshape((numbers(types[place]),) + lead + slot.type.shape)
        return np.moveaxis(array, 0, -1).reshape(lead + slot.type.shape + types[place].shape).copy()

    def call(*args: Any, **named: Any) -> Any:
        values = checked(function, function.bind(args, named))
        lead = lead_of(function, values)
        if by_columns:
            return pick([columns(values, lead, place) if place in places else None for place in range(len(values))], places, argnums)
        found = derivative.pull(values, {slot.name: basis(slot.type, len(lead))})
        matrices = {place: in_order(found[place], slot.type.shape, lead, types[place].shape) for place in places}
        return pick([matrices.get(place) for place in range(len(values))], places, argnums)

    return call


def hvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Tuple[Any, ...]:
    """The hessian times the tangents (None: zero), for each argument, without the hessian."""
    require_tuples("hvp", primals, tangents)
    function = without_defaults(function, primals)
    derivative = Derivative(function)
    values = checked(function, function.bind(primals, {}))
    if len(tangents) != len(values):
        raise TypeError(f"{function.shown}: {len(values)} tangents were expected, not {len(tangents)}")
    found = derivative.push_pull(values, derivative.scalar_seed(), tangents)
    return tuple(derivative.reduce(found, values))


@resolving
def hessian(function: Function, argnums: Argnums = 0) -> Callable[..., Any]:
    """All second derivatives by one argument; by several, a tuple of tuples of them."""
    derivative = Derivative(function)
    places, seeds = places_of(derivative, argnums), derivative.scalar_seed()
    types = {place: plain_type(derivative, place) for place in places}

    def call(*args: Any, **named: Any) -> Any:
        values = checked(function, function.bind(args, named))
        lead, blocks = lead_of(function, values), []
        for place in places:
            tangents: List[Optional[Any]] = [None] * len(values)
            tangents[place] = basis(types[place], len(lead))
            found = derivative.push_pull(values, seeds, tangents)
            row = {other: in_order(found[other], types[place].shape, lead, types[other].shape) for other in places}
            blocks.append(tuple(row[other] for other in places))
        return blocks[0][0] if isinstance(argnums, (int, np.integer)) else tuple(blocks)

    return call
