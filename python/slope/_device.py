"""Tensors of PyTorch on a GPU, as much like arrays of numpy as the checks of types need; numbers of Slang as PyTorch names them.

Imported when the first such tensor is met.
"""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Iterator

import numpy as np
import torch

from ._types import Shape, Type

# Unsigned numbers are computed with by nobody here: without a type of their own they are the signed ones of their size.
TORCH: Dict[str, torch.dtype] = {"?": torch.bool, "i1": torch.int8, "u1": torch.uint8, "i2": torch.int16, "i4": torch.int32,
                                 "i8": torch.int64, "f2": torch.float16, "f4": torch.float32, "f8": torch.float64}
SIGNED = {"u2": torch.int16, "u4": torch.int32, "u8": torch.int64}
UNSIGNED = {code: getattr(torch, name) for code, name in (("u2", "uint16"), ("u4", "uint32"), ("u8", "uint64")) if hasattr(torch, name)}
NUMPY = {dtype: np.dtype(code) for code, dtype in (*TORCH.items(), *UNSIGNED.items())}


def code_of(scalar: np.dtype) -> str:
    return "?" if scalar.kind == "b" else f"{scalar.kind}{scalar.itemsize}"


def bits_dtype(scalar: np.dtype) -> torch.dtype:
    """What memory of such numbers is allocated as."""
    code = code_of(scalar)
    return TORCH.get(code) or SIGNED[code]


def shown_dtype(scalar: np.dtype) -> torch.dtype:
    """What users see: the unsigned type, where PyTorch has it."""
    return UNSIGNED.get(code_of(scalar)) or bits_dtype(scalar)


class DeviceArray:
    """A tensor on a GPU."""

    is_cuda = True

    def __init__(self, tensor: torch.Tensor):
        if tensor.dtype not in NUMPY:
            raise ValueError(f"Slang has no numbers of type {tensor.dtype}")
        if tensor.layout != torch.strided:
            raise ValueError("the tensor is sparse; give it as .to_dense()")
        self.tensor = tensor.detach()
        self.dtype, self.shape, self.ndim = NUMPY[tensor.dtype], tuple(tensor.shape), tensor.dim()
        self.size, self.nbytes = tensor.numel(), tensor.numel() * tensor.element_size()
        self.flags = SimpleNamespace(c_contiguous=tensor.is_contiguous(), aligned=True, writeable=True)

    @property
    def ctypes(self) -> Any:
        raise TypeError(f"a tensor is on {self.tensor.device}, and this runs on the CPU; give it as .cpu()")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.ctypes

    def min(self) -> int:
        return int(self.tensor.min())

    def max(self) -> int:
        return int(self.tensor.max())

    def zeros(self, scalar: np.dtype) -> torch.Tensor:
        return torch.zeros(self.shape, dtype=bits_dtype(scalar), device=self.tensor.device)

    def rows(self, kind: Type, own: Shape, lead: Shape) -> torch.Tensor:
        """Its rows in memory, with these leading dimensions: its own memory where that is already right."""
        bits = bits_dtype(kind.scalar)  # type: ignore[arg-type]
        same = self.tensor.dtype == shown_dtype(kind.scalar)  # type: ignore[arg-type]
        tensor = self.tensor.view(bits) if same and self.tensor.dtype != bits else self.tensor.to(bits)
        if own != lead and not lead:
            return tensor.reshape(kind.shape).contiguous()
        return tensor.expand(lead + kind.shape).contiguous()


def device_arrays(value: Any) -> Iterator[DeviceArray]:
    """Those in what `Type.convert` has made."""
    if isinstance(value, DeviceArray):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from device_arrays(part)
