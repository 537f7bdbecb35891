"""Checks of the numbers that are passed to a kernel by value."""

from __future__ import annotations

import operator
import struct
from typing import Any

import numpy as np

from .dtypes import numpy_dtype
from .error import ArgumentError, ShapeError
from .named_type import named_type
from .params import Param

_FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
_WORD = (1 << 64) - 1


class NumberCheck:
    """Checks the numbers that are passed for a parameter.

    Raises:
        ValueError: If no number of its type is passed by value.
    """

    def __init__(self, param: Param) -> None:
        self.name = param.name
        self._dtype = param.dtype
        self._float = _FLOATS.get(param.dtype)
        kind = numpy_dtype(param.dtype)
        if self._float is None and kind.kind not in "iu":
            raise ValueError(f"parameter {param.name} is a number of type {param.dtype}")
        self.is_integer = self._float is None
        self._least, self._most = 0, 0
        if self.is_integer:
            of_type = np.iinfo(kind)
            self._least, self._most = param.limits or (int(of_type.min), int(of_type.max))

    def integer(self, value: Any) -> int:
        """Return an integer.

        Raises:
            ArgumentError: If it is none.
            ShapeError: If it is out of the range of the parameter.
        """
        try:
            number = operator.index(value)
        except TypeError:
            raise ArgumentError(
                f"parameter {self.name} is {named_type(value)}: expected an integer"
            ) from None
        if not self._least <= number <= self._most:
            raise ShapeError(
                f"parameter {self.name} is {number}: expected {self._least} to {self._most}"
            )
        return number

    def word(self, value: Any) -> int:
        """Return a number as the 64 bits that a kernel takes.

        Raises:
            ArgumentError: If it does not fit the parameter.
        """
        if self._float is None:
            return self.integer(value) & _WORD
        try:
            content = struct.pack(f"<{self._float}", float(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"parameter {self.name} is {value!r}: expected a number") from error
        return int.from_bytes(content, "little")
