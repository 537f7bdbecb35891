"""Write a file atomically: readers see the complete file or none, also after a crash."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

PARTIAL = ".partial-"
"""How the name of a file begins that is still being written."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path`, which takes its place if no error leaves the body.

    A link stays one, and what it leads to is written.

    Raises:
        OSError: If it cannot be written, or is a device or pipe; `path` is as it was.
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
