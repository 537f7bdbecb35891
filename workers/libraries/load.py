"""The supported libraries, each loaded on first use, because a worker may have none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeAlias, cast

from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from workers.libraries.library import Library, LibraryError

_GPU_LIBRARIES = ("cublas", "torch-cuda")
_MODULES = {
    "numpy": "workers.libraries.numpy",
    "torch": "workers.libraries.torch",
    "cublas": "workers.libraries.cublas",
    "torch-cuda": "workers.libraries.torch_cuda",
}
LIBRARIES = tuple(_MODULES)
"""The names of the libraries, first those that are always installed."""

CHOICE = "LOOPWRIGHT_BASELINES"
"""The environment variable that names the libraries to compare kernels with."""

Load: TypeAlias = Callable[[str], Library]
"""Loads a library by its name."""


def chosen_libraries() -> tuple[str, ...]:
    """Return the libraries to compare kernels with: all, or those of `$LOOPWRIGHT_BASELINES`.

    Raises:
        LibraryError: If that names an unknown library.
    """
    text = os.environ.get(CHOICE)
    if text is None:
        return LIBRARIES
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if names == ("none",):
        return ()
    for name in names:
        if name not in LIBRARIES:
            raise LibraryError(
                f"${CHOICE} is {text!r}: expected none, or some of {', '.join(LIBRARIES)}"
            )
    return names or LIBRARIES


def libraries_for(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of some libraries that compute on the device of a target.

    There are none beside an emulated GPU, whose times are estimates.
    """
    is_gpu = target.kind == "cuda"
    if is_gpu and CudaTarget.of(target).is_emulated:
        return ()
    return tuple(name for name in names if (name in _GPU_LIBRARIES) == is_gpu)


def load_library(name: str) -> Library:
    """Load a library.

    Raises:
        LibraryError: If it is unknown, or not installed here.
    """
    if name not in _MODULES:
        raise LibraryError(f"unknown library {name!r}: known are {', '.join(LIBRARIES)}")
    try:
        module = import_module(_MODULES[name])
    except ImportError as error:
        raise LibraryError(f"{name} is not installed on this worker: {error}") from None
    return cast(Library, module)
