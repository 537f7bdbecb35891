"""Time libraries in turns, each in a separate process, on the same cores.

A slow moment of the machine then affects all of them, and only ratios of times of the same round
are compared. Every pass starts new processes, because the addresses of buffers change the time of a
kernel by up to a quarter.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.peers.environments import Peer, environment_variables, missing
from benchmarks.workloads.workload import BenchmarkWorkload

OURS = ("default", "proposed", "tuned", "ceiling")
"""The backends of our own process; the others are libraries."""

SLOW_SECS = 0.5
"""A backend whose run takes longer is sampled once a pass."""

_REPLY_SECS = 900.0
_PAUSE_SECS = 5e-3  # threads that wait in a loop for more work give up within it

Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """The number of samples, and the cores."""

    threads: int
    cores: tuple[int, ...]
    passes: int = 2
    rounds: int = 7
    sample_secs: float = 0.04
    realtime: bool = False


class WorkerError(Exception):
    """A worker process ended, or did not answer."""


class Worker:
    """A process that runs one library."""

    def __init__(self, name: str, library: str, python: Path, settings: Settings) -> None:
        logs = RESULTS / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        cores = ",".join(map(str, settings.cores))
        options = ["--threads", str(settings.threads), "--cores", cores]
        with (logs / f"{name}.log").open("w") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "benchmarks.peers.worker", library, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment_variables(settings.threads),
                cwd=RESULTS,
            )
        self._buffer = b""

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the reply to a request; a failure is its "error"."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            reply = json.loads(self._line())
        except (OSError, ValueError, WorkerError) as error:
            return {"error": f"worker: {error}"}
        return dict(reply)

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        end = time.monotonic() + _REPLY_SECS
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self._process.kill()
                raise WorkerError(f"no answer within {_REPLY_SECS:.0f} s")
            received = os.read(pipe, 1 << 16)
            if not received:
                raise WorkerError(f"died with exit status {self._process.wait()}")
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Measured:
    """The results of a run: a row for each workload, library versions, and missing libraries."""

    rows: Rows
    versions: dict[str, str]
    skipped: dict[str, str]


def measure(
    workloads: Sequence[BenchmarkWorkload],
    peers: Sequence[Peer],
    settings: Settings,
    backends: Sequence[str] = OURS,
    after_pass: Callable[[Measured], object] = lambda _: None,
) -> Measured:
    """Time our kernels and the libraries on workloads, interleaved.

    Args:
        workloads: What to run.
        peers: The libraries; missing ones are skipped, with the reason.
        settings: The number of samples, and the cores.
        backends: Which of `OURS`.
        after_pass: Called with the results so far after each pass, to store them.
    """
    skipped = {peer.name: reason for peer in peers if (reason := missing(peer))}
    present = [peer for peer in peers if peer.name not in skipped]
    found = Measured({}, {}, skipped)
    for number in range(settings.passes):
        with _workers(present, settings, found) as workers:
            runs = [(name, workers["loopwright"]) for name in backends]
            runs += [(peer.name, workers[peer.name]) for peer in present if peer.name in workers]
            for workload in workloads:
                row = found.rows.setdefault(workload.name, _new_row(workload))
                start = time.perf_counter()
                _measure_workload(workload, runs, row, settings, number)
                secs = time.perf_counter() - start
                print(f"pass {number + 1}: {workload.name} in {secs:.0f} s", file=sys.stderr)
        after_pass(found)
    return found


@contextlib.contextmanager
def _workers(
    peers: Sequence[Peer], settings: Settings, found: Measured
) -> Iterator[dict[str, Worker]]:
    """Start a process for each library; skip a library that does not start."""
    ours = Peer("loopwright", "loopwright")
    workers = {p.name: Worker(p.name, p.library, p.python, settings) for p in (ours, *peers)}
    try:
        started = {}
        for name, worker in workers.items():
            reply = worker.ask(do="start")
            if "error" in reply:
                found.skipped[name] = reply["error"]
            else:
                found.versions.update(reply["versions"])
                started[name] = worker
        yield started
    finally:
        for worker in workers.values():
            worker.close()


def _new_row(workload: BenchmarkWorkload) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "unit": workload.unit,
        "amount": workload.amount,
        "backends": {},
    }


def _measure_workload(
    workload: BenchmarkWorkload,
    runs: Sequence[tuple[str, Worker]],
    row: dict[str, Any],
    settings: Settings,
    number: int,
) -> None:
    """Add the samples of one pass to a row, None for a skipped turn."""
    backends: dict[str, dict[str, Any]] = row["backends"]
    done = number * settings.rounds
    ready = []
    for name, worker in runs:
        entry = backends.setdefault(name, {"secs": [None] * done})
        reply = worker.ask(do="prepare", workload=workload.name, backend=name)
        entry.update(reply)
        if "error" not in reply:
            ready.append((name, worker))
    for turn in range(settings.rounds):
        # Each round starts with another backend, so that none always follows the same one.
        first = turn % max(1, len(ready))
        for name, worker in ready[first:] + ready[:first]:
            entry = backends[name]
            if "error" in entry or _is_slow(entry["secs"], done):
                continue
            time.sleep(_PAUSE_SECS)
            reply = worker.ask(
                do="sample",
                workload=workload.name,
                backend=name,
                secs=settings.sample_secs,
                realtime=settings.realtime,
            )
            if "error" in reply:
                entry["error"] = reply["error"]
            else:
                entry["secs"] += [None] * (done + turn - len(entry["secs"])) + [reply["secs"]]
    for entry in backends.values():
        entry["secs"] += [None] * (done + settings.rounds - len(entry["secs"]))


def _is_slow(secs: Sequence[float | None], since: int) -> bool:
    """Return whether the samples of this pass show that a run is too long for more samples."""
    return any(sample is not None and sample > SLOW_SECS for sample in secs[since:])
