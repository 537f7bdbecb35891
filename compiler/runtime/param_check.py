"""Checks of the arrays of any library that are passed to a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.executor.arrays import ArrayCheck, check_overlaps
from compiler.executor.error import ArgumentError
from compiler.runtime import dlpack
from compiler.runtime.artifact import Param

__all__ = ["ArgumentError", "ParamCheck", "check_overlaps"]

Array = NDArray[Any]


class ParamCheck(ArrayCheck):
    """Checks the arrays that are passed for a parameter; it accepts those that support DLPack."""

    def __init__(self, param: Param) -> None:
        super().__init__(param)
        self.param = param

    def as_numpy(self, array: Any) -> Array:
        """Return a NumPy array that shares the memory of an array.

        Raises:
            ArgumentError: If it is no array, or in a memory or of a type that NumPy lacks.
        """
        if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
            return super().as_numpy(array)
        try:
            try:
                shared = np.from_dlpack(array)
            except RuntimeError:  # a type or a device that NumPy does not have
                shared = dlpack.read(array)
            # NumPy marks arrays of older producers as read-only.
            if self.is_output and not shared.flags.writeable:
                shared = dlpack.read(array)
        except dlpack.StridedError:
            raise self.strided(_copy_of(array)) from None
        except (BufferError, dlpack.DlpackError) as error:
            raise ArgumentError(
                f"parameter {self.name} is a {type(array).__name__} that cannot be used: {error}"
            ) from error
        if not shared.flags.c_contiguous:
            raise self.strided(_copy_of(array))
        return shared


def _copy_of(array: Any) -> str:
    return "{}.contiguous()" if hasattr(array, "contiguous") else "a dense copy of {}"
