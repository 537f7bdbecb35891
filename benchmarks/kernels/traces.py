"""Stored tuned schedules: traces, which later versions of the compiler can replay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.peers.library import NotTunedError
from benchmarks.workloads.workload import BenchmarkWorkload
from compiler.driver import toolchain
from compiler.ir.analysis.structural import structural_hash
from compiler.ops.tensors import epilogue
from compiler.schedule.trace.trace import Trace
from loopwright import te

ELEMENTWISE: dict[str, Callable[[te.Value, te.Value], te.Value]] = {
    "add_relu": lambda a, b: te.max(a + b, 0),
    "swiglu": lambda gate, up: epilogue.silu(gate) * up,
}
"""What the programs compute that are no operators of the library."""


@dataclass(frozen=True)
class Tuned:
    """The best schedule of a search, and its number of trials."""

    trace: Trace
    sketch: str
    trials: int


def program(workload: BenchmarkWorkload) -> lw.PrimFunc:
    """Return a workload as a program."""
    if workload.spec:
        return lw.ops.from_spec(workload.spec)
    a, b = (te.placeholder(workload.out, "float32", name=name) for name in "AB")
    combine = ELEMENTWISE[workload.op]
    c = te.compute(workload.out, lambda *index: combine(a[index], b[index]), name="C")
    return te.create_prim_func([a, b, c], name=workload.op)


def trace_path(workload: BenchmarkWorkload, threads: int, backend: str = "tuned") -> Path:
    """Return the file that holds the tuned schedule of a workload.

    The backend "tuned" is that of the table; "tuned@3" is the result of seed 3 in a race, and
    "tuned@3-1s" that of a search of one second.
    """
    _, _, heat = backend.partition("@")
    folder = RESULTS / (f"race-t{threads}" if heat else f"traces-t{threads}")
    return folder / f"{workload.name}{heat and '.' + heat}.json"


def load_tuned(workload: BenchmarkWorkload, threads: int, backend: str = "tuned") -> Tuned:
    """Read the tuned schedule of a workload.

    Raises:
        NotTunedError: If none is stored, or it is for another program.
    """
    path = trace_path(workload, threads, backend)
    if not path.exists():
        raise NotTunedError("no schedule is stored")
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["program"] != structural_hash(program(workload)):
        raise NotTunedError("the stored schedule is for another program")
    return Tuned(Trace.from_json(stored["trace"]), stored["sketch"], stored["trials"])


def tune_missing(
    workloads: Iterable[BenchmarkWorkload], threads: int, *, trials: int, seed: int, again: bool
) -> None:
    """Tune the workloads without a schedule, or all if `again`, and store the best."""
    for workload in workloads:
        if again or not _is_tuned(workload, threads):
            tune_and_store(workload, threads, trials, seed)


def _is_tuned(workload: BenchmarkWorkload, threads: int) -> bool:
    try:
        load_tuned(workload, threads)
    except NotTunedError:
        return False
    return True


def tune_and_store(
    workload: BenchmarkWorkload,
    threads: int,
    trials: int | None,
    seed: int,
    backend: str = "tuned",
    *,
    max_secs: float | None = None,
) -> None:
    """Tune a workload; store the best schedule and the facts of its search.

    Args:
        workload: The workload.
        threads: The number of threads of its kernels.
        trials: The limit on trials, if one.
        seed: The seed of the search.
        backend: The name of the result.
        max_secs: The limit on time, if one.
    """
    func = program(workload)
    tune = lw.tune  # imported before the clock starts
    start = time.perf_counter()
    curve: list[tuple[float, float]] = []

    def see(trial: lw.Trial) -> None:
        if trial.measurement.ok and (not curve or trial.run_secs < curve[-1][1]):
            curve.append((time.perf_counter() - start, trial.run_secs))

    target = f"cpu -num-cores={threads}"
    try:
        result = tune(
            func, target=target, max_trials=trials, max_secs=max_secs, seed=seed, on_trial=see
        )
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
        "curve": curve,
        "best_trial": best.number,
        "best_run_secs": best.run_secs,
        "default_run_secs": None if default is None else default.run_secs,
        "sketch": best.sketch,
        "trace": best.trace.to_json(),
    }
    path = trace_path(workload, threads, backend)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")
    rate = workload.amount / best.run_secs / 1e9
    print(
        f"{workload.name}: {rate:.1f} {workload.unit} by trial {best.number} of"
        f" {len(result.trials)}, in {secs:.0f} s",
        flush=True,
    )
