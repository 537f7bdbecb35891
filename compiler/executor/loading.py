"""Load models and kernels from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .artifact import Artifact
from .executor import Executor
from .kernel import LoadedKernel
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
