"""Tune workloads with TVM's MetaSchedule, each in a process group that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable

from benchmarks import RESULTS
from benchmarks.peers.environments import PEERS, environment_variables, missing
from benchmarks.peers.library import FIRST_SEED, metaschedule_path
from benchmarks.workloads.workload import BenchmarkWorkload

_LIMIT_SECS = 3600.0


def tune_with_metaschedule(
    workloads: Iterable[BenchmarkWorkload],
    trials: int,
    threads: int,
    core: int,
    seed: int = FIRST_SEED,
) -> None:
    """Tune the workloads without a stored schedule of this seed and as many trials."""
    (peer,) = (peer for peer in PEERS if peer.library == "tvm")
    if reason := missing(peer):
        print(f"{peer.name}: {reason}")
        return
    for workload in workloads:
        path = metaschedule_path(workload.name, threads, seed)
        if path.exists() and json.loads(path.read_text(encoding="utf-8"))["trials"] == trials:
            continue
        command = [str(peer.python), "-m", "benchmarks.peers.metaschedule", workload.name]
        command += ["--trials", str(trials), "--threads", str(threads), "--core", str(core)]
        command += ["--seed", str(seed)]
        start = time.perf_counter()
        status = _run(command, workload.name, threads)
        secs = time.perf_counter() - start
        print(f"{workload.name}: MetaSchedule {status} after {secs:.0f} s", flush=True)


def _run(command: list[str], name: str, threads: int) -> str:
    path = RESULTS / "logs" / f"metaschedule-{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env=environment_variables(threads),
            cwd=RESULTS,
            start_new_session=True,
        )
        try:
            code = process.wait(_LIMIT_SECS)
            status = "is done" if code == 0 else f"failed, see {path}"
        except subprocess.TimeoutExpired:
            status = "was stopped"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its builders and runners too
        process.wait()
    return status
