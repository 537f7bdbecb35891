"""Tuned schedules on disk: traces, which any later version of the compiler builds again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.peers.library import NotTunedError
from benchmarks.workloads import Workload
from compiler.driver import toolchain
from compiler.ir.structural import structural_hash
from compiler.schedule.trace import Trace
from loopwright import te


@dataclass(frozen=True)
class Tuned:
    """The best schedule that was found, and in how many trials."""

    trace: Trace
    sketch: str
    trials: int


def program(workload: Workload) -> lw.PrimFunc:
    """Return a workload as a program."""
    if workload.spec:
        return lw.ops.from_spec(workload.spec)
    (n,) = workload.out
    a, b = (te.placeholder((n,), "float32", name=name) for name in "AB")
    c = te.compute((n,), lambda i: te.max(a[i] + b[i], 0), name="C")
    return te.create_prim_func([a, b, c], name="add_relu")


def trace_path(workload: Workload, threads: int) -> Path:
    """Return the file that holds the tuned schedule of a workload."""
    return RESULTS / f"traces-t{threads}" / f"{workload.name}.json"


def load_tuned(workload: Workload, threads: int) -> Tuned:
    """Read the tuned schedule of a workload.

    Raises:
        NotTunedError: If there is none, or it is one of another program.
    """
    path = trace_path(workload, threads)
    if not path.exists():
        raise NotTunedError("no schedule is stored")
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["program"] != structural_hash(program(workload)):
        raise NotTunedError("the schedule that is stored is one of another program")
    return Tuned(Trace.from_json(stored["trace"]), stored["sketch"], stored["trials"])


def tune_missing(
    workloads: Iterable[Workload], threads: int, *, trials: int, seed: int, again: bool
) -> None:
    """Tune the workloads that have no schedule yet, or all of them `again`, and store the best."""
    for workload in workloads:
        if again or not _is_tuned(workload, threads):
            _tune(workload, threads, trials, seed)


def _is_tuned(workload: Workload, threads: int) -> bool:
    try:
        load_tuned(workload, threads)
    except NotTunedError:
        return False
    return True


def _tune(workload: Workload, threads: int, trials: int, seed: int) -> None:
    start = time.perf_counter()
    func = program(workload)
    try:
        result = lw.tune(func, target=f"cpu -num-cores={threads}", trials=trials, seed=seed)
    except lw.JobFailedError as error:
        print(f"{workload.name}: {error}", flush=True)
        return
    best, default = result.best, result.default
    secs = time.perf_counter() - start
    stored = {
        "workload": workload.name,
        "program": structural_hash(func),
        "target": result.target.name,
        "toolchain": toolchain(),
        "trials": len(result.trials),
        "failed": sum(trial.measurement.error is not None for trial in result.trials),
        "seed": seed,
        "secs": secs,
        "best_trial": best.number,
        "best_run_secs": best.run_secs,
        "default_run_secs": default.run_secs,
        "sketch": best.sketch,
        "trace": best.trace.to_json(),
    }
    path = trace_path(workload, threads)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")
    rate = workload.amount / best.run_secs / 1e9
    print(
        f"{workload.name}: {rate:.1f} {workload.unit} by trial {best.number} of"
        f" {len(result.trials)}, in {secs:.0f} s",
        flush=True,
    )
