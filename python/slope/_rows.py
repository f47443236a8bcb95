"""A function applied to rows: a kernel in Slang around it, made when it is first needed, run over all cores.

Each parameter that comes in has a buffer with a row per call, or one row for all of them; each one that
goes out, and the result, has a buffer of results. Which have one row is known when the kernel is compiled, so that rows are done
several at once, in vectors; on a GPU a step of 0 says so. The two halves of a DifferentialPair have buffers of their own, so that derivatives take
and give arrays as they are; a half that is zero has none. Parameters that are or hold buffers are the same in all calls.
"""
from __future__ import annotations

import math
from ctypes import byref, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._library import SlopeError, interrupts, native
from ._types import ARRAY, BUFFER, STRUCT, VECTOR, VOID, Path, Shape, Struct, Type, inside

if TYPE_CHECKING:
    from ._module import Function

Named = Dict[str, Any]
GROUP = 256
MOST_ROWS = 2**32 - GROUP
PREFIX = "__slope_"


def matrix_name(kind: Type) -> str:
    """A matrix is reflected as an array of its rows, and has to be named as a matrix."""
    element = kind.element
    if kind.kind == ARRAY and element is not None and element.kind == VECTOR and element.element is not None:
        rows, columns = kind.shape
        if rows <= 4:
            return f"matrix<{element.element.name}, {rows}, {columns}>"
    return kind.name


def array_name(kind: Type) -> str:
    return kind.name


class Leaf(NamedTuple):
    """What has a buffer of its own: a parameter, the result, or a half of one that is a pair."""
    place: int  # of the parameter; behind the last one: the result
    path: Path
    type: Type
    name: str


def leaf_name(place: int, path: Path) -> str:
    return "_".join([str(place), *path])


def leaves(place: int, kind: Type, path: Path = ()) -> Iterator[Leaf]:
    if not kind.is_split:
        yield Leaf(place, path, kind, leaf_name(place, path))
        return
    for name, inner in kind.fields:
        yield from leaves(place, inner, (*path, name))


def input_leaves(function: "Function") -> List[Leaf]:
    return [leaf for place, param in enumerate(function.params) if param.is_input and not param.type.has_buffers
            for leaf in leaves(place, param.type)]


class Layout:
    """Which buffers a kernel has. `absent` are leaves that are zero, `single` those with one row for all calls, None: the kernel is told by
    steps; `part` is what is wanted of results that are pairs."""

    def __init__(self, function: "Function", absent: FrozenSet[str], part: Path, single: Optional[FrozenSet[str]] = None):
        self.function, self.absent, self.part, self.single = function, absent, part, single
        params = list(enumerate(function.params))
        self.whole = [(place, param.type) for place, param in params if param.type.has_buffers]
        self.inputs = input_leaves(function)
        self.outputs = [leaf for place, kind in function._outputs for leaf in leaves(place, kind)
                        if leaf.path[:len(part)] == part or not leaf.path]
        self.given = [leaf for leaf in self.inputs if leaf.name not in absent]

    def declarations(self, name: Callable[[Type], str]) -> List[str]:
        """The parameters of the kernel, in order: what is whole, what is given, perhaps with its step, what comes out, and the number of rows."""
        found = [f"{name(kind)} {PREFIX}in{place}" for place, kind in self.whole]
        for leaf in self.given:
            found.append(f"StructuredBuffer<{name(leaf.type)}> {PREFIX}in{leaf.name}")
            if self.single is None:
                found.append(f"uint {PREFIX}step{leaf.name}")
        found += [f"RWStructuredBuffer<{name(leaf.type)}> {PREFIX}out{leaf.name}" for leaf in self.outputs]
        return [*found, f"uint {PREFIX}count"]

    def _row(self, leaf: Leaf) -> str:
        if self.single is None:
            return f"row * {PREFIX}step{leaf.name}"
        return "0" if leaf.name in self.single else "row"

    def body(self, name: Callable[[Type], str]) -> List[str]:
        lines = ["uint row = id.x;", f"if (row >= {PREFIX}count) return;"]
        for leaf in self.inputs:
            value = "{}" if leaf.name in self.absent else f"{PREFIX}in{leaf.name}[{self._row(leaf)}]"
            lines.append(f"{name(leaf.type)} value{leaf.name} = {value};")
        for place, param in enumerate(self.function.params):
            if not param.is_input:
                lines.append(f"{name(param.type)} value{place};")
            elif param.type.is_split:
                lines.append(f"var value{place} = {paired(place, param.type)};")
        target = "" if self.function.result.kind == VOID else f"var value{len(self.function.params)} = "
        lines.append(f"{target}{self._call()};")
        return lines + [f"{PREFIX}out{leaf.name}[row] = {'.'.join([f'value{leaf.place}', *leaf.path])};" for leaf in self.outputs]

    def _call(self) -> str:
        expression, params = self.function.expression, self.function.params
        arguments = [f"{PREFIX}in{place}" if param.type.has_buffers else f"value{place}" for place, param in enumerate(params)]
        if params and params[0].name == "this" and "(" not in expression:
            return f"{arguments[0]}.{expression.rpartition('.')[2]}({', '.join(arguments[1:])})"
        return f"{expression}({', '.join(arguments)})"

    def text(self, name: Callable[[Type], str]) -> str:
        """The kernel; all that it takes are parameters of its own."""
        taken = "".join(f", uniform {line}" for line in self.declarations(name))
        head = f'[shader("compute")] [numthreads({GROUP}, 1, 1)]\nvoid {PREFIX}rows(uint3 id : SV_DispatchThreadID{taken}) {{'
        return "\n".join([head, *self.body(name), "}", ""])


