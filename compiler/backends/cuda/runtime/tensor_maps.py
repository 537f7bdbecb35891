"""Tensor maps: what the copy engine of a GPU knows of a tensor, encoded by the driver.

CuPy has no binding of `cuTensorMapEncodeTiled`, so the driver is called directly. The numbers are
those of the enumerations in the CUDA driver API, section "Tensor Map Object Management".
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from compiler.backends.cuda.device_code import TensorArgument
from compiler.backends.error import BuildError
from compiler.executor.memory import address_of, aligned_empty
from compiler.ir.core.dtypes import DType, size_bytes

_MAP_BYTES = 128
_TYPES: dict[DType, int] = {"float16": 6, "bfloat16": 9}
_NO_INTERLEAVE = 0
_SWIZZLE_128_BYTES = 3
_PROMOTE_TO_256_BYTES = 3  # of the second-level cache: operands are read by several blocks
_ZEROS_OUTSIDE = 0
_HOST_DRIVER = "libcuda.so.1"


def encode_tensor_map(tensor: TensorArgument, address: int) -> NDArray[np.uint64]:
    """Return a tensor map, as an argument of a kernel that is passed by value.

    Args:
        tensor: The tensor and its box.
        address: The address of its first element on the GPU.

    Raises:
        BuildError: If the driver refuses it, or lacks the function.
    """
    # The driver requires an address that is a multiple of 64.
    encoded: NDArray[np.uint64] = aligned_empty((_MAP_BYTES // 8,), "uint64")
    rank = len(tensor.shape)
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(address_of(encoded)),
        ctypes.c_int(_TYPES[tensor.dtype]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        _array(ctypes.c_uint64, tensor.shape[::-1]),
        _array(ctypes.c_uint64, _strides(tensor)[-2::-1]),
        _array(ctypes.c_uint32, tensor.box[::-1]),
        _array(ctypes.c_uint32, (1,) * rank),
        ctypes.c_int(_NO_INTERLEAVE),
        ctypes.c_int(_SWIZZLE_128_BYTES),
        ctypes.c_int(_PROMOTE_TO_256_BYTES),
        ctypes.c_int(_ZEROS_OUTSIDE),
    )
    if status:
        raise BuildError(
            f"the driver refuses the tensor map of {tensor.dtype}{list(tensor.shape)} with a box "
            f"of {list(tensor.box)}: status {status}",
            "codegen",
        )
    return encoded


def _strides(tensor: TensorArgument) -> tuple[int, ...]:
    """Return the strides of a dense tensor in bytes, outermost first."""
    strides = [size_bytes(tensor.dtype)]
    for extent in reversed(tensor.shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


def _array(kind: type[ctypes.c_uint32 | ctypes.c_uint64], values: Sequence[int]) -> ctypes.Array:  # type: ignore[type-arg] # of either
    return (kind * len(values))(*values)


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_HOST_DRIVER)
    except OSError as error:
        raise BuildError(f"tensor maps need the driver of a GPU: {error}", "codegen") from error
