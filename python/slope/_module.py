"""Modules, their functions, kernels and uniforms."""
from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import re
import struct
from ctypes import byref, c_int, c_void_p
from numbers import Integral
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, MutableMapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._library import (SlopeGradcheckResult, SlopeGradcheckOptions, SlopeParameter, Session, SlopeError, SlopeUniform, interrupts, native, text_of)
from ._rows import Rows, matrix_name
from ._types import BUFFER, POINTER, STRUCT, VOID, Path as FieldPath, Shape, Struct, Type, join, on_device

IN, OUT, INOUT, REF = range(4)
FLOATS = ("contract", "strict", "fast")
LANES = {1: 1, 2: 2, 4: 4, 8: 8, 16: 16, "auto": -1}  # as the library counts them
CACHE_USER = "~"  # SLOPE_CACHE_USER


class Param(NamedTuple):
    """A parameter of a function."""
    name: str
    type: Type
    direction: int

    @property
    def is_input(self) -> bool:
        return self.direction != OUT

    @property
    def is_output(self) -> bool:
        return self.direction != IN


class GradcheckResult(NamedTuple):
    """What `gradcheck` found. It is true if the derivatives are right."""
    function: str
    verdict: str
    samples: int
    tolerance: float
    fwd_error: float
    bwd_error: float
    identity_error: float
    inputs: str
    message: str

    def __bool__(self) -> bool:
        return self.verdict == "right"


