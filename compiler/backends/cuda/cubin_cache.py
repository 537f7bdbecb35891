"""A cache of compiled sources on disk: of machine code, and of the errors of the compiler.

A file is named by the SHA-256 of the source, the architecture, the options and the version of
NVRTC, so an entry is never outdated. Several processes may use the cache at once: files are written
beside their final name and then renamed. The oldest files are removed when the cache is too large.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path

from compiler.backends.cuda.nvrtc import (
    OPTIONS,
    CompiledSource,
    NvrtcMissingError,
    compile_cuda,
    nvrtc_release,
)
from compiler.backends.error import BuildError
from compiler.runtime.resources import KernelResources
from compiler.user_cache import default_directory

# About 8,000 kernels of 30 KB each, packed.
_MOST_BYTES = 256 << 20
# Cleaning removes a quarter, so that it is rare: it lists all files.
_KEPT_SHARE = 0.75
# One write in so many looks at the size of the cache.
_WRITES_PER_CHECK = 64
_LENGTH = struct.Struct("<II")
_DAMAGED = (OSError, LookupError, TypeError, ValueError, struct.error, zlib.error)


def compile_cached(text: str, arch: str) -> CompiledSource:
    """Compile CUDA C++ for an architecture, or return the outcome of an earlier compilation.

    Raises:
        NvrtcMissingError: If this host has no NVRTC, and the cache lacks the source.
        BuildError: If the compiler rejects the source.
    """
    release = nvrtc_release()
    if release is None:
        return compile_cuda(text, arch)  # a toolkit's, or the error that says what to install
    path = cubin_directory() / f"{_key(text, arch, release)}.bin"
    with contextlib.suppress(*_DAMAGED):
        return _unpacked(path.read_bytes())
    try:
        compiled = compile_cuda(text, arch)
    except NvrtcMissingError:
        raise
    except BuildError as error:
        _write(path, _packed({"error": str(error)}, b"", b""))
        raise
    resources = {name: asdict(used) for name, used in compiled.resources.items()}
    _write(path, _packed({"resources": resources}, compiled.cubin, compiled.ptx.encode()))
    return compiled


def cubin_directory() -> Path:
    """Return the folder of the cache."""
    return default_directory() / "cubins"


def _key(text: str, arch: str, release: str) -> str:
    parts = (text, arch, release, *OPTIONS)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _packed(header: dict[str, object], cubin: bytes, ptx: bytes) -> bytes:
    head = json.dumps(header).encode()
    return zlib.compress(_LENGTH.pack(len(head), len(cubin)) + head + cubin + ptx, level=1)


def _unpacked(content: bytes) -> CompiledSource:
    """Return what an entry holds.

    Raises:
        BuildError: If the compiler rejected the source.
    """
    content = zlib.decompress(content)  # its checksum covers the whole entry
    head_bytes, cubin_bytes = _LENGTH.unpack_from(content)
    start = _LENGTH.size + head_bytes
    header = json.loads(content[_LENGTH.size : start])
    if "error" in header:
        raise BuildError(header["error"], "codegen")
    resources = {name: KernelResources(**used) for name, used in header["resources"].items()}
    end = start + cubin_bytes
    return CompiledSource(content[start:end], content[end:].decode(), resources)


def _write(path: Path, content: bytes) -> None:
    """Write a file at once; a cache that can't be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        if int(path.stem[:8], 16) % _WRITES_PER_CHECK == 0:
            trim(_MOST_BYTES)


def trim(most_bytes: int) -> None:
    """Remove the oldest files if the cache has more than `most_bytes`."""
    entries = []
    for path in cubin_directory().iterdir():
        with contextlib.suppress(OSError):  # another process removed it
            stat = path.stat()
            entries.append((stat.st_mtime, stat.st_size, path))
    total = sum(size for _, size, _ in entries)
    if total <= most_bytes:
        return
    for _, size, path in sorted(entries):
        path.unlink(missing_ok=True)
        total -= size
        if total <= most_bytes * _KEPT_SHARE:
            break
