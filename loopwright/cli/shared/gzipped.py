"""Read and write gzipped files of records, which take a twentieth of the space."""

from __future__ import annotations

import gzip
import shutil
import zlib
from pathlib import Path

from loopwright.atomic_file import atomic_file
from loopwright.cli.shared.failure import InputError

_MAGIC = b"\x1f\x8b"


def is_to_be_gzipped(file: Path) -> bool:
    """Return whether the name of an output file requires compression."""
    return file.suffix == ".gz"


def gzip_file(plain: Path, file: Path) -> None:
    """Write a compressed copy of a file.

    Raises:
        OSError: If the copy cannot be written.
    """
    with (
        plain.open("rb") as source,
        atomic_file(file) as opened,
        # Without a name and a time, equal records make equal bytes.
        gzip.GzipFile("", "wb", fileobj=opened, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed)


def plain_file(file: Path, folder: Path) -> Path:
    """Return a file, or an uncompressed copy of it in a folder if it is compressed.

    Raises:
        InputError: If the file is damaged.
    """
    with file.open("rb") as opened:
        if opened.read(len(_MAGIC)) != _MAGIC:
            return file
    plain = folder / "plain"
    try:
        with gzip.open(file) as packed, plain.open("wb") as copy:
            shutil.copyfileobj(packed, copy)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{file} is gzipped and cannot be unpacked: {error}") from error
    return plain