def paired(place: int, kind: Type, path: Path = ()) -> str:
    if not kind.is_split:
        return "value" + leaf_name(place, path)
    return f"diffPair({', '.join(paired(place, inner, (*path, name)) for name, inner in kind.fields)})"


def refuse_buffers(function: "Function") -> None:
    for param in function.params:
        if param.type.has_buffers and (param.is_output or param.type.kind not in (BUFFER, STRUCT)):
            raise TypeError(f"{function.shown}: '{param.name}' holds a buffer, so that it cannot be called for rows")


def split_leaves(function: "Function") -> List[Leaf]:
    return [leaf for place, param in enumerate(function.params) if param.is_input and param.type.is_split
            for leaf in leaves(place, param.type)]


def absent_leaves(split: Sequence[Leaf], values: Sequence[Any]) -> FrozenSet[str]:
    """Those of None, which is zero; `values` are what `convert` has made, by parameter."""
    return frozenset(leaf.name for leaf in split if inside(values[leaf.place], leaf.path) is None)


def by_parameter(function: "Function", values: Sequence[Any]) -> List[Any]:
    """With None for those that only go out."""
    given = iter(values)
    return [next(given) if param.is_input else None for param in function.params]


def collect(function: "Function", part: Path, found: Dict[str, Any], present: Callable[[Type, Any], Any]) -> List[Any]:
    """What comes out, by the names of leaves: pairs are put together, unless a part of them was wanted."""

    def value_of(place: int, kind: Type, path: Path) -> Any:
        if kind.is_split and len(path) < len(part):
            return value_of(place, kind.field(part[len(path)]), part[:len(path) + 1])
        if kind.is_split:
            return Struct((name, value_of(place, inner, (*path, name))) for name, inner in kind.fields)
        value = present(kind, found[leaf_name(place, path)])
        return inside(value, part) if kind.is_pair and not path else value

    return [value_of(place, kind, ()) for place, kind in function._outputs]


