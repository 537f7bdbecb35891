"""Several kernels in one file: those of a module, by the names of their functions.

A zip archive of the artifact of each kernel, `NAME.lwk`, and their order, `kernels.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .artifact import LIMIT_BYTES, MALFORMED, SEVERAL, Artifact, write_zip
from .error import ArgumentError, ArtifactError
from .kernel import LoadedKernel
from .zip_reader import read_zip

_FORMAT_VERSION = 1


def load_kernels(
    path: str | os.PathLike[str], const_params: Mapping[str, Mapping[str, Any]] | None = None
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
    with open(path, "rb") as file:
        artifacts = kernels_from_bytes(file.read())
    constants = const_params or {}
    names = [artifact.name for artifact in artifacts]
    if unknown := [name for name in constants if name not in names]:
        raise ArgumentError(f"no kernel is called {unknown[0]}: expected {', '.join(names)}")
    return {a.name: LoadedKernel(a, constants.get(a.name)) for a in artifacts}


def kernels_to_bytes(artifacts: Sequence[Artifact]) -> bytes:
    """Return the bytes of a file of several kernels, whose names differ."""
    names = [artifact.name for artifact in artifacts]
    files = {SEVERAL: json.dumps({"format": _FORMAT_VERSION, "kernels": names}).encode()}
    return write_zip({**files, **{f"{a.name}.lwk": a.to_bytes() for a in artifacts}})


def kernels_from_bytes(content: bytes) -> list[Artifact]:
    """Parse the bytes of `kernels_to_bytes`, or of one artifact.

    Raises:
        ArtifactError: If the bytes are neither, or have another format version.
    """
    try:
        files = read_zip(content, LIMIT_BYTES)
        if SEVERAL not in files:
            return [Artifact.from_bytes(content)]
        meta = json.loads(files[SEVERAL])
        if meta["format"] != _FORMAT_VERSION:
            raise ArtifactError(
                f"a file of several kernels has format {meta['format']!r}: expected "
                f"{_FORMAT_VERSION}"
            )
        return [_named(name, files[f"{name}.lwk"]) for name in meta["kernels"]]
    except ArtifactError:
        raise
    except MALFORMED as error:
        raise ArtifactError(f"not a file of kernels: {error}") from error


def _named(name: str, content: bytes) -> Artifact:
    artifact = Artifact.from_bytes(content)
    if artifact.name != name:
        raise ArtifactError(f"the kernel {name} of the file is called {artifact.name}")
    return artifact
