"""One process at a time measures on a device: locks on files, which all processes of a host share.

A worker and a search by `lw.tune` may use the same GPU. Each takes the lock for one candidate, or
for one batch of a comparison.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_SECS = 2e-3
"""Pause between two attempts to take a lock; a candidate takes many times as long. Chosen."""
_LOCK_MODE = 0o644
"""Each user may read a lock file, and so lock it."""


class DeviceLock:
    """The lock on a device, by its identity; safe to use from several threads.

    A process that waits holds a second lock, the queue's: it gets the device next, even if the
    process that releases it wants it again at once.

    Args:
        uuid: The identity of the device.
    """

    def __init__(self, uuid: str) -> None:
        folder = Path(tempfile.gettempdir())
        self._paths = [folder / f"loopwright-{uuid}.{part}" for part in ("queue", "lock")]

    @contextmanager
    def taken(self, is_abandoned: Callable[[], bool]) -> Iterator[None]:
        """Hold the lock while the body runs.

        Args:
            is_abandoned: Called while it waits; if it returns true, the body runs without the lock.
        """
        queue, device = map(_open, self._paths)
        try:
            _acquire(queue, is_abandoned)
            _acquire(device, is_abandoned)
            fcntl.flock(queue, fcntl.LOCK_UN)
            yield
        finally:
            os.close(device)  # this releases the lock
            os.close(queue)


def _open(path: Path) -> int:
    """Open a lock file for reading, which is all that `flock` requires; create it if needed.

    Processes of all users share the file, so the umask of the one that creates it must not matter.
    Another user can put something else in its place: a link is not followed, a pipe does not
    block, and whatever exists keeps its mode.

    Raises:
        OSError: If the file is a link, or this process may not read it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):  # another process created it meanwhile
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, _LOCK_MODE)
            os.fchmod(file, _LOCK_MODE)
            return file


def _acquire(file: int, is_abandoned: Callable[[], bool]) -> None:
    while not is_abandoned():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_SECS)
        else:
            return
