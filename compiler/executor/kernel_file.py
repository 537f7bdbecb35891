"""Several kernels in one file: those of a module, by the names of their functions.

A zip archive of the artifact of each kernel, `NAME.lwk`, and their order, `kernels.json`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence

from .artifact import LIMIT_BYTES, MALFORMED, SEVERAL, Artifact, write_entry
from .error import ArtifactError

_FORMAT_VERSION = 1


def kernels_to_bytes(artifacts: Sequence[Artifact]) -> bytes:
    """Return the bytes of a file of several kernels, whose names differ."""
    names = [artifact.name for artifact in artifacts]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        content = {"format": _FORMAT_VERSION, "kernels": names}
        write_entry(file, SEVERAL, json.dumps(content).encode())
        for artifact in artifacts:
            write_entry(file, f"{artifact.name}.lwk", artifact.to_bytes())
    return buffer.getvalue()


def kernels_from_bytes(content: bytes) -> list[Artifact]:
    """Parse the bytes of `kernels_to_bytes`, or of one artifact.

    Raises:
        ArtifactError: If the bytes are neither, or have another format version.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            if SEVERAL not in file.namelist():
                return [Artifact.from_bytes(content)]
            if sum(entry.file_size for entry in file.infolist()) > LIMIT_BYTES:
                raise ArtifactError(f"the file unpacks to more than {LIMIT_BYTES} bytes")
            meta = json.loads(file.read(SEVERAL))
            if meta["format"] != _FORMAT_VERSION:
                raise ArtifactError(
                    f"a file of several kernels has format {meta['format']!r}: expected "
                    f"{_FORMAT_VERSION}"
                )
            return [_named(name, file.read(f"{name}.lwk")) for name in meta["kernels"]]
    except ArtifactError:
        raise
    except MALFORMED as error:
        raise ArtifactError(f"not a file of kernels: {error}") from error


def _named(name: str, content: bytes) -> Artifact:
    artifact = Artifact.from_bytes(content)
    if artifact.name != name:
        raise ArtifactError(f"the kernel {name} of the file is called {artifact.name}")
    return artifact
