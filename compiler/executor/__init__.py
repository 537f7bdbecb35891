"""Run packaged models and kernels: NumPy and ctypes only, without a compiler.

The wheel `loopwright-runtime` is this folder under the name `loopwright_runtime`, so its imports
are relative. Names are looked up when first used (PEP 562): a process that loads a kernel imports
nothing for models.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .artifact import Artifact
    from .error import (
        ArgumentError,
        ArtifactError,
        LibraryCallError,
        PackageError,
        ShapeError,
        UnknownFunctionError,
    )
    from .executor import Executor
    from .functions.registry import register_func
    from .kernel import LoadedKernel, load_kernel
    from .kernel_file import load_kernels
    from .loading import load
    from .package import Package, read_package

__all__ = [
    "ArgumentError",
    "Artifact",
    "ArtifactError",
    "Executor",
    "LibraryCallError",
    "LoadedKernel",
    "Package",
    "PackageError",
    "ShapeError",
    "UnknownFunctionError",
    "load",
    "load_kernel",
    "load_kernels",
    "read_package",
    "register_func",
]

_HOMES = {
    "ArgumentError": "error",
    "Artifact": "artifact",
    "ArtifactError": "error",
    "Executor": "executor",
    "LibraryCallError": "error",
    "LoadedKernel": "kernel",
    "Package": "package",
    "PackageError": "error",
    "ShapeError": "error",
    "UnknownFunctionError": "error",
    "load": "loading",
    "load_kernel": "kernel",
    "load_kernels": "kernel_file",
    "read_package": "package",
    "register_func": "functions.registry",
}


def __getattr__(name: str) -> Any:
    """Find a name in its module, and cache it here."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
