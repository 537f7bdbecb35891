"""Load a package into a process that has the compiler: models and kernels share one pool."""

from __future__ import annotations

from compiler.backends.cpu.runtime.pool import launch_address
from compiler.executor.executor import Executor
from compiler.executor.package import Package


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
