"""Checks of the arrays that are passed to a kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.runtime import dlpack
from compiler.runtime.artifact import Param

Array = NDArray[Any]


class ArgumentError(TypeError):
    """Arrays that do not fit the kernel's parameters."""


class ParamCheck:
    """Checks the arrays that are passed for a parameter."""

    def __init__(self, param: Param) -> None:
        self.param = param
        self.shape = param.shape
        self.dtype = np.dtype(param.dtype)
        self.size_bytes = math.prod(param.shape) * self.dtype.itemsize

    def array(self, array: Any) -> Array:
        """Return an array as a NumPy array that the kernel may access.

        Raises:
            ArgumentError: If its shape, dtype, layout or library does not fit.
        """
        if (
            type(array) is np.ndarray
            and array.shape == self.shape
            and array.dtype is self.dtype
            and array.flags.carray
        ):
            return array  # the fast path
        param = self.param
        if not isinstance(array, np.ndarray):
            if not hasattr(array, "__dlpack__"):
                raise ArgumentError(
                    f"parameter {param.name} is a {type(array).__name__}: expected an array"
                )
            array = self._exported(array)
        assert isinstance(array, np.ndarray)
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError(
                f"parameter {param.name} is a MaskedArray, whose mask a kernel does not see: pass "
                "its .filled(...)"
            )
        if array.shape != param.shape or array.dtype != self.dtype:
            raise ArgumentError(
                f"parameter {param.name} is {array.dtype}{list(array.shape)}:"
                f" expected {param.dtype}{list(param.shape)}"
            )
        flags = array.flags
        if not flags.c_contiguous:
            raise self._strided("np.ascontiguousarray({})")
        if not flags.aligned:
            raise ArgumentError(
                f"parameter {param.name} begins between elements of {param.dtype}: pass a copy"
            )
        if param.is_output and not flags.writeable:
            raise ArgumentError(f"parameter {param.name} is written, and the array is read-only")
        return array

    def _exported(self, array: Any) -> Array:
        """Return a NumPy array that shares the memory of another library's array."""
        try:
            try:
                shared = np.from_dlpack(array)
            except RuntimeError:  # a type or a device that NumPy does not have
                shared = dlpack.read(array)
            # NumPy marks arrays of older producers as read-only.
            if self.param.is_output and not shared.flags.writeable:
                shared = dlpack.read(array)
        except dlpack.StridedError:
            raise self._strided(_copy_of(array)) from None
        except (BufferError, dlpack.DlpackError) as error:
            raise ArgumentError(
                f"parameter {self.param.name} is a {type(array).__name__} that cannot be used: "
                f"{error}"
            ) from error
        if not shared.flags.c_contiguous:
            raise self._strided(_copy_of(array))
        return shared

    def _strided(self, copy: str) -> ArgumentError:
        """Return the error for a strided view; `copy` is the expression that makes a dense copy."""
        name = self.param.name
        advice = f"pass {copy.format(name)}"
        if self.param.is_output:
            advice = "it is written, so pass a dense array and copy the result into the view"
        return ArgumentError(f"parameter {name} is not contiguous: {advice}")


def check_overlaps(
    checks: Sequence[ParamCheck], addresses: Sequence[int], outputs: Iterable[int]
) -> None:
    """Refuse arrays of which an output shares memory with another one.

    Args:
        checks: One for each parameter.
        addresses: The address of each array, in one memory.
        outputs: The positions of the parameters that the kernel writes.

    Raises:
        ArgumentError: If two overlap.
    """
    for written in outputs:
        low = addresses[written]
        high = low + checks[written].size_bytes
        for other, (check, address) in enumerate(zip(checks, addresses, strict=True)):
            if address < high and low < address + check.size_bytes and other != written:
                raise ArgumentError(
                    f"parameter {checks[written].param.name} is written,"
                    f" and overlaps parameter {check.param.name}"
                )


def _copy_of(array: Any) -> str:
    return "{}.contiguous()" if hasattr(array, "contiguous") else "a dense copy of {}"
