"""Load models and kernels from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .artifact import Artifact
from .error import ArgumentError
from .executor import Executor
from .kernel import LoadedKernel
from .kernel_file import kernels_from_bytes
from .package import read_package


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
    return Executor(read_package(path), num_threads=num_threads)


def load_kernel(path: str | Path, const_params: Mapping[str, Any] | None = None) -> LoadedKernel:
    """Load a kernel for a CPU from a file: what `lw.build(...).save` wrote.

    It imports no compiler, so it takes a few milliseconds. `lw.Module.load` also loads kernels for
    GPUs, and returns a module with the methods of TVM's modules. A kernel runs machine code: load
    only artifacts from sources that you trust.

    Args:
        path: The file.
        const_params: An array for each constant parameter, by name.

    Raises:
        ArtifactError: If the file is not an artifact, or this machine can't run it.
        ArgumentError: If the constants do not fit the kernel.
        OSError: If it can't be read.
    """
    return LoadedKernel(Artifact.load(path), const_params)


def load_kernels(
    path: str | Path, const_params: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, LoadedKernel]:
    """Load the kernels of a module from a file: what `lw.build(module).save` wrote.

    Like `load_kernel`, it imports no compiler, and requires a source that you trust.

    Args:
        path: The file, of several kernels or of one.
        const_params: The constants of each kernel, by the name of the kernel.

    Returns:
        The kernels by the names of their functions, in the order of the module.

    Raises:
        ArtifactError: If the file holds no kernels, or this machine can't run them.
        ArgumentError: If the constants do not fit the kernels.
        OSError: If it can't be read.
    """
    artifacts = kernels_from_bytes(Path(path).read_bytes())
    constants = const_params or {}
    names = [artifact.name for artifact in artifacts]
    if unknown := [name for name in constants if name not in names]:
        raise ArgumentError(f"no kernel is called {unknown[0]}: expected {', '.join(names)}")
    return {a.name: LoadedKernel(a, constants.get(a.name)) for a in artifacts}
