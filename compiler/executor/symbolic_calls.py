"""Calls of a kernel of symbolic extents: its arguments are arrays and numbers of a checked size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .arrays import ArrayCheck
from .artifact import Artifact
from .call_sizes import CallSize
from .memory import address_of
from .numbers import NumberCheck

Array = NDArray[Any]
# Chosen: a service that pads its batches calls a kernel with fewer different sizes.
_MAX_SIZES = 1024


@dataclass(frozen=True, slots=True)
class SymbolicCall:
    """The checked arguments of a call.

    Attributes:
        arrays: Its arrays, with their `addresses`.
        words: What the kernel takes for each argument: an address or a number.
        size: The values of the symbolic extents, and the size of the workspace.
    """

    arrays: list[Array]
    addresses: list[int]
    words: list[int]
    size: CallSize


class SymbolicCalls:
    """Checks the arguments of calls; sizes that were seen before are not computed again.

    Args:
        artifact: The kernel.
        checks: The checks of its arrays, in their order.
    """

    def __init__(self, artifact: Artifact, checks: Sequence[ArrayCheck]) -> None:
        arrays = iter(checks)
        self._checks = [
            NumberCheck(param) if param.is_scalar else next(arrays) for param in artifact.arguments
        ]
        self._sizes = artifact.call_sizes()
        self._known: dict[object, CallSize] = {}

    def call(self, arguments: Sequence[Any]) -> SymbolicCall:
        """Return the checked arguments of a call.

        Raises:
            ArgumentError: If an argument does not fit its parameter. It is a `ShapeError` if its
                size does not.
        """
        arrays: list[Array] = []
        addresses: list[int] = []
        words: list[int] = []
        shapes: list[tuple[int, ...]] = []
        numbers: dict[str, int] = {}
        for check, argument in zip(self._checks, arguments, strict=True):
            if isinstance(check, NumberCheck):
                words.append(check.word(argument))
                shapes.append(())
                if check.is_integer:
                    numbers[check.name] = check.integer(argument)
                continue
            array = check.array(argument)
            address = address_of(array)
            arrays.append(array)
            addresses.append(address)
            words.append(address)
            shapes.append(array.shape)
        key = (*shapes, *numbers.values())
        size = self._known.get(key)
        if size is None:
            size = self._sizes.of(shapes, numbers)
            if len(self._known) >= _MAX_SIZES:
                self._known.clear()
            self._known[key] = size
        return SymbolicCall(arrays, addresses, words, size)
