"""Power loss for SQLite: what of a database is on the disk when a host loses its power.

Blocks that were written since the last `fsync` of their file are on the disk or not, each for
itself. SQLite's promise is that the database is whole, perhaps without its last transactions.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from service.store.database.database import Database, open_database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from tests.acceptance.chaos.shim import Faults, build
from tests.integration.service import coordinating
from tests.integration.service.driving import drive, keys, submit
from tests.patience import PATIENCE_SECS

_BLOCK_BYTES = 4096
_SUFFIXES = ("", "-wal")
_BEGUN_BYTES = 1 << 18
"""A coordinator that has written so much has stored trials."""
_MOST_BYTES = 1 << 17
"""Written between two losses at most: a job of 160 trials writes 0.9 MiB."""
_SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)
"""Of the blocks since the last `fsync` that are on the disk, one for each loss."""


@dataclass
class Disk:
    """The files of a database, and what of them is surely on the disk.

    Attributes:
        synced: The content of each file at its last `fsync`.
    """

    database: Path
    synced: dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.synced = self.current()

    def current(self) -> dict[Path, bytes]:
        """Return the content of each file."""
        paths = [Path(f"{self.database}{suffix}") for suffix in _SUFFIXES]
        return {path: path.read_bytes() for path in paths if path.exists()}

    def num_bytes(self) -> int:
        """Return the size of all files."""
        return sum(map(len, self.current().values()))

    def note_sync(self, inode: int) -> None:
        """Note that the content of a file is on the disk, while its writer is held."""
        for path, content in self.current().items():
            if path.stat().st_ino == inode:
                self.synced[path] = content

    def after_power_loss(self, copy: Path, share: float, rng: Random) -> None:
        """Write a copy of the database that a power loss may leave now; its writer is held."""
        for path, content in self.current().items():
            left = _left(self.synced.get(path, b""), content, share, rng)
            Path(f"{copy}{path.name.removeprefix(self.database.name)}").write_bytes(left)


def _left(synced: bytes, written: bytes, share: float, rng: Random) -> bytes:
    """Return a file of which each block is the synced or, with this share, the written one."""
    is_grown = len(written) > len(synced) and rng.random() >= share
    size = len(synced) if is_grown else len(written)
    blocks = [
        _block(written if rng.random() < share else synced, start)
        for start in range(0, size, _BLOCK_BYTES)
    ]
    return b"".join(blocks)[:size]


def _block(content: bytes, start: int) -> bytes:
    return content[start : start + _BLOCK_BYTES].ljust(_BLOCK_BYTES, b"\0")


def losses(
    disk: Disk, faults: Faults, process: subprocess.Popen[bytes], rng: Random
) -> Iterator[Path]:
    """Yield copies of a database at random moments and at `fsync`s of a process that writes it.

    A moment is a number of bytes written before it, whatever the speed of the host.
    """
    shares = rng.sample(_SHARES, len(_SHARES))
    moments = [(rng.randrange(_MOST_BYTES), rng.random() < 0.3) for _ in shares]
    faults.hold_syncs(True)
    due_bytes = disk.num_bytes() + _BEGUN_BYTES
    for share, (more_bytes, is_at_sync) in zip(shares, moments, strict=True):
        due_bytes += more_bytes
        while process.poll() is None:
            inode, is_due = faults.held_inode(), disk.num_bytes() >= due_bytes
            if is_due and (inode is not None or not is_at_sync):
                break
            if inode is not None:
                disk.note_sync(inode)
                faults.release()
            time.sleep(0.001)
        else:
            return
        copy = disk.database.with_name(f"loss-{share}.db")
        with _frozen(process.pid):
            disk.after_power_loss(copy, share, rng)
        yield copy


@contextmanager
def _frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def run(folder: Path, seed: int, num_trials: int) -> list[int]:
    """Simulate losses of power during a job, and check the database that each leaves.

    The coordinator itself is only stopped for a moment, and completes the job. A new coordinator
    then completes the job from the copy with the most trials, and must measure the same candidates.

    Returns:
        How many trials each loss left.
    """
    database = folder / "loopwright.db"
    with closing(open_database(f"sqlite:///{database}")) as opened:
        job_id = submit(opened, max_trials=num_trials)
    faults = Faults(build(folder), folder / "faults")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-m", coordinating.__name__, f"sqlite:///{database}"],
        env={**environment, **faults.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            copies = list(losses(Disk(database), faults, process, Random(seed)))
            faults.hold_syncs(False)
            assert process.wait(PATIENCE_SECS) == 0
        finally:
            process.kill()
    with closing(open_database(f"sqlite:///{database}")) as opened:
        expected = keys(opened, job_id)
    assert len(expected) == num_trials
    left = [_check(copy, expected) for copy in copies]
    assert len(left) == len(_SHARES), "the job wrote too little for all losses"
    _resume(copies[left.index(max(left))], expected)
    return left


def _check(copy: Path, expected: Sequence[str]) -> int:
    """Check that a copy is whole, and has the first trials; return their number."""
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with closing(open_database(f"sqlite:///{copy}")) as database:
        job, stored = _job_of(database)
    assert stored == expected[: len(stored)]
    assert job.num_measured == len(stored)
    return len(stored)


def _resume(copy: Path, expected: Sequence[str]) -> None:
    with closing(open_database(f"sqlite:///{copy}")) as database:
        if not _job_of(database)[0].state.is_final:
            drive(database)
        job, stored = _job_of(database)
    assert job.state is JobState.SUCCEEDED
    assert stored == expected


def _job_of(database: Database) -> tuple[JobRow, list[str]]:
    with database.read() as session:
        (job,) = jobs.newest(session, limit=2)
    return job, keys(database, job.id)
