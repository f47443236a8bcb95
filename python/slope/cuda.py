"""Functions on tensors of a GPU: the kernel over rows as CUDA source, compiled at run time and launched where the tensors lie.

NVRTC, which PyTorch brings along, compiles what `slope build -target cuda` makes; the driver loads and launches it, on the current stream of
PyTorch. Both are called by ctypes. Arguments are used in place; only results, and what has to be converted, is new memory. Calls return
before the kernel has run, as operations of PyTorch do.
"""
from __future__ import annotations

import contextlib
import ctypes
import glob
import math
import os
import struct
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch

from ._device import DeviceArray, bits_dtype, device_arrays, shown_dtype
from ._library import SlopeBlob, SlopeBuildOptions, SlopeError, SlopeUniform, native, text_of
from ._rows import (GROUP, MOST_ROWS, PREFIX, Layout, Leaf, Rows, absent_leaves, array_name, by_parameter, collect, matrix_name,
                    new_rows, refuse_buffers, split_leaves)
from ._types import BUFFER, STRUCT, Path, Shape, Type, inside, join

if TYPE_CHECKING:
    from ._module import Function, Uniforms

HEAP_LIMIT, TAPE_HEAP = 2, 1 << 29  # CU_LIMIT_MALLOC_HEAP_SIZE, and bytes for what reverse passes keep of long loops
ROWS = f"{PREFIX}rows"  # the kernel
FLOATS = {"contract": [], "strict": ["--fmad=false"], "fast": ["--use_fast_math"]}


# ---- the two libraries


class Library:
    """A library by ctypes whose functions give 0, or a number that stands for what went wrong."""

    def __init__(self, names: Sequence[str], explain: str):
        problems = []
        for name in names:
            try:
                self.native = ctypes.CDLL(name)
                break
            except OSError as error:
                problems.append(f"    {name}: {error}")
        else:
            raise SlopeError("for tensors of a GPU a library of CUDA is missing. Tried:\n" + "\n".join(problems))
        self.explain = explain

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.native, name)(*arguments)
        if status:
            raise SlopeError(f"{name}: {self.reason(status)}")

    def reason(self, status: int) -> str:
        text = c_char_p()
        if self.explain.startswith("cu"):
            getattr(self.native, self.explain)(status, byref(text))
        else:
            function = getattr(self.native, self.explain)
            function.restype, text.value = c_char_p, function(status)
        return (text.value or b"an unknown error").decode()


def nvrtc_names() -> List[str]:
    """The one that PyTorch uses is in the process, or beside it; else one of a toolkit."""
    version = (torch.version.cuda or "12").split(".")[0]
    packages = os.path.dirname(os.path.dirname(torch.__file__))
    patterns = [f"{packages}/nvidia/*/lib/libnvrtc.so.*", f"{packages}/torch/lib/libnvrtc*.so*",
                "/usr/local/cuda*/lib*/libnvrtc.so", "/usr/local/cuda*/targets/*/lib/libnvrtc.so"]
    beside = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if "builtins" not in path]
    return [f"libnvrtc.so.{version}", *beside, "libnvrtc.so"]


class Libraries:
    """Loaded when they are first needed."""

    lock = threading.Lock()
    loaded: Dict[str, Library] = {}

    @classmethod
    def find(cls, name: str) -> Library:
        with cls.lock:
            if name not in cls.loaded:
                cls.loaded[name] = (Library(nvrtc_names(), "nvrtcGetErrorString") if name == "nvrtc"
                                    else Library(["libcuda.so.1", "libcuda.so"], "cuGetErrorString"))
            return cls.loaded[name]


# ---- from source to machine code


class Code(NamedTuple):
    """A program for a GPU, and how the driver knows what was asked for by name."""
    image: bytes
    names: Dict[str, bytes]


def architectures() -> List[int]:
    """What the compiler makes code for: 90 is sm_90."""
    nvrtc, count = Libraries.find("nvrtc"), c_int()
    nvrtc.call("nvrtcGetNumSupportedArchs", byref(count))
    found = (c_int * count.value)()
    nvrtc.call("nvrtcGetSupportedArchs", found)
    return list(found)


def target_of(capability: Tuple[int, int]) -> Tuple[str, bool]:
    """The target for a GPU, and whether that is machine code; a GPU that the compiler does not know gets code for the driver to translate."""
    wanted, known = capability[0] * 10 + capability[1], architectures()
    if wanted in known:
        return f"sm_{wanted}", True
    return f"compute_{max([number for number in known if number < wanted] or known)}", False


