"""Run packaged models: NumPy and ctypes only, without a compiler.

The wheel `loopwright-runtime` is this folder under the name `loopwright_runtime`, so its imports
are relative.
"""

from pathlib import Path

from .error import ArgumentError, PackageError
from .executor import Executor
from .package import Package, read_package

__all__ = ["ArgumentError", "Executor", "Package", "PackageError", "load", "read_package"]


def load(path: str | Path, *, num_threads: int | None = None) -> Executor:
    """Load a model from a package.

    Args:
        path: A `.lwm` file or folder.
        num_threads: The maximum number of threads of a call, by default as many as the model was
            built for and this process may use.

    Raises:
        PackageError: If it is not a package, is damaged, or this machine can't run it.
        OSError: If it can't be read.
    """
    return Executor(read_package(path), num_threads=num_threads)
