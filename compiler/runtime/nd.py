"""Arrays and devices with TVM's names; kernels take plain NumPy arrays, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401 - it lets NumPy know bfloat16
import numpy as np
from numpy.typing import ArrayLike

from compiler.executor.memory import aligned_empty
from compiler.executor.named_type import named_type


@dataclass(frozen=True, slots=True)
class Device:
    """A device that holds arrays and runs kernels: the CPU."""

    device_type: str
    index: int

    def __repr__(self) -> str:
        return f"{self.device_type}({self.index})"

    def array(self, values: ArrayLike) -> Any:
        """Return a copy of values in the memory of the device."""
        plain = np.asarray(values)
        new = self.empty(plain.shape, plain.dtype.name)
        new[...] = plain
        return new

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """Return an array in the memory of the device."""
        return aligned_empty(tuple(shape), dtype).view(NDArray)


def cpu(index: int = 0) -> Device:
    """Return the CPU as a device.

    Raises:
        ValueError: If `index` is not 0.
    """
    if index != 0:
        raise ValueError(f"there is no cpu({index}): the only CPU is cpu(0)")
    return Device("cpu", index)


class NDArray(np.ndarray[Any, Any]):
    """A NumPy array that also answers `numpy()`."""

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy as a plain NumPy array."""
        return np.array(self, subok=False)

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return a copy as a plain NumPy array; an older name of `numpy`."""
        return self.numpy()


def array(values: ArrayLike, device: Device | None = None) -> Any:
    """Return a copy of values as an array for kernels.

    Args:
        values: The values.
        device: The device that holds it, by default the CPU of this host. An array of a remote
            device is a `RemoteArray`, any other one an `NDArray`.

    Raises:
        TypeError: If `device` is not a device.
    """
    return _device(device).array(values)


def empty(shape: Sequence[int], dtype: str = "float32", device: Device | None = None) -> Any:
    """Return an array whose elements are not set; see `array`.

    Raises:
        TypeError: If `device` is not a device.
    """
    return _device(device).empty(shape, dtype)


def _device(device: Device | None) -> Device:
    if not (device is None or isinstance(device, Device)):
        raise TypeError(f"expected a device such as cpu(), got {named_type(device)}")
    return device or cpu()
