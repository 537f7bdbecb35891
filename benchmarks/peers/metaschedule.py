"""Tune one workload with TVM's MetaSchedule, in TVM's own environment, and store the best schedule.

MetaSchedule runs with its own defaults: 64 trials an iteration, an XGBoost cost model, evolutionary
search. It builds on all cores; for one thread it runs on one.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.peers import tvm_peer
from benchmarks.peers.library import FIRST_SEED, metaschedule_path
from benchmarks.workloads.table import BY_NAME
from benchmarks.workloads.workload import BenchmarkWorkload


def main() -> None:
    """Tune the named workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=BY_NAME)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, required=True, help="where one thread runs")
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    args = parser.parse_args()
    workload = BY_NAME[args.workload]
    start = time.perf_counter()
    module, best_secs, failed = tune(workload, args.trials, args.threads, args.core, args.seed)
    stored = {
        "workload": workload.name,
        "trials": args.trials,
        "failed": failed,
        "threads": args.threads,
        "seed": args.seed,
        "secs": time.perf_counter() - start,
        "best_run_secs": best_secs,
        "versions": tvm_peer.start(args.threads),
        "module": module,
    }
    path = metaschedule_path(workload.name, args.threads, args.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")


def tune(
    workload: BenchmarkWorkload, trials: int, threads: int, core: int, seed: int
) -> tuple[str, float, int]:
    """Return the best module as JSON text, the seconds of a run, and the number of failed trials.

    Raises:
        RuntimeError: If no trial ran.
    """
    import tvm  # noqa: PLC0415 - slow to load
    import tvm.s_tir.meta_schedule as ms  # noqa: PLC0415 - slow to load
    import tvm.s_tir.tensor_intrin  # noqa: PLC0415 - the search asks for it
    from tvm.ir.utils import derived_object  # noqa: PLC0415

    best: list[tuple[float, Any]] = []
    failed = 0

    def pin() -> None:
        import os  # noqa: PLC0415 - the runner sends this function to its process without globals

        if threads == 1:
            os.sched_setaffinity(0, {core})

    @derived_object
    class KeepBest(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
        """Keeps the fastest candidate."""

        def apply(self, _: Any, __: Any, candidates: Any, builds: Any, runs: Any) -> None:
            """Record the candidates of a round."""
            nonlocal failed
            for candidate, built, ran in zip(candidates, builds, runs, strict=True):
                if built.error_msg or ran.error_msg:
                    failed += 1
                    continue
                secs = float(np.mean([float(sample) for sample in ran.run_secs]))
                if not best or secs < best[0][0]:
                    best[:] = [(secs, candidate.sch.mod)]

    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        ms.tune_tir(
            tvm_peer.program(workload),
            target=tvm_peer.target(threads),
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=min(64, trials),
            builder=ms.builder.LocalBuilder(max_workers=cores, f_build=tvm_peer.build),
            runner=ms.runner.LocalRunner(initializer=pin),
            num_tuning_cores=cores,
            seed=seed,
            measure_callbacks=[*ms.measure_callback.MeasureCallback.create("default"), KeepBest()],
        )
    if not best:
        raise RuntimeError(f"none of {trials} trials of {workload.name} ran")
    secs, module = best[0]
    return tvm.ir.save_json(module), secs, failed


if __name__ == "__main__":
    main()
