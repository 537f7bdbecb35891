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
from contextlib import contextmanager
from pathlib import Path

_LOOK_SECS = 2e-3
"""Pause between two attempts to take a lock; a candidate takes many times as long. Chosen."""


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
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)


def _acquire(file: int, is_abandoned: Callable[[], bool]) -> None:
    while not is_abandoned():
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_SECS)
        else:
            return
