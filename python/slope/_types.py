"""Types of Slang as numpy sees them: layouts from reflection, and values that go in and come out.

A type whose scalars are all the same (a number, vector, matrix, array of such) is `plain`: an array with `shape` and `scalar`.
Structs are mappings by field, arrays of structs are sequences. In constant buffers, arrays have gaps between their elements (`is_spaced`): numpy sees
a struct with a field for each. A value may have leading dimensions before those of its type: rows.
"""
from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._library import SlopeField, byref, native, text_of

Shape = Tuple[int, ...]
Path = Tuple[str, ...]  # of fields, in structs
SCALARS = {1: "?", 2: "i1", 3: "u1", 4: "i2", 5: "u2", 6: "i4", 7: "u4", 8: "i8", 9: "u8", 10: "f2", 11: "f4", 12: "f8"}
CODES = {"?": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f2": "e",
         "f4": "f", "f8": "d"}
VOID, VECTOR, ARRAY, STRUCT, POINTER, BUFFER = 0, 13, 14, 15, 16, 17
READ_ONLY_BUFFERS = (0, 4, 6)
COUNTED_BUFFERS = (2, 3)
GRID = ["data", "offset", "shape", "strides"]  # the fields of a tensor of slangpy
SPAN = np.dtype([("data", "u8"), ("count", "u8")])