class Uniforms(MutableMapping):
    """The global parameters of a module by name, also parts of them ("scene.lights", "weights[2]") and parameters of kernels.

    A buffer is set to an array, whose own memory it then refers to; anything else to a value, which is copied.
    """

    def __init__(self, module: "Module"):
        self._module = module
        self._values: Dict[str, Any] = {}
        self._kinds: Dict[str, str] = {}  # the types of these values
        self._types: Dict[int, Type] = {}  # that have been seen, by handle
        self._held: Dict[Tuple[int, str], Any] = {}  # what a program refers to
        self._buffers: Dict[Tuple[int, str], int] = {}
        self._referred: Dict[Tuple[int, str], Any] = {}  # what was set last, by program and first name, if it refers to memory

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __delitem__(self, name: str) -> None:
        raise TypeError("uniforms cannot be removed")

    def __iter__(self) -> Iterator[str]:
        uniform, program = SlopeUniform(), self._module._program
        for index in range(native.slope_uniform_count(program)):
            if native.slope_uniform(program, index, byref(uniform)):
                yield text_of(uniform.name)

    def __len__(self) -> int:
        return int(native.slope_uniform_count(self._module._program))

    def __setitem__(self, name: str, value: Any) -> None:
        self.assign(name, value, None)

    def assign(self, name: str, value: Any, kernel: Optional[int]) -> None:
        """Sets it in all programs of the module in which it has the type that it has in the first one, or in that of a kernel."""
        session = self._module._session
        with session.lock:
            session.enter()
            types = {program: self._type_name(program, name) for program in self._module._programs}
            session.messages.clear()
            main = self._module._program
            wanted = types[kernel or main] or next(filter(None, types.values()), None)
            # Where nobody knows it, the first says what is wrong with the name.
            known = [program for program in types if types[program] == wanted] if wanted else [main]
            kind = self._type(known[0], name)
            memory = kind and kind.memory_of(value)
            for program in known:
                value = self._set_anew(program, name, value, memory)
            if wanted and types[main] in (wanted, None):
                self._note(name, value, wanted)

    def _note(self, name: str, value: Any, kind: str) -> None:
        """It comes last, and its parts have no values of their own any more."""
        for known in [known for known in self._values if known == name or known.startswith((f"{name}.", f"{name}["))]:
            del self._values[known]
        self._values[name], self._kinds[name] = value, kind

    def _set_anew(self, program: int, name: str, value: Any, memory: Optional[Tuple[Any, ...]]) -> Any:
        """Sets it, unless it refers to the memory that it refers to already."""
        place = program, re.split(r"[.[]", name, maxsplit=1)[0]
        if memory is not None and self._referred.get(place) == (name, memory):
            return self._held[program, name]
        self._referred.pop(place, None)
        self._held[program, name] = value = self._set(program, name, value)
        if memory is not None:
            self._referred[place] = name, memory
        return value

    def _set(self, program: int, name: str, value: Any) -> Any:
        kind = self._type(program, name)
        if kind is None:
            self._module._session.check(native.slope_find_uniform(program, name.encode(), byref(SlopeUniform())))
            raise SlopeError(f"{name}: there is no such uniform")
        if kind.kind == POINTER:
            raise TypeError(f"{name}: pointers cannot be given from Python; use a buffer")
        prepared, lead = kind.convert(value, name)
        if lead:
            raise ValueError(f"{name}: {kind.name} has the shape {kind.shape}, not {np.shape(value)}")
        self._place(program, name, kind, prepared)
        return prepared

    def _place(self, program: int, name: str, kind: Type, value: Any) -> None:
        """Sets what `convert` has made, buffers one by one. None leaves buffers as they are."""
        if not kind.has_buffers:
            memory = np.zeros((), kind.dtype)
            kind.store(memory, value)
            self._module._session.check(native.slope_set_uniform(program, name.encode(), memory.ctypes.data, memory.nbytes))
        elif value is None:
            return
        elif kind.kind == BUFFER:
            self._bind(program, name, value)
        elif kind.kind == STRUCT:
            for field, inner in kind.fields:
                self._place(program, f"{name}.{field}", inner, value[field])
        else:
            for index, part in enumerate(value):
                self._place(program, f"{name}[{index}]", kind.element, part)  # type: ignore[arg-type]

    def image(self, name: str) -> Optional[np.ndarray]:
        """The bytes of one; None if it was never set."""
        parts = [known for known in self._values if known.startswith((f"{name}.", f"{name}["))]
        if parts:
            raise TypeError(f"the uniform '{parts[0]}' is a part of '{name}', which a GPU gets as a whole; set all of it")
        if name not in self._values:
            return None
        kind = self._type(self._module._program, name)
        assert kind is not None
        memory = np.zeros(kind.shape, kind.scalar) if kind.plain else np.zeros((), kind.dtype)
        kind.store(memory, self._values[name])
        return memory

    def _bind(self, program: int, name: str, array: np.ndarray) -> None:
        session, buffer = self._module._session, c_void_p()
        session.check(native.slope_buffer_wrap(session.handle, array.ctypes.data, array.nbytes, byref(buffer)))
        session.check(native.slope_bind_buffer(program, name.encode(), buffer))
        native.slope_buffer_free(self._buffers.pop((program, name), None))
        self._buffers[program, name] = buffer.value or 0

    def _type(self, program: int, name: str) -> Optional[Type]:
        """The type of a uniform, which is another one once a kernel of the program is a derivative; None if there is none of that name."""
        uniform = SlopeUniform()
        if native.slope_find_uniform(program, name.encode(), byref(uniform)):
            return None
        if uniform.type not in self._types:
            self._types[uniform.type] = Type(uniform.type)
        return self._types[uniform.type]

    def _type_name(self, program: int, name: str) -> Optional[str]:
        kind = self._type(program, name)
        return kind and kind.name

    def _replay(self, program: int) -> None:
        """Gives another program of the module what the others have."""
        for name, value in self._values.items():
            if self._type_name(program, name) == self._kinds[name]:
                self._set(program, name, value)
        self._module._session.messages.clear()


