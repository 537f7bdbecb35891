"""A file that is renewed while a process is ready, for health checks of processes without HTTP.

The check is that the file is new: it imports nothing and takes a millisecond, so it does not
disturb the measurements of a worker.
"""

from __future__ import annotations

from pathlib import Path

RENEW_SECS = 5.0
"""Interval between renewals: several within the half minute that health checks allow. Chosen."""


class ReadyFile:
    """The file at `path`, or none. A file of an earlier process is removed.

    Raises:
        OSError: If the file cannot be removed.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.remove()

    def renew(self) -> None:
        """Create the file, or set its time to now."""
        if self._path is not None:
            self._path.touch(mode=0o644)

    def remove(self) -> None:
        """Remove the file: the process is not ready, or ends."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
