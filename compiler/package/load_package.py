"""Load a package into a process that has the compiler: models and kernels share one pool."""

from __future__ import annotations

from pathlib import Path

from compiler.backends.cpu.runtime.pool import launch_address
from compiler.executor.executor import Executor
from compiler.executor.package import Package, read_package


def load_package(package: Package, num_threads: int | None = None) -> Executor:
    """Load a model.

    Args:
        package: The model.
        num_threads: The maximum number of threads of a call, by default as many as the model was
            built for and this process may use.

    Raises:
        PackageError: If this machine can't run it.
        ArgumentError: If `num_threads` is less than 1.
    """
    launch = launch_address() if package.num_threads > 1 else 0
    return Executor(package, num_threads=num_threads, launch=launch)


def load(path: str | Path, *, num_threads: int | None = None) -> Executor:
    """Load a compiled model from a file or a folder: what `lw.compile(...).save` wrote.

    Loading runs nothing; running runs machine code. Load only packages from sources that you trust.

    Args:
        path: A `.lwm` file or folder.
        num_threads: The maximum number of threads of a call, by default as many as the model was
            built for and this process may use.

    Raises:
        PackageError: If it is not a package, is damaged, has a newer format, or is for a CPU with
            instructions that this one lacks.
        ArgumentError: If `num_threads` is less than 1.
        OSError: If it can't be read.
    """
    return load_package(read_package(path), num_threads)
