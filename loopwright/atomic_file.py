"""Write a file atomically: readers see the complete file or none, also after a crash."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

PARTIAL = ".partial-"
"""The prefix of the name of a file that is still being written."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` if the body raises no error.

    A symbolic link stays one, and its target is replaced.

    Raises:
        OSError: If it cannot be written, or is a device or pipe; `path` is unchanged.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    partial = path.parent / f"{PARTIAL}{token_hex(8)}"
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
