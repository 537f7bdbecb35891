"""Tensors of PyTorch and arrays of NumPy, which share their memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

from compiler.graph.error import ModelError
from compiler.graph.read_torch.call import dtype_of

_STORED_AS = {
    torch.bfloat16: (torch.uint16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
}
"""Types that NumPy lacks: the integers of the same size, and the types of `ml_dtypes`."""


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor of the CPU as a contiguous array, without a copy if it is contiguous.

    Raises:
        ModelError: If its elements have no data type of graphs.
    """
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    dtype_of(name_of(plain.dtype))
    if plain.dtype not in _STORED_AS:
        array: NDArray[Any] = plain.numpy()
        return array
    stored_as, dtype = _STORED_AS[plain.dtype]
    stored: NDArray[Any] = plain.view(stored_as).numpy()
    return stored.view(dtype)


def tensor_of(array: NDArray[Any]) -> torch.Tensor:
    """Return an array as a tensor in the same memory."""
    for dtype, (stored_as, numpy_dtype) in _STORED_AS.items():
        if array.dtype == numpy_dtype:
            plain = np.uint16 if stored_as == torch.uint16 else np.uint8
            return torch.from_numpy(array.view(plain)).view(dtype)
    return torch.from_numpy(array)


def name_of(value: Any) -> str:
    """Return the name of a data type, a layout or the like."""
    return str(value).removeprefix("torch.")


def require_cpu(name: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor that is not a plain one of the CPU.

    Raises:
        ModelError: Naming the tensor and where it is.
    """
    if tensor.device.type != "cpu":
        raise ModelError(
            f"{name} is on {tensor.device}: expected a tensor of the CPU", advice="module.cpu()"
        )
    if tensor.layout != torch.strided:
        raise ModelError(f"{name} is {tensor.layout}: expected a dense tensor")
