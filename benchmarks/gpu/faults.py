"""A process that runs a kernel with a planted fault: `python -m benchmarks.gpu.faults NAME TARGET`.

It exits with `FOUND` if the fault is reported as one after which the process can't use the device.
An endless loop never ends: its parent kills it.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.gpu.device_kernels import HANG, ILLEGAL, kernel
from compiler.backends.error import KernelFaultError
from compiler.target.cuda import CudaTarget

FOUND, MISSED = 3, 4
TEXTS = {"illegal": ILLEGAL, "hang": HANG}


def main(name: str, target: str) -> int:
    """Run the kernel; return the exit code."""
    module = kernel(name, TEXTS[name], CudaTarget(target), (32, 32), (1, 32))
    try:
        module(np.zeros(32, np.float32), np.empty(32, np.float32))
    except KernelFaultError as error:
        print(error)
        return FOUND
    return MISSED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
