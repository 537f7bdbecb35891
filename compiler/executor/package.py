"""Packages of models: read and check a `.lwm` file or folder.

A package is a zip without compression, or a folder, of these files:

    manifest.json   what the model takes and returns, sizes, the CPU, and a digest of each file
    model.h         the prototype and the sizes, for C
    model.o         the object code
    pool.o          the pool of threads; only in packages for several threads
    weights.bin     the constants in the layout that kernels read; mapped, not copied

Reading a package runs nothing. Running it runs machine code: use only packages from sources that
you trust. The digests detect damage; they are no signature.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .dtypes import numpy_dtype
from .error import PackageError
from .params import Param

FORMAT_VERSION = 1
ALIGNMENT = 64
"""The alignment in bytes of the arena, the workspace, the weights, and of each file of a zip."""
MANIFEST, OBJECT, HEADER, POOL, WEIGHTS = (
    *("manifest.json", "model.o", "model.h", "pool.o", "weights.bin"),
)
_REQUIRED = (OBJECT, HEADER, WEIGHTS)
_FILES = (MANIFEST, *_REQUIRED, POOL)
# More than the manifest of any model has; a guard against files that are no manifest.
_LIMIT_MANIFEST_BYTES = 64 << 20
_LIMIT_RANK = 64  # of NumPy
_KINDS = "biufV"  # of NumPy's types: numbers, and those of the package `ml_dtypes`
_LOCAL_HEADER = struct.Struct("<4s22xHH")

# The standard library raises these for bytes that are no zip file, no JSON, or no manifest.
_MALFORMED = (
    *(zipfile.BadZipFile, struct.error, EOFError, LookupError, NotImplementedError),
    *(OverflowError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """A checked package.

    Attributes:
        name: The name of the model, which its symbols begin with.
        arch: The architecture by Linux's name.
        cpu_flags: The flags of `/proc/cpuinfo` that the code needs.
        inputs, outputs: The arrays that a call takes, in order.
        arena_bytes, workspace_bytes: The memory that a call needs.
        num_threads: The maximum number of threads that a call uses.
        manifest: All that the manifest says, for people and tools.
        files: The content of the other files by name.
    """

    name: str
    arch: str
    cpu_flags: tuple[str, ...]
    inputs: tuple[Param, ...]
    outputs: tuple[Param, ...]
    arena_bytes: int
    workspace_bytes: int
    num_threads: int
    manifest: Mapping[str, Any]
    files: Mapping[str, memoryview]

    @classmethod
    def from_files(cls, manifest: bytes, files: Mapping[str, memoryview]) -> Package:
        """Check a manifest and the files that belong to it.

        Raises:
            PackageError: If they are damaged, or of a newer format.
        """
        try:
            return cls._checked(_manifest(manifest), files)
        except PackageError:
            raise
        except _MALFORMED as error:
            raise PackageError(f"not a package of a model: {error}") from error

    @classmethod
    def _checked(cls, manifest: dict[str, Any], files: Mapping[str, memoryview]) -> Package:
        if set(manifest["files"]) != set(files) or not set(_REQUIRED) <= set(files):
            raise PackageError(f"the package has the files {', '.join(sorted(files))}")
        for name, content in files.items():
            if hashlib.sha256(content).hexdigest() != manifest["files"][name]:
                raise PackageError(f"the package is damaged: {name} has another checksum")
        if _size(manifest["weights_bytes"]) != len(files[WEIGHTS]):
            raise PackageError(f"the package is damaged: {WEIGHTS} has another size")
        return cls(
            name=_text(manifest["name"]),
            arch=_text(manifest["arch"]),
            cpu_flags=tuple(map(_text, manifest["cpu_flags"])),
            inputs=_arrays(manifest["inputs"], is_output=False),
            outputs=_arrays(manifest["outputs"], is_output=True),
            arena_bytes=_size(manifest["arena_bytes"]),
            workspace_bytes=_size(manifest["workspace_bytes"]),
            num_threads=max(_size(manifest["num_threads"]), 1),
            manifest=manifest,
            files=dict(files),
        )


def read_package(path: str | Path) -> Package:
    """Read a package from a file or a folder. The weights stay on disk until they are used.

    Raises:
        PackageError: If it is not a package, is damaged, or has a newer format.
        OSError: If it can't be read.
    """
    path = Path(path)
    try:
        contents = _folder_files(path) if path.is_dir() else _zip_files(path)
        if MANIFEST not in contents:
            raise PackageError(f"{path} has no {MANIFEST}")
        manifest = bytes(contents.pop(MANIFEST)[: _LIMIT_MANIFEST_BYTES + 1])
    except PackageError:
        raise
    except _MALFORMED as error:
        raise PackageError(f"{path} is not a package of a model: {error}") from error
    return Package.from_files(manifest, contents)


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a manifest, of all but the digest in it."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _manifest(content: bytes) -> dict[str, Any]:
    if len(content) > _LIMIT_MANIFEST_BYTES:
        raise PackageError(f"the manifest has more than {_LIMIT_MANIFEST_BYTES} bytes")
    manifest = json.loads(content)
    if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
        raise PackageError("not a package of a model: its manifest states no format")
    if manifest["format"] != FORMAT_VERSION:
        raise PackageError(
            f"the package has format {manifest['format']}: this version reads {FORMAT_VERSION}"
        )
    if manifest.get("digest") != digest_of(manifest):
        raise PackageError("the package is damaged: its manifest has another checksum")
    return manifest


def _zip_files(path: Path) -> dict[str, memoryview]:
    """Return the files of a zip without compression, as views of the mapped file."""
    with path.open("rb") as opened, zipfile.ZipFile(opened) as archive:
        entries = archive.infolist()
        content = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    files: dict[str, memoryview] = {}
    for entry in entries:
        name = entry.filename
        if name not in _FILES or name in files:
            raise PackageError(
                f"{path} has the file {name!r}: expected {', '.join(_FILES)}; load_kernel loads the"
                " file of a kernel"
            )
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise PackageError(f"{path}: {name} is a symbolic link")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise PackageError(f"{path}: {name} is compressed or encrypted")
        magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack_from(content, entry.header_offset)
        start = entry.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
        end = start + entry.file_size
        if magic != b"PK\3\4" or end > len(content):
            raise PackageError(f"{path} is damaged: {name} is not where the zip states it")
        files[name] = content[start:end]
    return files


def _folder_files(path: Path) -> dict[str, memoryview]:
    files = {}
    for name in _FILES:
        file = path / name
        if file.is_symlink():
            raise PackageError(f"{file} is a symbolic link")
        if file.is_file():
            with file.open("rb") as opened:
                empty = file.stat().st_size == 0
                mapped = b"" if empty else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
                files[name] = memoryview(mapped)
    return files


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise TypeError(f"{value!r} is not a size")
    return value


def _arrays(rows: Any, *, is_output: bool) -> tuple[Param, ...]:
    arrays = []
    for row in rows:
        if numpy_dtype(_text(row["dtype"])).kind not in _KINDS:
            raise TypeError(f"{row['name']!r} has elements of {row['dtype']!r}")
        shape = tuple(map(_size, row["shape"]))
        if len(shape) > _LIMIT_RANK:
            raise TypeError(f"{row['name']!r} has {len(shape)} dimensions")
        arrays.append(Param(_text(row["name"]), shape, row["dtype"], is_output))
    return tuple(arrays)
