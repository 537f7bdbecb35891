"""Write a file that appears only when it is whole, whoever reads or dies meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"
"""How the name of a file begins that is still being written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path`, which takes its place if no error leaves the body.

    Raises:
        OSError: If it cannot be written; `path` is as it was.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