class Frame:
    """Memory for one call of a function: its arguments and its result, and their addresses."""

    def __init__(self, types: Sequence[Type]):
        self.types, offsets, size = types, [], 0
        for kind in types:
            offsets.append(size)
            size += (kind.size + 63) // 64 * 64
        self.bytes = np.zeros(size + 64, np.uint8)
        self.memory = memoryview(self.bytes)
        base = self.bytes.ctypes.data
        self.offsets = [-base % 64 + offset for offset in offsets]
        self.views = [self._view(kind, offset) for kind, offset in zip(types, self.offsets)]
        self.inputs: List[int] = []
        self.slots: List[Tuple[Any, int]] = []  # of what comes in: how it is written, and where
        self.addresses = (c_void_p * max(len(types), 1))(*[base + offset for offset in self.offsets])

    def _view(self, kind: Type, offset: int) -> np.ndarray:
        base = kind.scalar if kind.plain else kind.dtype.base
        shape = kind.shape if kind.plain else kind.dtype.shape
        return np.ndarray(shape, base, self.bytes.data, offset)

    def take(self, inputs: List[int]) -> None:
        """Says what comes in."""
        self.inputs = inputs
        self.slots = [(self.types[place].quick, self.offsets[place]) for place in inputs]

    def store(self, values: Sequence[Any]) -> None:
        """Writes what `convert` has made of all that comes in."""
        for place, value in zip(self.inputs, values):
            self.types[place].store(self.views[place], value)

    def reader(self, place: int, part: FieldPath) -> Callable[[Any], Any]:
        """A function that takes a value, or a part of it, out of the memory."""
        kind, view, offset = self.types[place], self.views[place], self.offsets[place]
        for name in part:
            offset += kind.dtype.fields[name][1]  # type: ignore[index]
            kind, view = kind.field(name), view[name]
        if kind.read is None:
            return lambda memory: kind.present(view)
        read = kind.read
        return lambda memory: read(memory, offset)


def gathered(found: Sequence[Any]) -> Any:
    """What a call gives: nothing, one value, or a tuple."""
    return found[0] if len(found) == 1 else tuple(found) if found else None