def fetch(nvrtc: Library, program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    nvrtc.call(f"nvrtcGet{what}Size", program, byref(size))
    memory = ctypes.create_string_buffer(size.value)
    nvrtc.call(f"nvrtcGet{what}", program, memory)
    return memory.raw[:size.value]


def compile_source(source: str, names: Sequence[str], capability: Tuple[int, int], options: Sequence[str] = ()) -> Code:
    """Machine code of CUDA source; `names` are expressions, such as `slope::f`, whose symbols are wanted."""
    nvrtc, program = Libraries.find("nvrtc"), c_void_p()
    target, is_machine_code = target_of(capability)
    words = [f"--gpu-architecture={target}".encode(), b"--std=c++17", *[option.encode() for option in options]]
    nvrtc.call("nvrtcCreateProgram", byref(program), source.encode(), b"slope.cu", 0, None, None)
    try:
        for name in names:
            nvrtc.call("nvrtcAddNameExpression", program, name.encode())
        if nvrtc.native.nvrtcCompileProgram(program, len(words), (c_char_p * len(words))(*words)):
            said = fetch(nvrtc, program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")
            raise SlopeError(f"the CUDA source of a function does not compile:\n{said}")
        symbols = {}
        for name in names:
            symbol = c_char_p()
            nvrtc.call("nvrtcGetLoweredName", program, name.encode(), byref(symbol))
            symbols[name] = symbol.value or b""
        return Code(fetch(nvrtc, program, "CUBIN" if is_machine_code else "PTX"), symbols)
    finally:
        nvrtc.native.nvrtcDestroyProgram(byref(program))


# ---- devices


class Device:
    """A GPU, in the context that PyTorch has for it."""

    lock = threading.Lock()
    known: Dict[int, "Device"] = {}

    def __init__(self, index: int):
        self.index, self.place, self.driver, self.context = index, torch.device("cuda", index), Libraries.find("cuda"), c_void_p()
        torch.cuda.init()
        handle = c_int()
        self.driver.call("cuDeviceGet", byref(handle), index)
        self.driver.call("cuDevicePrimaryCtxRetain", byref(self.context), handle)
        self.capability = torch.cuda.get_device_capability(index)
        self.has_heap = False

    @classmethod
    def find(cls, index: int) -> "Device":
        with cls.lock:
            if index not in cls.known:
                cls.known[index] = cls(index)
            return cls.known[index]

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        self.driver.call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self.driver.native.cuCtxPopCurrent_v2(byref(c_void_p()))

    def ask_for_heap(self) -> None:
        """Only before a kernel that uses the heap has run; later there is what there is."""
        if not self.has_heap:
            self.driver.native.cuCtxSetLimit(HEAP_LIMIT, c_size_t(TAPE_HEAP))
            self.has_heap = True

    def load(self, code: Code) -> c_void_p:
        module = c_void_p()
        self.driver.call("cuModuleLoadData", byref(module), code.image)
        return module

    def function(self, module: c_void_p, symbol: bytes) -> c_void_p:
        function = c_void_p()
        self.driver.call("cuModuleGetFunction", byref(function), module, symbol)
        return function

    def variable(self, module: c_void_p, symbol: bytes) -> Tuple[c_void_p, int]:
        address, size = c_void_p(), c_size_t()
        self.driver.call("cuModuleGetGlobal_v2", byref(address), byref(size), module, symbol)
        return address, size.value

    def stream(self) -> c_void_p:
        return c_void_p(torch.cuda.current_stream(self.index).cuda_stream)

    def launch(self, function: c_void_p, groups: int, threads: int, arguments: Any) -> None:
        one, none = c_uint(1), c_uint(0)
        self.driver.call("cuLaunchKernel", function, c_uint(groups), one, one, c_uint(threads), one, one, none, self.stream(),
                         arguments, None)


# ---- kernels over rows


class Frame:
    """Memory for the arguments of a launch, and their addresses: as `Layout.declarations` has them."""

    def __init__(self, layout: Layout):
        sizes = [kind.size for _, kind in layout.whole] + [16, 4] * len(layout.given) + [16] * len(layout.outputs) + [4]
        self.offsets = np.cumsum([0, *[(size + 15) // 16 * 16 for size in sizes]]).tolist()
        self.memory = np.zeros(self.offsets[-1] + 16, np.uint8)
        base = self.memory.ctypes.data
        start = -base % 16
        self.offsets = [start + offset for offset in self.offsets]
        self.addresses = (c_void_p * len(sizes))(*[base + offset for offset in self.offsets[:-1]])
        self.views = [np.ndarray((), kind.dtype, self.memory.data, offset) for (_, kind), offset in zip(layout.whole, self.offsets)]

    def fill(self, values: Sequence[Tuple[Any, ...]]) -> None:
        """What is not whole: a span of address and number of rows, or a number."""
        for offset, value in zip(self.offsets[len(self.views):], values):
            struct.pack_into("=QQ" if len(value) == 2 else "=I", self.memory, offset, *value)


class Source(NamedTuple):
    """A kernel as CUDA source, what it is called there, and the uniforms of the program that it uses: likewise, and whether they are buffers."""
    text: str
    kernel: str
    uniforms: Dict[str, Tuple[str, bool]]


def used_uniforms(program: int, kernel: c_void_p) -> Dict[str, Tuple[str, bool]]:
    found, uniform = {}, SlopeUniform()
    for index in range(native.slope_uniform_count(program)):
        if not native.slope_uniform(program, index, byref(uniform)) or not native.slope_kernel_uses(kernel, index):
            continue
        name = text_of(uniform.name)
        if not name.startswith(f"{ROWS}."):  # a parameter of the kernel
            found[name] = text_of(native.slope_built_name(program, name.encode())), Type(uniform.type).kind == BUFFER
    return found


class Kernel:
    """A kernel on one device."""

    def __init__(self, device: Device, layout: Layout, source: Source, floats: str):
        self.device, self.layout, self.frame = device, layout, Frame(layout)
        symbols = {name: f"&slope::{built}" for name, (built, _) in source.uniforms.items()}
        self.buffers = [name for name, (_, is_buffer) in source.uniforms.items() if is_buffer]
        has_constants = "slope_init_kernel" in source.text
        names = [*symbols.values(), *["slope::slope_init_kernel"] * has_constants]
        code = compile_source(source.text, names, device.capability, FLOATS[floats])
        with device.current():
            if "SlopeTape" in source.text:
                device.ask_for_heap()
            module = device.load(code)
            self.function = device.function(module, source.kernel.encode())
            self.variables = {name: device.variable(module, code.names[symbol]) for name, symbol in symbols.items()}
            if has_constants:
                device.launch(device.function(module, code.names["slope::slope_init_kernel"]), 1, 1, None)

    def set_uniforms(self, uniforms: "Uniforms", expression: str) -> None:
        """Uniforms of the program: on the stream, before the kernel. What was never set has its first value."""
        for name, (address, size) in self.variables.items():
            if name in self.buffers:
                raise TypeError(f"{expression} uses the buffer '{name}', which only the CPU knows; give it as an argument")
            memory = uniforms.image(name)
            if memory is not None and memory.nbytes != size:
                raise TypeError(f"{expression}: the uniform '{name}' lies in another way on a GPU; give it as an argument")
            if memory is not None:
                self.device.driver.call("cuMemcpyHtoDAsync_v2", address, c_void_p(memory.ctypes.data), c_size_t(size),
                                        self.device.stream())

    def run(self, count: int) -> None:
        self.device.launch(self.function, (count + GROUP - 1) // GROUP, GROUP, self.frame.addresses)


def pack(kind: Type, target: np.ndarray, value: Any) -> None:
    """A struct that holds buffers, as the GPU sees it. None is zero."""
    if value is None:
        target[...] = np.zeros((), target.dtype)
    elif kind.kind == BUFFER:
        stride = int(native.slope_type_element_stride(kind.handle)) or 1
        target["data"], target["count"] = value.tensor.data_ptr(), value.nbytes // stride
    elif kind.kind == STRUCT:
        for name, inner in kind.fields:
            pack(inner, target[name], value[name])
    else:
        kind.store(target, value)


class DeviceRows:
    """The kernels of one function on GPUs: by device, by which leaves are zero, and by what is wanted of its results."""

    def __init__(self, function: "Function"):
        self.function = function
        refuse_buffers(function)
        self.split = split_leaves(function)
        self.kernels: Dict[Tuple[int, FrozenSet[str], Path], Kernel] = {}

    def kernel(self, device: Device, absent: FrozenSet[str], part: Path) -> Kernel:
        key = device.index, absent, part
        if key not in self.kernels:
            layout = Layout(self.function, absent, part)
            self.kernels[key] = Kernel(device, layout, self.source(layout), self.function._module._floats)
        return self.kernels[key]

    def source(self, layout: Layout) -> Source:
        """The kernel as CUDA source."""
        failure: Optional[SlopeError] = None
        for name in (matrix_name, array_name):
            try:
                return self._source(layout.text(name))
            except SlopeError as error:
                failure = failure or error
        raise SlopeError(f"{self.function.expression} cannot be called on a GPU\n{failure}")

    def _source(self, text: str) -> Source:
        module, blob, kernel = self.function._module, POINTER(SlopeBlob)(), c_void_p()
        program = module._extend(self.function._text + text)
        entry = (c_char_p * 1)(ROWS.encode())
        options = SlopeBuildOptions(b"cuda", entry, 1)
        module._session.check(native.slope_build(program, byref(options), byref(blob)))
        source = ctypes.string_at(blob.contents.data, blob.contents.size).decode()
        native.slope_blob_free(blob)
        module._session.check(native.slope_find_kernel(program, ROWS.encode(), byref(kernel)))
        return Source(source, text_of(native.slope_built_name(program, ROWS.encode())), used_uniforms(program, kernel))

    def run(self, values: Sequence[Any], part: Path) -> List[Any]:
        """What comes out: tensors; structs, which PyTorch does not know, as numpy has them."""
        inputs = self.function.inputs
        pairs = [param.type.convert(value, param.name) for param, value in zip(inputs, values)]
        for param, (value, _) in zip(inputs, pairs):
            self._refuse_inside(param.name, param.type, value)
        converted = by_parameter(self.function, [value for value, _ in pairs])
        lead = join(self.function.expression, *[own for _, own in pairs])
        count = math.prod(lead)
        if count > MOST_ROWS:
            raise ValueError(f"{self.function.expression}: {count} rows are too many for one call")
        device = self._device(converted)
        kernel = self.kernel(device, absent_leaves(self.split, converted), part)
        found = {leaf.name: new_memory(leaf, lead, device.place) for leaf in kernel.layout.outputs}
        if count:
            self._launch(kernel, converted, lead, count, found)
        return collect(self.function, part, found, lambda kind, memory: presented(kind, memory, lead))

    def _refuse_inside(self, name: str, kind: Type, value: Any) -> None:
        if kind.plain or kind.is_split:
            return
        arrays = list(device_arrays(value))
        if arrays and not kind.has_buffers:
            raise TypeError(f"'{name}': a {kind.name} cannot hold tensors of a GPU; write a function that takes them one by one")
        if kind.has_buffers and not arrays and value is not None:
            raise TypeError(f"'{name}' is memory of the CPU, and other arguments are on a GPU; give a tensor that is there too")

    def _device(self, values: Sequence[Any]) -> Device:
        indices = {array.tensor.device.index for value in values for array in device_arrays(value)}
        if len(indices) != 1:
            raise TypeError(f"{self.function.expression}: the tensors are on several GPUs: {sorted(indices)}")
        return Device.find(indices.pop())

    def _launch(self, kernel: Kernel, values: Sequence[Any], lead: Shape, count: int, found: Dict[str, torch.Tensor]) -> None:
        layout, frame, arguments, kept = kernel.layout, kernel.frame, [], []
        for view, (place, kind) in zip(frame.views, layout.whole):
            pack(kind, view, values[place])
        for leaf in layout.given:
            memory, step = device_rows(leaf, inside(values[leaf.place], leaf.path), lead, kernel.device.place)
            kept.append(memory)
            arguments += [(memory.data_ptr(), count if step else 1), (int(step),)]
        arguments += [(found[leaf.name].data_ptr(), count) for leaf in layout.outputs]
        frame.fill([*arguments, (count,)])
        with kernel.device.current():
            kernel.set_uniforms(self.function._module.uniforms, self.function.expression)
            kernel.run(count)


def device_rows(leaf: Leaf, value: Any, lead: Shape, where: torch.device) -> Tuple[torch.Tensor, bool]:
    """The rows of an argument on the GPU, and whether each call has one of its own."""
    if not isinstance(value, DeviceArray):
        array, step = Rows._input(leaf.type, value, lead)
        return torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy()).to(where), step
    own = leaf.type.lead(value)
    step = math.prod(own) != 1
    return value.rows(leaf.type, own, lead if step else ()), step


def new_memory(leaf: Leaf, lead: Shape, where: torch.device) -> torch.Tensor:
    if leaf.type.plain:
        return torch.empty(lead + leaf.type.shape, dtype=bits_dtype(leaf.type.scalar), device=where)  # type: ignore[arg-type]
    return torch.empty(new_rows(leaf.type, lead).nbytes, dtype=torch.uint8, device=where)


def presented(kind: Type, memory: torch.Tensor, lead: Shape) -> Any:
    if not kind.plain:
        return kind.present(memory.cpu().numpy().view(kind.dtype.base).reshape(lead + kind.dtype.shape))
    dtype = shown_dtype(kind.scalar)  # type: ignore[arg-type]
    return memory if memory.dtype == dtype else memory.view(dtype)
