"""Faults of the disk and the clock of a process, by a library that is preloaded: `shim.c`."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("shim.c")
_FIELDS = (
    "clock_shift_ns",
    "sync_delay_us",
    "is_disk_full",
    "holds_syncs",
    "num_held",
    "num_released",
    "held_file",
)
"""Of `struct faults`, in its order."""


def find_compiler() -> str | None:
    """Return the path of the C compiler, if there is one."""
    return shutil.which("cc")


def build(folder: Path) -> Path:
    """Compile the library; return its path."""
    compiler = find_compiler()
    assert compiler is not None
    library = folder / "shim.so"
    words = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]
    subprocess.run([*words, str(library), str(_SOURCE)], check=True)
    library.chmod(0o755)
    return library


class Faults:
    """The current faults of the processes that have `environment`."""

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(8 * len(_FIELDS)))
        file.chmod(0o666)  # PostgreSQL runs as another user
        self.environment = {"LD_PRELOAD": str(library), "LOOPWRIGHT_FAULTS": str(file)}
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)

    def shift_clock(self, secs: float) -> None:
        """Let the clock differ from the correct time."""
        self._set("clock_shift_ns", int(secs * 1e9))

    def delay_syncs(self, secs: float) -> None:
        """Let each `fsync` take longer."""
        self._set("sync_delay_us", int(secs * 1e6))

    def fill_disk(self, is_full: bool) -> None:
        """Refuse writes that let a file grow, or accept them again."""
        self._set("is_disk_full", is_full)

    def hold_syncs(self, holds: bool) -> None:
        """Hold each `fsync` until `release`, or let all go on."""
        self._set("holds_syncs", holds)

    def held_inode(self) -> int | None:
        """Return the inode of the file whose `fsync` is held; None if none is."""
        if self._get("num_held") == self._get("num_released"):
            return None
        return self._get("held_file")

    def release(self) -> None:
        """Let the held `fsync` go on."""
        self._set("num_released", self._get("num_held"))

    def _set(self, name: str, value: int) -> None:
        struct.pack_into("q", self._map, 8 * _FIELDS.index(name), value)

    def _get(self, name: str) -> int:
        (value,) = struct.unpack_from("q", self._map, 8 * _FIELDS.index(name))
        return int(value)
