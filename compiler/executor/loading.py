"""Load models from files."""

from __future__ import annotations

from pathlib import Path

from .executor import Executor
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
