"""The current GPU of a thread, and the errors after which a process can't use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import cupy
from cupy_backends.cuda.api import driver

from compiler.backends.error import DeviceFaultError

# After these no call of the process succeeds on the device: "the process must be terminated and
# relaunched", as the reference of the CUDA runtime says of each.
_STICKY = {
    700: "illegal address",
    702: "launch timeout",
    710: "assertion",
    714: "hardware stack error",
    715: "illegal instruction",
    716: "misaligned address",
    717: "invalid address space",
    718: "invalid program counter",
    719: "launch failure",
}


@contextmanager
def active_gpu(device: int) -> Iterator[None]:
    """Make a GPU the current one; translate the errors after which it can't be used.

    Args:
        device: The number of the GPU for CUDA in this process.

    Raises:
        DeviceFaultError: If a kernel made the device unusable for this process.
    """
    try:
        with cupy.cuda.Device(device):
            yield
    except (cupy.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
        if error.status in _STICKY:
            raise DeviceFaultError(f"{_STICKY[error.status]}: {error}") from error
        raise
