"""Measure how often the finish declares a winner: between equal schedules, and at 10% difference.

Equal schedules are two names of one schedule. For a true difference of 10%, a schedule runs 10
times a call, and the same schedule runs 11 times. Both use real kernels in child processes, under
the current load of the machine. 200 runs of each take some minutes. `python -m
benchmarks.tuner.finish --runs 20` takes a tenth.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence

from benchmarks.report import Metric, report
from compiler.ir.text.printer import script
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.finish.finish import finish
from tuner.search.make import make_strategy
from tuner.task import Task
from tuner.trial import MeasuredTrial
from workers.child.runner import ChildRunner
from workers.measure.compare import CompareRequest

KERNELS = (
    "matmul:64,64,64:float32",
    "matmul:128,128,128:float32",
    "softmax:64,1024:float32",
    "transpose:256,256:float32",
)
NUM_RUNS = 200
_TIMES = 10


class Repeated:
    """Compares one schedule with itself; candidate i runs `times[i]` times a call."""

    def __init__(self, runner: ChildRunner, times: Sequence[int]) -> None:
        self._runner = runner
        self._times = times

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds; see `tuner.measurer.comparer.Comparer`."""
        traces = tuple(
            json.dumps({"times": self._times[int(c.sketch)], "trace": c.trace.to_json()})
            for c in candidates
        )
        request = CompareRequest(script(task.func), task.target.name, traces, num_rounds, seed)
        yield from self._runner.compare(request)


def tasks() -> list[tuple[Task, Candidate]]:
    """Return each kernel with a schedule other than the default."""
    target = Target("cpu -num-cores=1")
    found = [Task(from_spec(spec), target) for spec in KERNELS]
    return [(task, make_strategy("random", task, 0).ask(1)[0].candidate) for task in found]


def experiment(num_runs: int, times: Sequence[int], first_seed: int = 0) -> list[dict[str, object]]:
    """Return the winner, the rounds and the seconds of each run."""
    runs = []
    kernels = tasks()
    with ChildRunner(child_module="benchmarks.tuner.finish_child") as runner:
        for seed in range(first_seed, first_seed + num_runs):
            task, candidate = kernels[seed % len(kernels)]
            trials = [
                MeasuredTrial(n, Candidate(str(n), candidate.trace), Measurement((1.0,)))
                for n in range(len(times))
            ]
            start = time.perf_counter()
            found = finish(task, trials, Repeated(runner, times), seed=seed)
            assert found is not None
            assert found.kept is not None, [f.rounds[-1] for f in found.finalists]
            runs.append(
                {
                    "seed": seed,
                    "kernel": KERNELS[seed % len(kernels)],
                    "winner": None if found.is_tied else found.kept.trial.number,
                    "rounds": max(len(f.rounds) for f in found.finalists),
                    "secs": time.perf_counter() - start,
                    "samples": [[m.best_secs for m in f.rounds] for f in found.finalists],
                }
            )
    return runs


def main(num_runs: int = NUM_RUNS) -> None:
    """Run both experiments."""
    equals = experiment(num_runs, (_TIMES, _TIMES))
    slower = experiment(num_runs, (_TIMES + 1, _TIMES))
    share = 100 / num_runs
    declared = share * sum(run["winner"] is not None for run in equals)
    found = share * sum(run["winner"] == 1 for run in slower)
    wrong = share * sum(run["winner"] == 0 for run in slower)
    report(
        "finish",
        [
            Metric("equals: a winner is declared", "% of runs", (declared,), goal="<= 5"),
            Metric("10% apart: the faster is declared", "% of runs", (found,), goal=">= 95"),
            Metric("10% apart: the slower is declared", "% of runs", (wrong,)),
            Metric("equals: rounds", "rounds", tuple(float(str(r["rounds"])) for r in equals)),
            Metric("10% apart: rounds", "rounds", tuple(float(str(r["rounds"])) for r in slower)),
            Metric("equals: time", "s", tuple(float(str(r["secs"])) for r in equals)),
            Metric("10% apart: time", "s", tuple(float(str(r["secs"])) for r in slower)),
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=NUM_RUNS, help=f"default {NUM_RUNS}")
    main(parser.parse_args().runs)
