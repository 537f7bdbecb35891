"""The GPUs that this host emulates: a setting of the process, which its children inherit."""

from __future__ import annotations

import os
from collections.abc import Iterable

from compiler.target.cuda import CudaTarget

EMULATED_GPUS = "LOOPWRIGHT_EMULATED_GPUS"
"""The environment variable that names them, such as `h200,a100`."""


def emulated_targets() -> list[CudaTarget]:
    """Return the emulated GPUs as targets.

    Raises:
        TargetError: If a GPU is unknown.
    """
    return _targets(filter(None, os.environ.get(EMULATED_GPUS, "").split(",")))


def emulate_gpus(names: Iterable[str]) -> None:
    """Set the GPUs that this process and its future children emulate.

    Raises:
        TargetError: If a GPU is unknown; nothing changes then.
    """
    gpus = [target.label.removeprefix("cuda/") for target in _targets(names)]
    os.environ[EMULATED_GPUS] = ",".join(gpu.removesuffix("-emulated") for gpu in gpus)


def _targets(names: Iterable[str]) -> list[CudaTarget]:
    return [CudaTarget(f"cuda -gpu={name.strip()} -emulated") for name in names]
