"""Checks of the arrays that are passed to a kernel or a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .dtypes import numpy_dtype
from .error import ArgumentError
from .named_type import named_type
from .params import Param

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


class ArrayCheck:
    """Checks the arrays that are passed for a parameter; it accepts those that support DLPack.

    Symbolic extents are checked for all parameters of a call together (`CallSizes`).
    """

    def __init__(self, param: Param) -> None:
        self.param = param
        self.name = param.name
        self.is_output = param.is_output
        self.extents = param.extents
        self.shape = param.shape if param.is_sized else ()
        self.dtype = numpy_dtype(param.dtype)
        self.is_sized = param.is_sized
        self.rank = len(param.extents)
        self.size_bytes = param.size_bytes if param.is_sized else 0

    def array(self, array: Any) -> Array:
        """Return an array as a NumPy array that the kernel may access.

        Raises:
            ArgumentError: If its shape, dtype, layout or library does not fit.
        """
        if (
            type(array) is np.ndarray
            and (array.shape == self.shape or (not self.is_sized and array.ndim == self.rank))
            and array.dtype is self.dtype
            and array.flags.carray
        ):
            return array  # the fast path
        return self._fitting(self.as_numpy(array))

    def _fitting(self, array: Array) -> Array:
        """Return the array, unless its shape, dtype or layout does not fit."""
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError(
                f"parameter {self.name} is a MaskedArray, whose mask a kernel does not see: pass "
                "its .filled(...)"
            )
        if not (self._has_rank(array) and self._has_elements(array.dtype)):
            raise ArgumentError(
                f"parameter {self.name} is {array.dtype}{list(array.shape)}:"
                f" expected {self.dtype}[{', '.join(map(str, self.extents))}]"
            )
        flags = array.flags
        if not flags.c_contiguous:
            raise self.strided("np.ascontiguousarray({})")
        if not flags.aligned:
            raise ArgumentError(
                f"parameter {self.name} begins between elements of {self.dtype}: pass a copy"
            )
        if self.is_output and not flags.writeable:
            raise ArgumentError(f"parameter {self.name} is written, and the array is read-only")
        return array

    def _has_rank(self, array: Array) -> bool:
        """Return whether an array has the shape, or the number of dimensions of a symbolic one."""
        return array.shape == self.shape if self.is_sized else array.ndim == self.rank

    def _has_elements(self, dtype: np.dtype[Any]) -> bool:
        # NumPy learns `bfloat16` when `ml_dtypes` is imported, which may be after the kernel is
        # loaded.
        return dtype in (self.dtype, numpy_dtype(self.param.dtype))

    def as_numpy(self, array: Any) -> Array:
        """Return a NumPy array that shares the memory of an array.

        Raises:
            ArgumentError: If it is no array, or in a memory or of a type that NumPy lacks.
        """
        if isinstance(array, np.ndarray):
            return array
        kind = named_type(array)
        if not hasattr(array, "__dlpack__"):
            raise ArgumentError(f"parameter {self.name} is {kind}: expected an array")
        # Imported on use: most callers pass NumPy's arrays.
        from . import dlpack  # noqa: PLC0415

        try:
            shared = self._shared(array, dlpack.read)
        except dlpack.StridedError:
            raise self.strided(_copy_of(array)) from None
        except (BufferError, dlpack.DlpackError) as error:
            raise ArgumentError(
                f"parameter {self.name} is {kind} that cannot be used: {error}"
            ) from error
        if not shared.flags.c_contiguous:
            raise self.strided(_copy_of(array))
        return shared

    def _shared(self, array: Any, read: Callable[[Any], Array]) -> Array:
        try:
            shared = np.from_dlpack(array)
        except RuntimeError:  # a type or a device that NumPy does not have
            return read(array)
        # NumPy marks arrays of older producers as read-only.
        return read(array) if self.is_output and not shared.flags.writeable else shared

    def strided(self, copy: str) -> ArgumentError:
        """Return the error for a strided view; `copy` is the expression that makes a dense copy."""
        advice = f"pass {copy.format(self.name)}"
        if self.is_output:
            advice = "it is written, so pass a dense array and copy the result into the view"
        return ArgumentError(f"parameter {self.name} is not contiguous: {advice}")


def _copy_of(array: Any) -> str:
    return "{}.contiguous()" if hasattr(array, "contiguous") else "a dense copy of {}"


def check_overlaps(
    checks: Sequence[ArrayCheck],
    addresses: Sequence[int],
    outputs: Iterable[int],
    arrays: Sequence[Array] | None = None,
) -> None:
    """Refuse arrays of which an output shares memory with another one.

    Args:
        checks: One for each parameter.
        addresses: The address of each array, in one memory.
        outputs: The positions of the parameters that are written.
        arrays: The arrays, if their sizes do not follow from the parameters.

    Raises:
        ArgumentError: If two overlap.
    """
    sizes = [a.nbytes for a in arrays] if arrays is not None else [c.size_bytes for c in checks]
    for written in outputs:
        low = addresses[written]
        high = low + sizes[written]
        for other, (size, address) in enumerate(zip(sizes, addresses, strict=True)):
            if address < high and low < address + size and other != written:
                raise ArgumentError(
                    f"parameter {checks[written].name} is written, and overlaps parameter"
                    f" {checks[other].name}"
                )
