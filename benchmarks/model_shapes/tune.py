"""Tune a sample of the table with a few trials each, and check each winner on other inputs.

    python -m benchmarks.model_shapes.tune --shapes 500 --trials 8 --seed 0

Each trial is compared with the oracle before it is timed. The winner is built again and compared on
inputs of another seed; very large results are compared by rows and signed sums. The result of a
shape is a line of JSON in `benchmarks/results/model_shapes-SEED-TRIALS.jsonl`. A command with the
same seed and number of trials skips the shapes that the file holds.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.model_shapes.shapes import model_shapes
from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.compare_case import compare_case
from compiler.ir.interpret.error_growth import check_case
from compiler.ir.interpret.spot_check.signed_sums import SumMismatchError
from compiler.ir.interpret.tolerance import Mismatch
from loopwright.client.progress import format_secs
from service.coordinator.measurer import WorkerMeasurer
from tuner.loop.tune import tune
from tuner.task import Task
from tuner.trial import fastest
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureLimits

TARGET = "cpu -num-cores=1"
LIMITS = MeasureLimits(run_timeout_secs=5.0)
"""The default schedules of the largest layers take far longer, and need not be timed. Chosen."""
SEED_OF_INPUTS = 1
"""The seed of the inputs that a winner is checked on. Those of trials have seed 0."""
UNWRITTEN = 77
"""What outputs hold before: elements that the kernel does not write are seen."""


class ShapeResult(BaseModel):
    """The result of tuning one shape.

    Attributes:
        sketch: The sketch of the winner; None if no trial is correct.
        default_secs: The shortest sample of the default schedule; None if it failed.
        best_secs: The shortest sample of the winner.
        failures: Each failed trial, with its sketch and error.
        mismatch: How the winner differs from the oracle; None if it is correct.
    """

    spec: str
    sketch: str | None = None
    default_secs: float | None = None
    best_secs: float | None = None
    failures: list[str] = []
    mismatch: str | None = None

    @property
    def is_correct(self) -> bool:
        """Return whether there is a winner, and its results are correct."""
        return self.sketch is not None and self.mismatch is None

    def __str__(self) -> str:
        """Return a line of text."""
        if self.best_secs is None:
            outcome = "no correct trial"
        elif self.default_secs is None:
            outcome = f"{format_secs(self.best_secs)}, default failed"
        else:
            ratio = self.default_secs / self.best_secs
            outcome = f"{format_secs(self.best_secs)}, {ratio:.1f}x the default"
        wrong = "" if self.mismatch is None else f"; WRONG: {self.mismatch}"
        return f"{self.spec:56} {self.sketch}: {outcome}{wrong}"


def tune_shape(spec: str, num_trials: int, seed: int, measurer: WorkerMeasurer) -> ShapeResult:
    """Tune a shape without earlier measurements, and check the winner."""
    task = Task(lw.ops.from_spec(spec), lw.Target(TARGET))
    search = tune(task, measurer=measurer, max_trials=num_trials, seed=seed)
    result = ShapeResult(spec=spec)
    for trial in search.trials:
        error = trial.measurement.error
        if error is None and trial.number == 0:
            result.default_secs = trial.best_secs
        elif error is not None:
            message = f"trial {trial.number}, {trial.candidate.sketch}: {error}"
            result.failures.append(f"{message}: {trial.measurement.message}")
    winner = fastest(search.trials)
    if winner is not None:
        result.sketch, result.best_secs = winner.candidate.sketch, winner.best_secs
        result.mismatch = mismatch_of(task.func, winner.candidate.trace.apply_to(task.func).func)
    return result


def mismatch_of(func: PrimFunc, scheduled: PrimFunc) -> str | None:
    """Return how a schedule's results differ from the oracle's for a program; None if correct."""
    case = check_case(func, SEED_OF_INPUTS)
    arrays = {
        buffer.name: case.inputs[buffer.name].copy()
        if buffer.name in case.inputs
        else np.full(static_shape(buffer), UNWRITTEN, buffer.dtype)
        for buffer in func.buffers
    }
    kernel = build(scheduled, lw.Target(TARGET))
    kernel(*(arrays[buffer.name] for buffer in func.buffers))
    kernel.close()
    try:
        compare_case(func, arrays, case)
    except (Mismatch, SumMismatchError) as error:
        return str(error)
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune the shapes that the file lacks; return an exit code of 1 if a winner is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.model_shapes.tune",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shapes", type=_positive, default=500, help="how many, chosen at random")
    parser.add_argument("--trials", type=_positive, default=8, help="trials a shape")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and of the searches")
    args = parser.parse_args(arguments)
    shapes = list(model_shapes())
    random.Random(args.seed).shuffle(shapes)
    shapes = shapes[: args.shapes]
    path = RESULTS / f"model_shapes-{args.seed}-{args.trials}.jsonl"
    by_spec = read_results(path)
    with ChildRunner(LIMITS) as runner:
        measurer = WorkerMeasurer(runner)
        for number, shape in enumerate(shapes, start=1):
            if shape.spec in by_spec:
                continue
            result = tune_shape(shape.spec, args.trials, args.seed, measurer)
            by_spec[shape.spec] = result
            append_result(path, result)
            failures = (f"{'':10}{failure}\n" for failure in result.failures)
            sys.stdout.write(f"{number:4}/{len(shapes)} {result}\n{''.join(failures)}")
            sys.stdout.flush()
    results = [by_spec[shape.spec] for shape in shapes]
    sys.stdout.write(summary(results, args.trials))
    return 0 if all(result.is_correct for result in results) else 1


def _positive(text: str) -> int:
    """Read a positive number of the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}: expected at least 1")
    return number


def read_results(path: Path) -> dict[str, ShapeResult]:
    """Return the results of a file by shape; none if it does not exist.

    A last line that a killed run left unfinished is removed: its shape is tuned again.
    """
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    results = [ShapeResult.model_validate_json(line) for line in whole.splitlines()]
    return {result.spec: result for result in results}


def append_result(path: Path, result: ShapeResult) -> None:
    """Add a line to a file of results."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(result.model_dump_json() + "\n")


def summary(results: Sequence[ShapeResult], num_trials: int) -> str:
    """Return the totals: correct winners, failed trials by error, and the speed-up."""
    kinds = Counter(failure.split(": ")[1] for result in results for failure in result.failures)
    ratios = [
        r.default_secs / r.best_secs
        for r in results
        if r.default_secs is not None and r.best_secs is not None
    ]
    speedup = f"{np.exp(np.log(ratios).mean()):.1f}x in the geometric mean" if ratios else "unknown"
    failures = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "none"
    lines = [
        f"{len(results)} shapes, up to {num_trials} trials each",
        f"correct winners: {sum(result.is_correct for result in results)}",
        f"wrong winners: {sum(result.mismatch is not None for result in results)}",
        f"failed trials: {failures}",
        f"best against the default schedule: {speedup}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
