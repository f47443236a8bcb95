"""A function applied to rows: a kernel in Slang around it, made when it is first needed, run over all cores.

Each parameter that comes in has a buffer with a row per call, or one row for all of them (its step is then 0); each one that
goes out, and the result, has a buffer of results. Parameters that are or hold buffers are the same in all calls.
"""
from __future__ import annotations

from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

import numpy as np

from ._library import SlopeError, native
from ._types import ARRAY, BUFFER, STRUCT, VECTOR, VOID, Shape, Type

if TYPE_CHECKING:
    from ._module import Function

Named = Dict[str, Any]
GROUP = 256
MOST_ROWS = 2**32 - GROUP


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


class Rows:
    """The kernel of one function."""

    def __init__(self, function: "Function"):
        self.function, self.session = function, function._session
        for param in function.params:
            if param.type.has_buffers and (param.is_output or param.type.kind not in (BUFFER, STRUCT)):
                raise TypeError(f"{function.expression}: '{param.name}' holds a buffer, so that it cannot be called for rows")
        self.program, self.kernel = self._compile()

    def _compile(self) -> Tuple[int, c_void_p]:
        failure = None
        for name in (matrix_name, array_name):
            program, kernel = 0, c_void_p()
            try:
                program = self.function._module._extend(self.function._text + self._text(name))
                self.session.check(native.slope_find_kernel(program, b"__slope_rows", byref(kernel)))
                self.session.check(native.slope_kernel_prepare(kernel))
                return program, kernel
            except SlopeError as error:
                failure = failure or error
        raise SlopeError(f"{self.function.expression} cannot be called for rows\n{failure}")

    def _text(self, name: Any) -> str:
        function, globals_, before, call, after = self.function, ["uniform uint __slope_count;"], [], [], []
        for index, param in enumerate(function.params):
            kind, local = name(param.type), f"value{index}"
            if param.type.has_buffers:
                globals_.append(f"{kind} __slope_in{index};")
                call.append(f"__slope_in{index}")
                continue
            call.append(local)
            if param.is_input:
                globals_.append(f"StructuredBuffer<{kind}> __slope_in{index}; uniform uint __slope_step{index};")
                before.append(f"{kind} {local} = __slope_in{index}[row * __slope_step{index}];")
            else:
                before.append(f"{kind} {local};")
            if param.is_output:
                globals_.append(f"RWStructuredBuffer<{kind}> __slope_out{index};")
                after.append(f"__slope_out{index}[row] = {local};")
        target = ""
        if function.result.kind != VOID:
            globals_.append(f"RWStructuredBuffer<{name(function.result)}> __slope_result;")
            target = "__slope_result[row] = "
        return "\n".join([*globals_, f'[shader("compute")] [numthreads({GROUP}, 1, 1)]',
                          "void __slope_rows(uint3 id : SV_DispatchThreadID) {", "uint row = id.x;",
                          "if (row >= __slope_count) return;", *before, f"{target}{self._call(call)};", *after, "}", ""])

    def _call(self, arguments: List[str]) -> str:
        expression, params = self.function.expression, self.function.params
        if params and params[0].name == "this" and "(" not in expression:
            return f"{arguments[0]}.{expression.rpartition('.')[2]}({', '.join(arguments[1:])})"
        return f"{expression}({', '.join(arguments)})"

    def run(self, values: Sequence[Any], lead: Shape) -> List[np.ndarray]:
        """What every parameter is after the calls, then the result, with these leading dimensions."""
        count = int(np.prod(lead, dtype=np.int64))
        if count > MOST_ROWS:
            raise ValueError(f"{self.function.expression}: {count} rows are too many for one call")
        arrays, uniforms, found = self._arrays(values, lead)
        self._refuse_shared(arrays)
        if count:
            self._run(arrays, {**uniforms, "__slope_count": np.uint32(count)})
        return found

    def _refuse_shared(self, arrays: Named) -> None:
        """Rows run side by side: what one of them writes to a buffer must not be an argument of another."""
        params = dict(enumerate(self.function.params))
        rows = {index: arrays[f"__slope_in{index}"] for index, param in params.items()
                if not param.type.has_buffers and f"__slope_in{index}" in arrays}
        for name, array in arrays.items():
            place = int(name[len("__slope_in"):].split(".")[0]) if name.startswith("__slope_in") else -1
            if place < 0 or not params[place].type.has_buffers or not params[place].type.is_written:
                continue
            for index, other in rows.items():
                if np.may_share_memory(array, other):
                    raise ValueError(f"{self.function.expression}: '{params[place].name}' is written to, and shares its memory "
                                     f"with '{params[index].name}'; give a copy of one of them")

    def _arrays(self, values: Sequence[Any], lead: Shape) -> Tuple[Named, Named, List[np.ndarray]]:
        """The arrays to bind, by name, other uniforms, and the arrays of what comes out."""
        arrays: Named = {}
        uniforms: Named = {}
        found: List[np.ndarray] = []
        given = iter(values)
        for index, param in enumerate(self.function.params):
            if param.is_input:
                value, own = param.type.convert(next(given), param.name)
                if param.type.has_buffers:
                    self._share(f"__slope_in{index}", param.type, value, arrays, uniforms)
                else:
                    arrays[f"__slope_in{index}"], step = self._input(param.type, value, own, lead)
                    uniforms[f"__slope_step{index}"] = np.uint32(step)
            if param.is_output:
                arrays[f"__slope_out{index}"] = new_rows(param.type, lead)
            found.append(arrays.get(f"__slope_out{index}", np.empty(0)))
        if self.function.result.kind != VOID:
            arrays["__slope_result"] = new_rows(self.function.result, lead)
            found.append(arrays["__slope_result"])
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
    def _input(kind: Type, value: Any, own: Shape, lead: Shape) -> Tuple[np.ndarray, bool]:
        """The rows of an argument in memory: its own memory where that is already right."""
        if int(np.prod(own, dtype=np.int64)) == 1:
            lead = ()
        if kind.plain and value is not None and value.dtype == kind.scalar and own == lead and value.flags.c_contiguous:
            return value, bool(lead)
        array = new_rows(kind, lead)
        kind.store(array, flatten(value) if not lead and own else value)
        return array, bool(lead)

    def _run(self, arrays: Named, uniforms: Named) -> None:
        session, buffers = self.session, []
        try:
            for name, value in uniforms.items():
                memory = np.ascontiguousarray(value)
                session.check(native.slope_set_uniform(self.program, name.encode(), memory.ctypes.data, memory.nbytes))
            for name, array in arrays.items():
                buffer = c_void_p()
                session.check(native.slope_buffer_wrap(session.handle, array.ctypes.data, array.nbytes, byref(buffer)))
                buffers.append((name.encode(), buffer))
                session.check(native.slope_bind_buffer(self.program, name.encode(), buffer))
            groups = (int(uniforms["__slope_count"]) + GROUP - 1) // GROUP
            session.check(native.slope_dispatch(self.kernel, groups, 1, 1))
        finally:
            for name_bytes, buffer in buffers:
                native.slope_bind_buffer(self.program, name_bytes, None)
                native.slope_buffer_free(buffer)


def new_rows(kind: Type, lead: Shape) -> np.ndarray:
    return np.zeros(lead, kind.dtype)


def flatten(value: Any) -> Any:
    """One row with leading dimensions of size 1, without them. What has fewer dimensions is broadcast when it is stored."""
    if isinstance(value, dict):
        return {name: flatten(part) for name, part in value.items()}
    if isinstance(value, list):
        return [flatten(part) for part in value]
    return value
