"""Read the arrays of other libraries by the DLPack protocol, in cases that NumPy does not support.

NumPy has no bfloat16 and no floats of 8 bits. It marks arrays of producers of the protocol before
version 1.0 as read-only, although those versions export writable arrays only. Nothing is copied.
The capsule is not consumed: it lives as long as the array, and then frees its memory itself.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import numpy_dtype

_CPU = (1, 3)  # kDLCPU and kDLCUDAHost, pinned memory of the host
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_OTHER_FLOATS = {(4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}
_READ_ONLY = 1


class DlpackError(TypeError):
    """An array that cannot be read."""


class StridedError(DlpackError):
    """An array that is not contiguous."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


@dataclass(frozen=True, slots=True)
class ExportedArray:
    """The memory of another library's array, on any device.

    Attributes:
        address: The address of the first element, in the memory of the device.
        device: The type of the device in DLPack's numbers, and its index.
        is_writable: Whether a consumer may write to it.
        is_dense: Whether its elements lie side by side in row-major order.
        capsule: Keeps the memory alive.
    """

    address: int
    device: tuple[int, int]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_writable: bool
    is_dense: bool
    capsule: Any


def export(producer: Any, stream: int | None = None) -> ExportedArray:
    """Return the memory of another library's array.

    Args:
        producer: An object with the methods of the protocol.
        stream: For an array on a GPU, the CUDA stream on which it will be used: the producer makes
            that stream wait for its own work.

    Raises:
        DlpackError: If NumPy has no such element type.
        BufferError: If the producer does not export it.
    """
    device, index = producer.__dlpack_device__()
    options = {} if stream is None else {"stream": stream}
    try:
        capsule = producer.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer of before 1.0
        capsule = producer.__dlpack__(**options)
    tensor, flags = _opened(capsule)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return ExportedArray(
        address=(tensor.data or 0) + tensor.byte_offset,
        device=(int(device), int(index)),
        shape=shape,
        dtype=_dtype(tensor),
        is_writable=not flags & _READ_ONLY,
        is_dense=_is_dense(tensor, shape),
        capsule=capsule,
    )


def read(producer: Any) -> NDArray[Any]:
    """Return a NumPy array that shares the memory of another library's array.

    Raises:
        DlpackError: If it is not on the CPU, or NumPy has no such element type or strides.
        BufferError: If the producer does not export it.
    """
    device, index = producer.__dlpack_device__()
    if device not in _CPU:
        raise DlpackError(f"it is on device ({int(device)}, {index}): copy it to the CPU")
    exported = export(producer)
    if math.prod(exported.shape) == 0:
        return np.empty(exported.shape, exported.dtype)
    if not exported.is_dense:
        raise StridedError("it is not contiguous")
    size = math.prod(exported.shape) * exported.dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(exported.address)
    memory.capsule = exported.capsule  # keeps the memory alive as long as the array
    array: NDArray[Any] = np.frombuffer(memory, exported.dtype).reshape(exported.shape)
    array.flags.writeable = exported.is_writable
    return array


def _opened(capsule: Any) -> tuple[_Tensor, int]:
    """Return the tensor of a capsule, and its flags."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise DlpackError(
                f"it speaks version {versioned.major}.{versioned.minor} of DLPack: expected 1"
            )
        return versioned.tensor, versioned.flags
    if not _is_valid(capsule, b"dltensor"):
        raise DlpackError("it exports no DLPack capsule")
    return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0


def _dtype(tensor: _Tensor) -> np.dtype[Any]:
    other_float = _OTHER_FLOATS.get((tensor.code, tensor.bits))
    if tensor.lanes == 1 and other_float is not None:
        return numpy_dtype(other_float)
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise DlpackError(
            f"a kernel can't have its elements: code {tensor.code}, {tensor.bits} bits, "
            f"{tensor.lanes} lanes"
        )
    return np.dtype(kind if kind == "bool" else f"{kind}{tensor.bits}")


def _is_dense(tensor: _Tensor, shape: tuple[int, ...]) -> bool:
    if not tensor.strides:
        return True
    step = 1
    for axis in reversed(range(tensor.ndim)):
        if shape[axis] != 1 and tensor.strides[axis] != step:
            return False
        step *= shape[axis]
    return True
