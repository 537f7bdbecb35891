"""A process that runs one library: it reads requests and writes replies, as lines of JSON.

    {"do": "start"}                                            -> {"versions": {...}}
    {"do": "prepare", "workload": NAME, "backend": NAME}       -> {"rel_error": ..., ...}
    {"do": "sample", "workload": ..., "backend": ..., "secs"}  -> {"secs": ...}

A failure is a reply {"error": TEXT}, with "is_absent" if there is no tuned schedule. The process
holds the buffers of one workload at a time.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import numpy as np

from benchmarks.peers.library import Ceiling, Library, NotTunedError, Prepared
from benchmarks.peers.numpy_peer import reference
from benchmarks.workloads.table import BY_NAME
from benchmarks.workloads.workload import Array, BenchmarkWorkload

LIBRARIES = {
    "numpy": "benchmarks.peers.numpy_peer",
    "torch": "benchmarks.peers.torch_peer",
    "jax": "benchmarks.peers.jax_peer",
    "tvm": "benchmarks.peers.tvm_peer",
    "loopwright": "benchmarks.kernels.ours",
}
BATCH_SECS = 2e-3
WARM_UP_SECS = 0.1


class PeerResultError(Exception):
    """A library's result differs from the reference."""


def main() -> None:
    """Serve requests until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cores", required=True)
    args = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})
    # Output of libraries must not mix with replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    session = Session(args.library, args.threads)
    for line in sys.stdin:
        print(json.dumps(session.answer(json.loads(line))), file=replies, flush=True)


class Session:
    """The state of a worker: one library, and the current workload."""

    def __init__(self, library: str, threads: int) -> None:
        self._name = library
        self._threads = threads
        self._library: Library | None = None
        self._workload = ""
        self._expected: Array | None = None
        self._ready: dict[str, Timer | Ceiling] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request."""
        try:
            match request["do"]:
                case "start":
                    return {"versions": self._start()}
                case "prepare":
                    return self._prepare(BY_NAME[request["workload"]], request["backend"])
                case "sample":
                    ready = self._ready[request["backend"]]
                    with first_in_line() if request.get("realtime") else nullcontext():
                        return {"secs": ready.sample(request["secs"])}
                case other:
                    return {"error": f"unknown request {other!r}"}
        except NotTunedError as error:
            return {"error": str(error), "is_absent": True}
        except Exception as error:  # any error of a library is a reply
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def _start(self) -> dict[str, str]:
        self._library = cast(Library, importlib.import_module(LIBRARIES[self._name]))
        return self._library.start(self._threads)

    def _prepare(self, workload: BenchmarkWorkload, backend: str) -> dict[str, Any]:
        assert self._library is not None, "start comes first"
        if workload.name != self._workload:
            self._ready.clear()
            self._workload, self._expected = workload.name, None
        start = time.perf_counter()
        prepared = self._library.prepare(workload, backend)
        if isinstance(prepared, Ceiling):
            self._ready[backend] = prepared
            return {"note": prepared.note}
        prepared.run()
        secs = time.perf_counter() - start
        error = self._check(workload, prepared)
        self._ready[backend] = Timer(prepared.run, self._threads)
        return {"rel_error": error, "prepare_secs": secs, "note": prepared.note}

    def _check(self, workload: BenchmarkWorkload, prepared: Prepared) -> float:
        if self._expected is None:
            self._expected = reference(workload)
        error = rel_error(prepared.output(), self._expected)
        if not error <= workload.max_error:
            raise PeerResultError(f"off by {error:.2g} of the largest magnitude")
        if prepared.check is not None:
            prepared.check()
        return error


def rel_error(got: Array, expected: Array) -> float:
    """Return the largest difference as a share of the largest magnitude; NaN if there is one."""
    difference = np.abs(np.asarray(got, dtype="float64").reshape(expected.shape) - expected)
    return float(difference.max() / max(np.abs(expected).max(), 1e-30))


@contextmanager
def first_in_line() -> Iterator[None]:
    """Run all threads of this process at real-time priority for a while.

    Raises:
        PermissionError: If the system does not allow it.
    """
    threads = [int(name) for name in os.listdir("/proc/self/task")]
    try:
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
        yield
    finally:
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


class Timer:
    """Times a function: CPU time of this process for one thread, wall time for several.

    CPU time excludes other processes on the core. It includes helper threads of the library, which
    are pinned to the same core.
    """

    def __init__(self, run: Callable[[], object], threads: int) -> None:
        self._run = run
        self._clock = time.process_time if threads == 1 else time.perf_counter
        self._calls = 0

    def sample(self, secs: float) -> float:
        """Return the median seconds of a run, over batches of about `secs` seconds in total."""
        if self._calls == 0:
            once = self._warm_up()
            self._calls = max(1, round(BATCH_SECS / max(once, 1e-7)))
            if once > secs:
                return once
        else:
            self._run()  # load its data into the caches
        end = self._clock() + secs
        batches: list[float] = []
        gc.disable()
        try:
            while not batches or self._clock() < end:
                batches.append(self._batch(self._calls))
        finally:
            gc.enable()
        return statistics.median(batches)

    def _warm_up(self) -> float:
        """Run until memory and threads are warm; return the shortest seconds of one run."""
        end = self._clock() + WARM_UP_SECS
        once = self._batch(1)
        while self._clock() < end:
            once = min(once, self._batch(1))
        return once

    def _batch(self, calls: int) -> float:
        start = self._clock()
        for _ in range(calls):
            self._run()
        return (self._clock() - start) / calls


if __name__ == "__main__":
    main()
