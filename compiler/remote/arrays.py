"""Arrays in the memory of a device."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.executor.dtypes import numpy_dtype
from compiler.executor.error import ArgumentError
from compiler.remote.error import RemoteRefusedError
from compiler.remote.session import Session

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class RemoteArray:
    """An array in the memory of a device, dense and in C order; it holds zeros at first.

    `numpy()` copies it to this host, `copyfrom` copies values into it. Its memory is given back
    when no reference to it is left, or with its session.

    Raises:
        ArgumentError: If shape or type are none of an array.
        RemoteError: If the device has no memory left, or vanished.
    """

    def __init__(self, session: Session, shape: Sequence[int], dtype: str) -> None:
        self.session = session
        self.shape = _extents(shape)
        self.dtype = numpy_dtype(dtype)
        if self.dtype.hasobject:
            raise ArgumentError(f"an array of {dtype} holds objects of Python: no device has them")
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        if self.nbytes > session.facts.memory_bytes:
            raise RemoteRefusedError(
                f"no memory is left under the limit: the array has {self.nbytes} bytes, and a"
                f" session of the device {session.facts.memory_bytes}"
            )
        self.region = session.reserve(self.nbytes)

    def __repr__(self) -> str:
        return f"<RemoteArray {self.dtype}{list(self.shape)}>"

    def __del__(self) -> None:
        if hasattr(self, "region"):
            self.session.abandon(self.region)

    def numpy(self) -> NDArray[Any]:
        """Return a copy on this host.

        Raises:
            RemoteError: If the device vanished.
        """
        content = self.session.read(self.region, self.nbytes)
        array = np.empty(self.shape, self.dtype)
        array.reshape(-1).view(np.uint8).data[:] = content
        return array

    def asnumpy(self) -> NDArray[Any]:
        """Return a copy on this host; an older name of `numpy`."""
        return self.numpy()

    def copyfrom(self, values: ArrayLike) -> RemoteArray:
        """Copy values of this shape into it.

        Raises:
            ArgumentError: If they have another shape or type.
            RemoteError: If the device vanished.
        """
        array = np.ascontiguousarray(values)
        if np.shape(values) != self.shape or array.dtype != self.dtype:
            raise ArgumentError(
                f"a remote array of {self.dtype}{list(self.shape)} takes no"
                f" {array.dtype}{list(np.shape(values))}"
            )
        self.session.write(self.region, array.reshape(-1).view(np.uint8).data)
        return self


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError as error:
        raise ArgumentError(f"the shape {shape!r} has extents that are no integers") from error
    if min(extents, default=0) < 0:
        raise ArgumentError(f"the shape {shape!r} has a negative extent")
    return extents