class Function:
    """A function of a module. It is called like one of Python; `out` parameters are results.

    Arguments may have more leading dimensions than their types: the function is then applied to each row, over all cores, and
    dimensions are broadcast as in numpy. An attribute `dispatch` runs it as a kernel.
    """

    def __init__(self, module: "Module", expression: str, text: str = ""):
        """`text` is what the program needs besides for the expression."""
        self._module, self._session, self.expression, self._text = module, module._session, expression, text
        self.shown = expression  # in messages
        handle, session = c_void_p(), module._session
        with session.lock:
            session.enter()
            session.check(native.slope_find_function(module._extend(text), expression.encode(), byref(handle)))
            self._handle = handle.value
            self.params = [self._param(index) for index in range(native.slope_function_parameter_count(handle))]
            self.result = Type(native.slope_function_result(handle))
        self.inputs = [param for param in self.params if param.is_input]
        self._outputs = [] if self.result.kind == VOID else [(len(self.params), self.result)]
        self._outputs += [(index, param.type) for index, param in enumerate(self.params) if param.is_output]
        self._places = {param.name: place for place, param in enumerate(self.inputs)}
        self._frame: Optional[Frame] = None
        self._known_readers: Dict[FieldPath, List[Callable[[Any], Any]]] = {}
        self._rows: Optional[Rows] = None
        self._device: Any = None  # the same on a GPU: cuda.DeviceRows
        self._kernel: Optional[int] = None
        self._program: Optional[int] = None  # of the kernel
        self._shorter: Dict[int, Optional[Function]] = {}
        self.__name__ = self.__qualname__ = expression
        self.__doc__ = self._signature()

    def _param(self, index: int) -> Param:
        native_param = SlopeParameter()
        native.slope_function_parameter(self._handle, index, byref(native_param))
        return Param(text_of(native_param.name) or f"_{index}", Type(native_param.type), native_param.direction)

    def _signature(self) -> str:
        words = {IN: "", OUT: "out ", INOUT: "inout ", REF: "inout "}
        params = ", ".join(f"{words[param.direction]}{param.type.name} {param.name}" for param in self.params)
        return f"{self.result.name} {self.expression}({params})"

    def __repr__(self) -> str:
        return f"<slope function {self._signature()}>"

    # ---- calls

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> List[Any]:
        """The values of all parameters that come in, in order."""
        if not named and len(args) == len(self.inputs):
            return list(args)
        if len(args) > len(self.inputs):
            count = len(self.inputs)
            raise TypeError(f"{self.shown} takes {count} argument{'' if count == 1 else 's'}, not {len(args)}")
        values, absent = list(args) + [None] * (len(self.inputs) - len(args)), set(range(len(args), len(self.inputs)))
        for name, value in named.items():
            place = self._places.get(name)
            if place is None:
                raise TypeError(f"{self.shown} has no parameter '{name}'")
            if place not in absent:
                raise TypeError(f"{self.shown}: '{name}' was given twice")
            absent.remove(place)
            values[place] = value
        for place in sorted(absent):
            raise TypeError(f"{self.shown}: the argument '{self.inputs[place].name}' is missing")
        return values

    def given(self, args: Sequence[Any], named: Mapping[str, Any]) -> "Function":
        """The function of only the first parameters if those behind them are left out and have defaults, else this one."""
        if len(args) == len(self.inputs):
            return self
        places = [self._places[name] for name in named if name in self._places]
        count = max([len(args), *[place + 1 for place in places]])
        if count >= len(self.inputs) or count != len(args) + len(places):
            return self
        if count not in self._shorter:
            self._shorter[count] = self._shortened(count)
        return self._shorter[count] or self

    def _shortened(self, count: int) -> Optional["Function"]:
        left_out = [param.name for param in self.inputs[count:]]
        params = [param for param in self.params if param.name not in left_out]
        words = {IN: "", OUT: "out ", INOUT: "inout ", REF: "inout "}
        head = [f"{words[param.direction]}{matrix_name(param.type)} {param.name}" for param in params]
        try:
            return self._module._stand_in(self.expression, matrix_name(self.result), head, self._text)
        except SlopeError:
            return None

    def __call__(self, *args: Any, **named: Any) -> Any:
        shorter = self.given(args, named)
        if shorter is not self:
            return shorter(*args, **named)
        values = self.bind(args, named)
        for param, value in zip(self.inputs, values):
            if value is None:
                raise TypeError(f"{self.shown}: the argument '{param.name}' is None")
        return self.call(values)

    def call(self, values: Sequence[Any], part: FieldPath = ()) -> Any:
        """Calls it with one value per parameter that comes in; None is zero. Of results that are pairs, only `part` is given."""
        session = self._session
        with session.lock:
            session.enter()
            frame = self._frame or self._new_frame()
            memory, is_simple = frame.memory, True
            try:
                for value, (quick, offset) in zip(values, frame.slots):
                    quick[type(value)](memory, offset, value)
            except (struct.error, OverflowError, KeyError):  # too large, or not so simple: let the conversion see to it
                is_simple = False
            if not is_simple:
                if any(map(on_device, values)):
                    return self._call_device(values, part)
                converted = [param.type.convert(value, param.name) for param, value in zip(self.inputs, values)]
                lead = join(self.expression, *[shape for _, shape in converted])
                if lead:
                    return self._call_rows([value for value, _ in converted], lead, part)
                frame.store([value for value, _ in converted])
            interrupts.begin(session.handle)
            try:
                status = native.slope_call(self._handle, frame.addresses)
            finally:
                interrupts.end()
            if status:
                session.check(status)
            return gathered([read(memory) for read in self._known_readers.get(part) or self._readers(part)])

    def _new_frame(self) -> Frame:
        self._frame = Frame([param.type for param in self.params] + [self.result])
        self._frame.take([place for place, param in enumerate(self.params) if param.is_input])
        return self._frame

    def _call_rows(self, values: Sequence[Any], lead: Shape, part: FieldPath) -> Any:
        if self._rows is None:
            self._rows = Rows(self)
        return gathered(self._rows.run(values, lead, part))

    def _call_device(self, values: Sequence[Any], part: FieldPath) -> Any:
        """Some arguments are tensors on a GPU: so are the results."""
        if self._device is None:
            from .cuda import DeviceRows
            self._device = DeviceRows(self)
        return gathered(self._device.run(values, part))

    def _readers(self, part: FieldPath) -> List[Callable[[Any], Any]]:
        """How what comes out is taken from the frame of a call."""
        found = self._known_readers.get(part)
        if found is None:
            assert self._frame is not None
            found = [self._frame.reader(place, part if kind.is_pair else ()) for place, kind in self._outputs]
            self._known_readers[part] = found
        return found

    # ---- kernels

    def dispatch(self, x: int, y: int = 1, z: int = 1, /, **uniforms: Any) -> None:
        """Runs that many groups of threads of the entry point, over all cores. Uniforms and buffers may be given by name."""
        session, kernel = self._session, c_void_p()
        groups = [operator.index(size) for size in (x, y, z)]
        if any(size < 0 or size >= 2**31 for size in groups):
            raise ValueError(f"{self.shown}: {x}, {y}, {z} are no numbers of groups")
        with session.lock:
            session.enter()
            if self._kernel is None:
                self._program = self._module._extend()
                session.check(native.slope_find_kernel(self._program, self.expression.encode(), byref(kernel)))
                self._kernel = kernel.value
            for name, value in uniforms.items():
                self._module.uniforms.assign(name, value, self._program)
            session.enter()
            with interrupts.during(session.handle):
                status = native.slope_dispatch(self._kernel, *groups)
            session.check(status)

    @property
    def group_size(self) -> Tuple[int, int, int]:
        """The [numthreads] of the entry point."""
        session, kernel, size = self._session, c_void_p(), (c_int * 3)()
        with session.lock:
            session.enter()
            session.check(native.slope_find_kernel(self._module._program, self.expression.encode(), byref(kernel)))
            native.slope_kernel_group_size(kernel, size)
        return size[0], size[1], size[2]

    # ---- derivatives

    @property
    def fwd_diff(self) -> "Function":
        """fwd_diff(f): takes and gives pairs {"p": value, "d": differential}."""
        return self._module._find(f"fwd_diff({self.expression})", self._text)

    @property
    def bwd_diff(self) -> "Function":
        """bwd_diff(f): pairs come back with the gradient in "d"; the last argument is the derivative of the result."""
        return self._module._find(f"bwd_diff({self.expression})", self._text)

    def gradcheck(self, samples: int = 0, tolerance: float = 0.0, seed: int = 0) -> GradcheckResult:
        """Compares both derivatives with differences of the function; raises SlopeError if they are wrong."""
        session, count, found = self._session, c_int(), ctypes.POINTER(SlopeGradcheckResult)()
        options = SlopeGradcheckOptions(self.expression.encode(), samples, tolerance, seed)
        with session.lock:
            session.enter()
            session.check(native.slope_gradcheck(self._module._extend(self._text), byref(options), byref(found), byref(count)))
            if count.value != 1:
                raise SlopeError(f"{self.shown}: there is nothing to check")
            one = found[0]
            result = GradcheckResult(text_of(one.function), text_of(native.slope_verdict_name(one.verdict)), one.samples,
                                     one.tolerance, one.fwd_error, one.bwd_error, one.identity_error, text_of(one.inputs),
                                     text_of(one.message))
        if result.verdict == "wrong":
            raise SlopeError(f"{self.shown}: {result.message}, at {result.inputs}")
        return result