class Struct(dict):
    """A struct of Slang: a dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Type:
    """How something lies in memory."""

    def __init__(self, handle: int):
        self.handle = handle
        self.kind: int = native.slope_type_kind(handle)
        self.name = text_of(native.slope_type_name(handle))
        self.size: int = native.slope_type_size(handle)
        self.scalar: Optional[np.dtype] = None
        self.shape: Shape = ()
        self.count = 0          # of elements of an array
        self.whole: Shape = ()  # the shape of an array for it: that of all numbers in it, or of structs
        self.is_spaced = False
        self.fields: List[Tuple[str, Type]] = []
        self.has_buffers = self.kind in (POINTER, BUFFER)
        element = native.slope_type_element(handle) if self.kind in (VECTOR, ARRAY, POINTER, BUFFER) else None
        self.element = Type(element) if element and self.kind != POINTER else None
        self.dtype = self._layout()
        self.is_pair = self.kind == STRUCT and self.name.startswith("DifferentialPair<")
        # A pair, or a pair of pairs, of numbers and arrays: its halves are arrays of their own when there are rows.
        self.is_split = self.is_pair and all(inner.plain or inner.is_split for _, inner in self.fields)
        self.quick = self._quick()
        self.read = self._reader()

    @property
    def plain(self) -> bool:
        return self.scalar is not None

    @property
    def is_reference(self) -> bool:
        """DiffBuffer, DiffTensor, TensorView, or a tensor of slangpy: an array stands for it, in whose memory it is."""
        return self._is_named("DiffBuffer<", "DiffTensor<", "TensorView<") or (
            self._is_named("Tensor<", "RWTensor<", "AtomicTensor<") and [name for name, _ in self.fields] == GRID)

    @property
    def is_view(self) -> bool:
        """DiffTensorView, or a tensor of slangpy with gradients: an array stands for its values; gradients and tangents may be missing."""
        return self._is_named("DiffTensorView<") or (
            self._is_named("GradOutTensor<", "GradInTensor<", "GradInOutTensor<") and self.fields[0][0] == "primal")

    def _is_named(self, *begins: str) -> bool:
        return self.kind == STRUCT and self.name.startswith(begins)

    @property
    def is_written(self) -> bool:
        """Whether a function can write to the memory that it refers to."""
        if self.kind == BUFFER:
            return native.slope_type_buffer_kind(self.handle) not in READ_ONLY_BUFFERS
        return any(inner.is_written for _, inner in self.fields)

    @property
    def is_floating(self) -> bool:
        return self.scalar is not None and self.scalar.kind == "f"

    def _quick(self) -> Dict[type, Callable[..., None]]:
        """How numbers of Python, and structs of them, get into memory without numpy. What is no such value raises an exception."""
        if self.kind == STRUCT:
            return self._quick_struct()
        if self.kind not in SCALARS:
            return {}
        code = SCALARS[self.kind]
        pack = struct.Struct("=" + CODES[code]).pack_into
        zero = {type(None): lambda memory, offset, value: pack(memory, offset, 0)}
        return {bool: pack, **zero} if code == "?" else {float: pack, int: pack, **zero} if code[0] == "f" else {int: pack, **zero}

    def _quick_struct(self) -> Dict[type, Callable[..., None]]:
        offsets = [self.dtype.fields[name][1] for name, _ in self.fields]  # type: ignore[index]
        parts = [(name, inner.quick, offset) for (name, inner), offset in zip(self.fields, offsets)]
        if not parts or not all(quick for _, quick, _ in parts):
            return {}

        def pack(memory: Any, offset: int, value: Dict[str, Any]) -> None:
            if len(value) != len(parts):
                raise KeyError("another number of fields")
            for name, quick, at in parts:
                part = value[name]
                quick[type(part)](memory, offset + at, part)

        return {dict: pack, Struct: pack}

    def _reader(self) -> Optional[Callable[[Any, int], Any]]:
        """How such values are taken out again; None: by numpy."""
        if not self.quick:
            return None
        if self.kind != STRUCT:
            unpack = struct.Struct("=" + CODES[SCALARS[self.kind]]).unpack_from
            return lambda memory, offset: unpack(memory, offset)[0]
        offsets = [self.dtype.fields[name][1] for name, _ in self.fields]  # type: ignore[index]
        parts = [(name, inner.read, offset) for (name, inner), offset in zip(self.fields, offsets)]
        return lambda memory, offset: Struct([(name, read(memory, offset + at)) for name, read, at in parts])

    def _layout(self) -> np.dtype:
        if self.kind in SCALARS:
            self.scalar = np.dtype(SCALARS[self.kind])
            return self.scalar
        if self.kind in (VECTOR, ARRAY):
            return self._array()
        if self.kind == STRUCT:
            return self._struct()
        if self.kind == BUFFER:
            return SPAN
        return np.dtype("u8") if self.kind == POINTER else np.dtype("V0")

    def _array(self) -> np.dtype:
        element, count = self.element, native.slope_type_count(self.handle)
        assert element is not None
        if count < 0:
            raise TypeError(f"values of type {self.name} cannot be given from Python: their number is open")
        stride = int(native.slope_type_element_stride(self.handle))
        self.has_buffers = element.has_buffers
        self.count, self.whole = count, (count, *element.whole)
        self.is_spaced = stride != element.dtype.itemsize
        if self.is_spaced:
            places = range(count)
            return np.dtype({"names": [str(index) for index in places], "formats": [element.dtype] * count,
                             "offsets": [index * stride for index in places], "itemsize": self.size})
        self.scalar, self.shape = element.scalar, (count, *element.shape)
        return np.dtype((element.dtype, (count,)))

    def _struct(self) -> np.dtype:
        field, offsets = SlopeField(), []
        for index in range(native.slope_type_field_count(self.handle)):
            native.slope_type_field(self.handle, index, byref(field))
            offsets.append(field.offset)
            self.fields.append((text_of(field.name) or f"_{index}", Type(field.type)))
        self.has_buffers = any(inner.has_buffers for _, inner in self.fields)
        return np.dtype({"names": [name for name, _ in self.fields], "formats": [inner.dtype for _, inner in self.fields],
                         "offsets": offsets, "itemsize": self.size})

    def part(self, memory: np.ndarray, index: int) -> np.ndarray:
        """An element of an array that is no plain one."""
        return memory[str(index)] if self.is_spaced else memory[..., index]

    def field(self, name: str) -> "Type":
        return dict(self.fields)[name]

    def __repr__(self) -> str:
        return f"<slope type {self.name}>"

    # ---- values that go in

    def convert(self, value: Any, where: str) -> Tuple[Any, Shape]:
        """The value as arrays, and its leading dimensions. None is zero."""
        if value is None:
            return None, ()
        if self.kind == BUFFER:
            return buffer_array(self, value, where), ()
        if self.kind == POINTER:
            raise TypeError(f"{where}: pointers cannot be given from Python; use a buffer")
        if self.plain:
            return self._convert_plain(value, where)
        if self.kind == STRUCT:
            return self._convert_struct(value, where)
        return self._convert_sequence(value, where)

    def memory_of(self, value: Any) -> Optional[Tuple[Any, ...]]:
        """Which memory a value refers to, and how; None: some of it is copied, or it takes a closer look to know."""
        if isinstance(value, np.ndarray) and (self.kind == BUFFER or self.is_reference or self.is_view):
            return value.ctypes.data, value.shape, value.strides, value.dtype, value.flags.writeable
        if type(value) is not dict or self.kind != STRUCT or not value.keys() <= dict(self.fields).keys():
            return None
        parts = [(name, value[name] is None or inner.memory_of(value[name])) for name, inner in self.fields if name in value]
        return None if any(part is None for _, part in parts) else tuple(parts)

    def _convert_plain(self, value: Any, where: str) -> Tuple[Any, Shape]:
        assert self.scalar is not None
        try:
            array = as_array(value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if not castable(array, self.scalar):
            raise TypeError(f"{where}: {self.name} was expected, not {describe(value, array)}")
        rank = len(self.shape)
        if array.ndim < rank or array.shape[array.ndim - rank:] != self.shape:
            raise ValueError(f"{where}: {self.name} has the shape {self.shape}, which does not end {array.shape}")
        return array, array.shape[:array.ndim - rank]

    def _convert_struct(self, value: Any, where: str) -> Tuple[Any, Shape]:
        names = [name for name, _ in self.fields]
        if self.is_reference and not isinstance(value, Mapping):
            value = self._refer(value, where)
        elif self.is_view:
            value = {**dict.fromkeys(names), **(value if isinstance(value, Mapping) else {"primal": value})}
        if isinstance(value, np.ndarray) and value.dtype.names:
            given, value = set(value.dtype.names), {name: value[name] for name in value.dtype.names}
        elif isinstance(value, Mapping):
            given = set(value)
        else:
            if isinstance(value, (int, float, str, bytes, list, tuple, np.ndarray, np.generic)):
                raise TypeError(f"{where}: a dict with the fields of {self.name} was expected, not {type(value).__name__}")
            given = {name for name in names if hasattr(value, name)}
            value = {name: getattr(value, name) for name in given}
        for missing in [name for name in names if name not in given]:
            raise TypeError(f"{where}: the field '{missing}' of {self.name} is missing")
        for extra in sorted(given.difference(names)):
            raise TypeError(f"{where}: {self.name} has no field '{extra}'")
        parts = {name: inner.convert(value[name], f"{where}.{name}") for name, inner in self.fields}
        return {name: part for name, (part, _) in parts.items()}, join(where, *[lead for _, lead in parts.values()])

    def _refer(self, value: Any, where: str) -> Dict[str, Any]:
        """The fields of a reference on an array."""
        array = buffer_array(self.field("data"), value, where)
        if len(self.fields) == 1:
            return {"data": array}
        element, (rank,) = self.field("data").element, self.field("shape").shape
        shape = array.shape[:array.ndim - len(element.shape)]  # type: ignore[union-attr]
        is_open = "rank" in [name for name, _ in self.fields]  # any number of dimensions, up to that
        if len(shape) > rank or (not is_open and len(shape) != rank):
            raise ValueError(f"{where}: {self.name} has {'at most ' if is_open else ''}{rank} dimensions, the array {len(shape)}")
        strides = [int(np.prod(shape[axis + 1:], dtype=np.int64)) for axis in range(len(shape))]
        unused = [0] * (rank - len(shape))
        found = {"data": array, "offset": 0, "shape": [*shape, *unused], "strides": [*strides, *unused]}
        return {**found, "rank": len(shape)} if is_open else found

    def zeros_like(self, value: Any, where: str) -> np.ndarray:
        """Memory for the differential, of this type, of a DiffBuffer or DiffTensor on an array."""
        array, element = as_array(value), self.field("data").element
        if isinstance(value, Mapping) or array.dtype == object:
            raise TypeError(f"{where}: an array was expected")
        if on_device(value):
            return array.zeros(element.scalar)  # type: ignore[union-attr]
        return np.zeros(array.shape, element.scalar if element.plain else element.dtype)  # type: ignore[union-attr]

    def _convert_sequence(self, value: Any, where: str) -> Tuple[Any, Shape]:
        assert self.element is not None
        if self.is_spaced and not isinstance(value, (list, tuple)):
            value = as_array(value)
        axis = np.ndim(value) - len(self.whole) if isinstance(value, np.ndarray) else -1
        if axis >= 0:
            value = [np.take(value, index, axis) for index in range(value.shape[axis])]
        if not isinstance(value, (list, tuple)) or len(value) != self.count:
            raise TypeError(f"{where}: a list of {self.count} values of type {self.element.name} was expected")
        parts = [self.element.convert(part, f"{where}[{index}]") for index, part in enumerate(value)]
        return [part for part, _ in parts], join(where, *[lead for _, lead in parts])

    def store(self, target: np.ndarray, value: Any) -> None:
        """Writes what `convert` has made to memory of this type, with leading dimensions or without."""
        if value is None:
            target[...] = np.zeros((), target.dtype)
        elif self.kind == BUFFER:
            target["data"], target["count"] = value.ctypes.data, value.nbytes // buffer_stride(self)
        elif self.plain:
            np.copyto(target, value, casting="unsafe")
        elif self.kind == STRUCT:
            for name, inner in self.fields:
                inner.store(target[name], value[name])
        else:
            for index, part in enumerate(value):
                self.element.store(self.part(target, index), part)  # type: ignore[union-attr]

    def lead(self, value: Any) -> Shape:
        """The leading dimensions of what `convert` has made."""
        if value is None or self.has_buffers:
            return ()
        if self.plain:
            shape = np.shape(value)
            return shape[:len(shape) - len(self.shape)]
        if self.kind == STRUCT:
            return np.broadcast_shapes(*[inner.lead(value[name]) for name, inner in self.fields])
        return np.broadcast_shapes(*[self.element.lead(part) for part in value])  # type: ignore[union-attr]

    # ---- values that come out

    def present(self, source: np.ndarray) -> Any:
        """What is in memory of this type, as Python likes it; arrays are copies unless they have rows."""
        if self.plain:
            return source.item() if not source.ndim else source.copy()
        if self.kind == STRUCT:
            return Struct((name, inner.present(source[name])) for name, inner in self.fields)
        if self.kind == ARRAY and not self.has_buffers:
            return [self.element.present(self.part(source, index)) for index in range(self.count)]  # type: ignore[union-attr]
        return None


def inside(value: Any, path: Path) -> Any:
    """What a struct has there; None is zero, and so is all that is in it."""
    for name in path:
        value = None if value is None else value[name]
    return value


def on_device(value: Any) -> bool:
    """Whether it is a tensor on a GPU, or holds one."""
    if isinstance(value, (dict, list, tuple)):
        return any(map(on_device, value.values() if isinstance(value, dict) else value))
    return getattr(value, "is_cuda", False) is True


def as_array(value: Any) -> np.ndarray:
    """Any array without a copy: numpy, the buffer protocol, __array__, or on the CPU __dlpack__; tensors of a GPU as what stands for them."""
    if isinstance(value, np.ndarray):
        return value
    if on_device(value):
        from ._device import DeviceArray
        return value if isinstance(value, DeviceArray) else DeviceArray(value)  # type: ignore[return-value]
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def castable(array: np.ndarray, scalar: np.dtype) -> bool:
    """Whether the conversion loses no more than precision; of integers and truth values, whether they fit."""
    if array.dtype.kind not in "biuf":
        return False
    if array.dtype == scalar or scalar.kind == "f":
        return True
    if array.dtype.kind == "f" or (scalar.kind == "b") != (array.dtype.kind == "b"):
        return False
    if array.size == 0:
        return True
    limits = np.iinfo(scalar)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def describe(value: Any, array: np.ndarray) -> str:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return repr(value)
    return f"an array of {array.dtype}" if array.dtype != object else type(value).__name__


def join(where: str, *leads: Shape) -> Shape:
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        raise ValueError(f"{where}: the leading dimensions {', '.join(map(str, leads))} do not go together") from None


# ---- buffers


def buffer_stride(kind: Type) -> int:
    return int(native.slope_type_element_stride(kind.handle)) or 1


def buffer_array(kind: Type, value: Any, where: str) -> np.ndarray:
    """The array that a buffer refers to: its own memory, never a copy."""
    array = as_array(value) if not isinstance(value, (list, tuple, int, float)) else None
    if array is None or array.dtype == object:
        raise TypeError(f"{where}: {kind.name} refers to the memory of an array; a {type(value).__name__} has none")
    flavour = native.slope_type_buffer_kind(kind.handle)
    if flavour in COUNTED_BUFFERS:
        raise TypeError(f"{where}: {kind.name} counts its elements, which memory of Python cannot")
    if not array.flags.c_contiguous:
        raise ValueError(f"{where}: the array is not contiguous; give numpy.ascontiguousarray of it")
    if not array.flags.aligned:
        raise ValueError(f"{where}: the array does not begin where its numbers may lie in memory; give a copy of it")
    if flavour not in READ_ONLY_BUFFERS and not array.flags.writeable:
        raise ValueError(f"{where}: the array is read-only, and {kind.name} is written to")
    element = kind.element
    if element is not None and element.kind != VOID:
        check_elements(kind, element, array, where)
    return array


def check_elements(kind: Type, element: Type, array: np.ndarray, where: str) -> None:
    wanted = element.scalar if element.plain else element.dtype
    if array.dtype != wanted:
        raise TypeError(f"{where}: {kind.name} needs an array of {wanted}, not of {array.dtype}")
    rank = len(element.shape)
    if array.nbytes % buffer_stride(kind):
        raise ValueError(f"{where}: {array.size} numbers are no whole number of elements of {kind.name}")
    if array.ndim > 1 and rank and array.shape[-rank:] != element.shape:
        raise ValueError(f"{where}: the elements of {kind.name} have the shape {element.shape}, which does not end "
                         f"{array.shape}")
