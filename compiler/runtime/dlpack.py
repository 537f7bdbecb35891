"""Read the arrays of other libraries by the DLPack protocol, where NumPy does not.

NumPy has no bfloat16, and takes what a producer of the protocol's versions before 1.0 exports for
read-only, though those versions export only what may be written. Nothing is copied, and nothing is
consumed: the producer's capsule lives as long as the array, and frees its memory itself.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

_CPU = (1, 3)  # kDLCPU, and memory of the CPU that a GPU has pinned
_KINDS = {0: "int", 1: "uint", 2: "float", 6: "bool"}
_BFLOAT = 4
_READ_ONLY = 1


class DlpackError(TypeError):
    """An array that cannot be read, and why."""


class StridedError(DlpackError):
    """An array whose elements do not lie one behind the other."""


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


def read(producer: Any) -> NDArray[Any]:
    """Return an array on the memory of another library's.

    Raises:
        DlpackError: If it is not on the CPU, or its elements or strides are none of an array's.
        BufferError: If the producer does not export it.
    """
    device, index = producer.__dlpack_device__()
    if device not in _CPU:
        raise DlpackError(f"it is on device ({int(device)}, {index}): copy it to the CPU")
    try:
        capsule = producer.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer of before 1.0
        capsule = producer.__dlpack__()
    tensor, flags = _opened(capsule)
    dtype = _dtype(tensor)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    if not _is_dense(tensor, shape):
        raise StridedError("it is not contiguous")
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address((tensor.data or 0) + tensor.byte_offset)
    memory.capsule = capsule  # lives as long as the array
    array = np.frombuffer(memory, dtype).reshape(shape)
    array.flags.writeable = not flags & _READ_ONLY
    return array


def _opened(capsule: Any) -> tuple[_Tensor, int]:
    """Return what a capsule holds, and its flags."""
    if _is_valid(capsule, b"dltensor_versioned"):
        held = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if held.major != 1:
            raise DlpackError(f"it speaks version {held.major}.{held.minor} of DLPack: expected 1")
        return held.tensor, held.flags
    if not _is_valid(capsule, b"dltensor"):
        raise DlpackError("it exports no DLPack capsule")
    return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0


def _dtype(tensor: _Tensor) -> np.dtype[Any]:
    if tensor.lanes == 1 and (tensor.code, tensor.bits) == (_BFLOAT, 16):
        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise DlpackError(
            f"its elements are none of a kernel's: code {tensor.code}, {tensor.bits} bits, "
            f"{tensor.lanes} lanes"
        )
    return np.dtype(kind if kind == "bool" else f"{kind}{tensor.bits}")


def _is_dense(tensor: _Tensor, shape: tuple[int, ...]) -> bool:
    if not tensor.strides:
        return True
    step = 1
    for place in reversed(range(tensor.ndim)):
        if shape[place] != 1 and tensor.strides[place] != step:
            return False
        step *= shape[place]
    return True