class Rows:
    """The kernels of one function: by which leaves are zero, which have one row, and what is wanted of its results."""

    def __init__(self, function: "Function"):
        self.function, self.session = function, function._session
        refuse_buffers(function)
        self.split = split_leaves(function)
        self.inputs = input_leaves(function)
        self.kernels: Dict[Tuple[FrozenSet[str], FrozenSet[str], Path], Tuple[Layout, int, c_void_p]] = {}
        self.counts: Dict[int, int] = {}  # of rows, that were set before, by program

    def kernel(self, absent: FrozenSet[str], single: FrozenSet[str], part: Path) -> Tuple[Layout, int, c_void_p]:
        key = absent, single, part
        if key not in self.kernels:
            layout = Layout(self.function, absent, part, single)
            self.kernels[key] = (layout, *self._compile(layout))
        return self.kernels[key]

    def _single(self, values: Sequence[Any], absent: FrozenSet[str], count: int) -> FrozenSet[str]:
        """Leaves with one row for all calls; of one call, none, so that it takes the kernel of any."""
        if count == 1:
            return frozenset()
        return frozenset(leaf.name for leaf in self.inputs if leaf.name not in absent
                         and math.prod(leaf.type.lead(inside(values[leaf.place], leaf.path))) == 1)

    def _compile(self, layout: Layout) -> Tuple[int, c_void_p]:
        failure = None
        for name in (matrix_name, array_name):
            program, kernel = 0, c_void_p()
            try:
                program = self.function._module._extend(self.function._text + layout.text(name))
                self.session.check(native.slope_find_kernel(program, f"{PREFIX}rows".encode(), byref(kernel)))
                self.session.check(native.slope_kernel_prepare(kernel))
                return program, kernel
            except SlopeError as error:
                failure = failure or error
        raise SlopeError(f"{self.function.shown} cannot be called for rows\n{failure}")

    def run(self, values: Sequence[Any], lead: Shape, part: Path) -> List[Any]:
        """What comes out of the calls, with these leading dimensions. `values` are what `convert` has made."""
        count = math.prod(lead)
        if count > MOST_ROWS:
            raise ValueError(f"{self.function.shown}: {count} rows are too many for one call")
        converted = by_parameter(self.function, values)
        absent = absent_leaves(self.split, converted)
        layout, program, kernel = self.kernel(absent, self._single(converted, absent, count), part)
        arrays, uniforms, found = self._arrays(layout, converted, lead)
        self._refuse_shared(layout, arrays)
        if count:
            self._set(program, uniforms, count)
            self._run(program, kernel, arrays, (count + GROUP - 1) // GROUP)
        return collect(self.function, part, found, lambda kind, array: array if kind.plain else kind.present(array))

    def _refuse_shared(self, layout: Layout, arrays: Named) -> None:
        """Rows run side by side: what one of them writes to a buffer must not be an argument of another."""
        params = self.function.params
        for place, kind in layout.whole:
            written = [array for name, array in arrays.items() if name.split(".")[0] == f"{PREFIX}in{place}"]
            for leaf in layout.given if kind.is_written else ():
                if any(np.may_share_memory(array, arrays[f"{PREFIX}in{leaf.name}"]) for array in written):
                    raise ValueError(f"{self.function.shown}: '{params[place].name}' is written to, and shares its memory "
                                     f"with '{params[leaf.place].name}'; give a copy of one of them")

    def _arrays(self, layout: Layout, values: Sequence[Any], lead: Shape) -> Tuple[Named, Named, Named]:
        """The arrays to bind, by name, other uniforms, and the arrays of what comes out, by leaf."""
        arrays: Named = {}
        uniforms: Named = {}
        for place, kind in layout.whole:
            self._share(f"{PREFIX}in{place}", kind, values[place], arrays, uniforms)
        for leaf in layout.given:
            arrays[f"{PREFIX}in{leaf.name}"], _ = self._input(leaf.type, inside(values[leaf.place], leaf.path), lead)
        found = {leaf.name: new_rows(leaf.type, lead) for leaf in layout.outputs}
        arrays.update((f"{PREFIX}out{name}", array) for name, array in found.items())
        return arrays, uniforms, found

    def _share(self, name: str, kind: Type, value: Any, arrays: Named, uniforms: Named) -> None:
        """An argument that is or holds buffers becomes uniforms."""
        if kind.kind == BUFFER:
            arrays[name] = np.zeros(0) if value is None else value
        elif kind.kind == STRUCT:
            for field, inner in kind.fields:
                self._share(f"{name}.{field}", inner, value[field] if value is not None else None, arrays, uniforms)
        else:
            uniforms[name] = np.zeros((), kind.dtype) if not kind.shape else np.zeros(kind.shape, kind.dtype.base)
            kind.store(uniforms[name], value)

    @staticmethod
    def _input(kind: Type, value: Any, lead: Shape) -> Tuple[np.ndarray, bool]:
        """The rows of an argument in memory: its own memory where that is already right."""
        own = kind.lead(value)
        if math.prod(own) == 1:
            lead = ()
        if kind.plain and value is not None and value.dtype == kind.scalar and own == lead and value.flags.c_contiguous \
                and value.flags.aligned:
            return value, bool(lead)
        array = new_rows(kind, lead)
        kind.store(array, flatten(value) if not lead and own else value)
        return array, bool(lead)

    def _set(self, program: int, uniforms: Named, count: int) -> None:
        """The count is mostly that of the call before."""
        session = self.session
        for name, value in uniforms.items():
            memory = np.ascontiguousarray(value)
            session.check(native.slope_set_uniform(program, name.encode(), memory.ctypes.data, memory.nbytes))
        if self.counts.get(program) != count:
            session.check(native.slope_set_uniform(program, f"{PREFIX}count".encode(), byref(c_uint32(count)), 4))
            self.counts[program] = count

    def _run(self, program: int, kernel: c_void_p, arrays: Named, groups: int) -> None:
        """Whatever is bound stays so, and is bound anew before the next run."""
        session, buffers = self.session, []
        try:
            for name, array in arrays.items():
                buffer = c_void_p()
                session.check(native.slope_buffer_wrap(session.handle, array.ctypes.data, array.nbytes, byref(buffer)))
                buffers.append(buffer)
                session.check(native.slope_bind_buffer(program, name.encode(), buffer))
            with interrupts.during(session.handle):
                status = native.slope_dispatch(kernel, groups, 1, 1)
            session.check(status)
        finally:
            for buffer in buffers:
                native.slope_buffer_free(buffer)


def new_rows(kind: Type, lead: Shape) -> np.ndarray:
    return np.empty(lead + kind.shape, kind.scalar) if kind.plain else np.zeros(lead, kind.dtype)


def flatten(value: Any) -> Any:
    """One row with leading dimensions of size 1, without them. What has fewer dimensions is broadcast when it is stored."""
    if isinstance(value, dict):
        return {name: flatten(part) for name, part in value.items()}
    if isinstance(value, list):
        return [flatten(part) for part in value]
    return value
