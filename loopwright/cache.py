"""Kernels kept on disk between runs, one file each, safe for several processes at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from loopwright.models import ScheduleQuery


@dataclass(frozen=True)
class CachedKernel:
    """The bytes of an artifact, the tag by which the server knows them, and its schedule."""

    etag: str
    content: bytes
    schedule: str = "best"


class KernelCache:
    """Artifacts by server and query, under one directory."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()

    def get(self, url: str, query: ScheduleQuery) -> CachedKernel | None:
        """Return what was kept, or None."""
        try:
            head, _, content = self._path(url, query).read_bytes().partition(b"\n")
        except OSError:
            return None
        etag, _, schedule = head.decode("latin-1").partition("\t")
        return CachedKernel(etag, content, schedule or "best") if content else None

    def put(self, url: str, query: ScheduleQuery, kernel: CachedKernel) -> None:
        """Keep an artifact. A directory that cannot be written only costs the next download."""
        path = self._path(url, query)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
            try:
                with os.fdopen(handle, "wb") as file:
                    head = f"{kernel.etag}\t{kernel.schedule}\n"
                    file.write(head.encode("latin-1") + kernel.content)
                os.replace(name, path)  # tag and bytes appear at once, for any reader
            except OSError:
                os.unlink(name)
                raise

    def _path(self, url: str, query: ScheduleQuery) -> Path:
        key = hashlib.sha256(f"{url}\n{query.model_dump_json()}".encode()).hexdigest()
        return self.directory / "kernels" / key


def default_directory() -> Path:
    """Return `$LOOPWRIGHT_CACHE`, or the user's cache directory."""
    if chosen := os.environ.get("LOOPWRIGHT_CACHE"):
        return Path(chosen)
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "loopwright"
