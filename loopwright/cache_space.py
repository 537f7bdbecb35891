"""Keep the files of a cache below a limit: the least recently used are removed first."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from loopwright.atomic_file import PARTIAL

MAX_BYTES = 256 << 20
"""Limit of all cached files. Chosen."""
_KEPT_SHARE = 0.9
"""The share of the limit that remains after a clean-up, so that it is rare. Chosen."""
_ABANDONED_SECS = 3600.0
"""A partial file of this age belongs to a process that died. Chosen."""


def make_room(directory: Path, max_bytes: int = MAX_BYTES) -> None:
    """Remove files of the folders in a directory, if all of them have more bytes than the limit.

    A file that another process takes away meanwhile is no error.
    """
    files: list[tuple[float, int, Path]] = []
    for path in directory.glob("*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    target_bytes = max_bytes if total <= max_bytes else max_bytes * _KEPT_SHARE
    for used_at, size, path in sorted(files):
        is_partial = path.name.startswith(PARTIAL)
        is_abandoned = is_partial and time.time() - used_at > _ABANDONED_SECS
        if is_abandoned or (total > target_bytes and not is_partial):
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