def split_params(text: str) -> List[str]:
    """At the commas that are not inside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


class Overloads:
    """Functions of one name. A call takes the one whose parameters fit its arguments, best without rows; `m["f(float3)"]` is one of them."""

    def __init__(self, name: str, functions: Sequence[Function]):
        self.__name__, self.functions = name, list(functions)

    def __call__(self, *args: Any, **named: Any) -> Any:
        best, problems = None, []
        for function in self.functions:
            try:
                rank = self._rank(function, args, named)
            except (TypeError, ValueError) as error:
                problems.append(f"    {function.__doc__}: {error}")
                continue
            if best is None or rank < best[0]:
                best = rank, function
        if best is None:
            raise TypeError("\n".join([f"no overload of {self.__name__} takes these arguments:", *problems]))
        return best[1](*args, **named)

    @staticmethod
    def _rank(function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Tuple[int, int]:
        """How many leading dimensions there are, and how many arguments are converted from integers."""
        function = function.given(args, named)
        values = function.bind(args, named)
        leads = [len(param.type.convert(value, param.name)[1]) for param, value in zip(function.inputs, values)]
        exact = [isinstance(value, int) and param.type.is_floating for param, value in zip(function.inputs, values)]
        return max(leads, default=0), sum(exact)

    def __repr__(self) -> str:
        return "\n".join(["<slope overloads", *[f"    {function.__doc__}" for function in self.functions], ">"])


class Space:
    """A type or namespace of a module: its methods and functions are attributes, the object comes first. Called with fields by
    name, it makes a struct."""

    def __init__(self, module: "Module", name: str):
        self._module, self._name = module, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._module._member(f"{self._name}.{name}")

    def __call__(self, **fields: Any) -> Struct:
        return Struct(fields)

    def __repr__(self) -> str:
        return f"<slope type {self._name}>"


class Module:
    """A program of Slang. Its functions are attributes, or `module["expression"]`: `m["f<float>"]`, `m["Camera.project"]`."""

    __iter__ = None  # else Python would try module[0]

    def __init__(self, path: str, text: str, include_paths: Sequence[str], defines: Mapping[str, Any],
                 options: Mapping[str, Any]):
        self._session = Session(include_paths, defines, options)
        self._path, self._text, self._floats = path, text, FLOATS[options.get("floats", 0)]
        self._functions: Dict[str, Function] = {}
        self._others: Dict[str, Any] = {}  # overloads and types, by name
        self._count = 0
        self._program = self._load(text)
        self._programs = [self._program]
        self.uniforms = Uniforms(self)
        with self._session.lock:
            self._session.check(native.slope_check(self._program))

    def _load(self, text: str) -> int:
        program, data, session = c_void_p(), text.encode(), self._session
        with session.lock:
            session.enter()
            session.check(native.slope_load_text(session.handle, os.fsencode(self._path), data, len(data), byref(program)))
        return program.value or 0

    def _extend(self, text: str = "") -> int:
        """The program once more, with declarations added, and with the same uniforms.

        Each function has one of its own: what is differentiated must not have been optimised for a call before."""
        program = self._load(self._text + "\n" + text)
        self.uniforms._replay(program)
        self._programs.append(program)
        return program

    def _find(self, expression: str, text: str = "") -> Function:
        function = self._functions.get(expression)
        if function is None:
            function = self._functions[expression] = Function(self, expression, text)
        return function

    def _stand_in(self, expression: str, result: str, params: Sequence[str], text: str = "") -> Function:
        """A function with these parameters that calls the expression with them; differentiable if that is."""
        self._count += 1
        name, words = f"__slope_call{self._count}", [param.split()[-1] for param in params]
        call = f"{expression}({', '.join(words)})"
        if words[:1] == ["this"]:
            params = [params[0][:-len("this")] + "object", *params[1:]]
            call = f"object.{expression.rpartition('.')[2]}({', '.join(words[1:])})"
        body = f"{result} {name}({', '.join(params)}) {{ {'' if result == 'void' else 'return '}{call}; }}\n"
        try:
            function = Function(self, name, text + "[Differentiable] " + body)
        except SlopeError:
            function = Function(self, name, text + body)
        function.shown, function.__doc__ = expression, function._signature().replace(name, expression, 1)
        return function

    def _overloads(self, name: str, error: SlopeError) -> Optional[Overloads]:
        """What the message about several overloads lists."""
        found = re.findall(r"note: candidate: (.+) " + re.escape(name) + r"\((.*)\)$", str(error), re.MULTILINE)
        if "E3081" not in str(error) or not found or "<" in name:
            return None
        functions = []
        for result, params in found:
            function = self._stand_in(name, result, split_params(params))
            self._functions[f"{name}({', '.join(param.type.name for param in function.params)})"] = function
            functions.append(function)
        return Overloads(name, functions)

    def __getitem__(self, expression: str) -> Any:
        """A function by the expression that Slang has for it; one of several overloads by the types of its parameters: "f(float3)"."""
        if not isinstance(expression, str):
            raise TypeError("a function is named by an expression in a string")
        known = re.fullmatch(r"(\w+)\((.*)\)", expression)
        if known and expression not in self._functions and known[1] not in ("fwd_diff", "bwd_diff"):
            with contextlib.suppress(AttributeError):
                self._member(known[1])  # makes its overloads known
        try:
            return self._others.get(expression) or self._find(expression)
        except SlopeError as error:
            overloads = self._overloads(expression, error)
            if overloads is None:
                raise
            return self._others.setdefault(expression, overloads)

    def _member(self, name: str) -> Any:
        try:
            return self[name]
        except SlopeError as error:
            if "E3013" in str(error):  # it is there, and no function
                return self._others.setdefault(name, Space(self, name))
            raise AttributeError(f"{self._path} has no function '{name}'\n{error}") from error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._member(name)
        self.__dict__[name] = found  # the next time it is an attribute like any other
        return found

    def __repr__(self) -> str:
        return f"<slope module {self._path}>"


def cache_folder(cache: Union[bool, str, "os.PathLike[str]"]) -> Optional[bytes]:
    if isinstance(cache, bool):
        return os.environ.get("SLOPE_CACHE", CACHE_USER).encode() if cache else None
    return os.fsencode(cache)


def group_of(block: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    sizes = tuple(block) if isinstance(block, Iterable) else (block,)
    if len(sizes) > 3 or any(not isinstance(size, Integral) or not 1 <= size <= 65536 for size in sizes):
        raise ValueError("block is up to three numbers of threads, from 1 to 65536")
    return sizes + (1,) * (3 - len(sizes))


def compile(text: str, *, path: str = "<string>", include_paths: Sequence[str] = (), defines: Optional[Mapping[str, Any]] = None,
            threads: int = 0, optimization: int = 3, unchecked: bool = False, floats: str = "contract",
            strict: bool = False, interpret: bool = False, block: Union[int, Sequence[int]] = (),
            lanes: Union[int, str] = "auto", cache: Union[bool, str, "os.PathLike[str]"] = True) -> Module:
    """Compiles a program of Slang from a text. `path` is its name in messages, and its folder the first place for imports.

    `threads` run kernels (0: one per processor); `floats` is "contract", "strict" or "fast" (docs/accuracy.md). With `strict`, a call in which
    an index was out of range raises SlopeError, which says where. With `interpret`, no machine code is made: programs start at once and compute
    more slowly. `lanes` items of a kernel, and rows of a call, are done at once, in vectors: 1, 2, 4, 8 or 16, or "auto", as many as seem best.
    `block` is how many threads a group of a kernel without [numthreads] has: 64, or (8, 8); otherwise it has one.
    Machine code is kept for later runs in the folder `cache`; True: $SLOPE_CACHE or ~/.cache/slope, False: not at all."""
    if not isinstance(text, str):
        raise TypeError("the program is a string")
    if defines is not None and not isinstance(defines, Mapping):
        raise TypeError("defines is a dict of macros and their values: {\"N\": 3}")
    if not 0 <= optimization <= 3:
        raise ValueError("optimization is 0 to 3")
    if floats not in FLOATS:
        raise ValueError(f"floats is one of {', '.join(FLOATS)}")
    if lanes not in LANES:
        raise ValueError("lanes is 1, 2, 4, 8, 16 or \"auto\"")
    options = {"lanes": LANES[lanes], "block": group_of(block), "threads": threads, "optimization": optimization, "unchecked": unchecked, "strict": strict, "interpret": interpret,
               "floats": FLOATS.index(floats), "cache": cache_folder(cache)}
    return Module(path, text, include_paths, defines or {}, options)


def load(path: Union[str, "os.PathLike[str]"], **options: Any) -> Module:
    """Compiles a program of Slang from a file. Options are those of `compile`."""
    return compile(Path(path).read_text(encoding="utf-8"), path=os.fspath(path), **options)
