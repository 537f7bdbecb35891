"""Train a cost model on the measurements of many jobs.

Measurements are stored as traces; the current design space computes their features. A measurement
whose sketch no longer exists is skipped, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from compiler.ir.analysis.structural import operator_hash
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import boost, without_statistics
from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.cost_model.quality import Quality, held_out, mean_quality
from tuner.space.generate import design_space
from tuner.task import Task

MAX_FOLDS = 3
"""Groups of held-out tasks. Each costs a training of ten seconds with the recorded sets. Chosen:
the fewest whose models know most of the tasks.
"""


@dataclass(frozen=True)
class Measured:
    """A measured candidate: its time in seconds, infinite for a failure, and its weight."""

    candidate: Candidate
    run_secs: float
    weight: float = 1.0


@dataclass(frozen=True)
class MeasuredTask:
    """A task with its measurements from all jobs."""

    task: Task
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Trained:
    """A model with its provenance and quality.

    Attributes:
        model: As `XGBoostModel(base=...)` reads it.
        num_tasks, num_samples: The size of its training data.
        num_skipped: Measurements of sketches that no longer exist.
        fingerprint: SHA-256 of tasks, features and times in hexadecimal: the training data.
        by_task: The quality on each task, by its key, of models trained without that task;
            None if there are too few samples to judge.
        by_split: The mean quality of models trained without a task (`shape`: others of its operator
            are known), without its operator (`operator`), and without its kind of target (`cpu`).
            Those that could not be judged are missing.
    """

    model: bytes
    num_tasks: int
    num_samples: int
    num_skipped: int
    fingerprint: str
    by_task: dict[str, Quality | None]
    by_split: Mapping[str, Quality]

    @property
    def quality(self) -> Quality | None:
        """Return the mean over the tasks that could be judged."""
        return mean_quality(q for q in self.by_task.values() if q is not None)


def _ignore(_: str) -> None:
    pass


def train(
    tasks: Iterable[MeasuredTask],
    *,
    seed: int = 0,
    extra_samples: Sequence[Samples] = (),
    kind: str = "cpu",
    label: str = "",
    on_progress: Callable[[str], None] = _ignore,
) -> Trained:
    """Train a model on tasks, and judge it on tasks that were held out.

    The same tasks in the same order with the same seed give the same model.

    Args:
        extra_samples: Samples of other tasks: every model is trained on them, none is judged.
        kind: The kind of the targets of all tasks.
        label: The kind of target that the model is for; empty if all tasks are of one.
        on_progress: Called with a text for each step.

    Raises:
        CostModelError: If there is nothing to train on.
    """
    samples: list[Samples] = []
    num_skipped = 0
    for number, measured_task in enumerate(tasks, start=1):
        on_progress(
            f"task {number}: {measured_task.task.func.name}, "
            f"{len(measured_task.measured)} measurements"
        )
        task_samples, skipped = samples_of(measured_task)
        num_skipped += skipped
        if len(task_samples.run_secs):
            samples.append(task_samples)
    if not samples:
        raise CostModelError(
            "no training data for a cost model: no measured schedule is in the design spaces of "
            f"this version ({num_skipped} of others); tune something first"
        )
    on_progress(f"evaluating on held-out tasks, {min(MAX_FOLDS, len(samples))} groups")
    folds = [number % MAX_FOLDS for number in range(len(samples))]
    judged = held_out(samples, folds, seed=seed, extra_samples=extra_samples)
    on_progress("evaluating on held-out operators and targets")
    by_split = {
        "shape": mean_quality(q for q in judged if q is not None),
        "operator": _by_operator(samples, extra_samples, seed),
        "cpu": _by_label(samples, extra_samples, label, seed),
    }
    on_progress(
        f"training on {sum(len(s.run_secs) for s in [*samples, *extra_samples])} measurements"
    )
    members = without_statistics(boost([*samples, *extra_samples], seed))
    return Trained(
        model=stored_model.encode(members, kind),
        num_tasks=len(samples),
        num_samples=sum(len(s.run_secs) for s in samples),
        num_skipped=num_skipped,
        fingerprint=_fingerprint([*samples, *extra_samples]),
        by_task={s.task_key: q for s, q in zip(samples, judged, strict=True)},
        by_split={name: q for name, q in by_split.items() if q is not None},
    )


def _by_operator(
    samples: Sequence[Samples], extra_samples: Sequence[Samples], seed: int
) -> Quality | None:
    """Return the mean quality of models that were trained without the operator of the task."""
    operators = list(dict.fromkeys(s.operator for s in samples))
    fold_of = {operator: number % MAX_FOLDS for number, operator in enumerate(operators)}
    judged = held_out(
        samples,
        [fold_of[s.operator] for s in samples],
        seed=seed,
        extra_samples=extra_samples,
        extra_groups=[fold_of.get(s.operator) for s in extra_samples],
    )
    return mean_quality(q for q in judged if q is not None)


def _by_label(
    samples: Sequence[Samples], extra_samples: Sequence[Samples], label: str, seed: int
) -> Quality | None:
    """Return the mean quality on tasks of a label of a model without its measurements."""
    judged_samples = [s for s in samples if s.label == label]
    others = [s for s in [*samples, *extra_samples] if s.label != label]
    judged = held_out(
        judged_samples, [label] * len(judged_samples), seed=seed, extra_samples=others
    )
    return mean_quality(q for q in judged if q is not None)


def samples_of(measured: MeasuredTask) -> tuple[Samples, int]:
    """Return the samples of a task, and the number of measurements outside its design space.

    The default schedule has no decisions, so it is not a sample, and is not counted either.
    """
    space = design_space(measured.task)
    by_sketch: dict[int, list[tuple[tuple[int, ...], Measured]]] = {}
    num_skipped = 0
    for measurement in measured.measured:
        if measurement.candidate.sketch == DEFAULT_SKETCH:
            continue
        point = space.point(measurement.candidate)
        if point is None:
            num_skipped += 1
        else:
            by_sketch.setdefault(point.sketch, []).append((point.choices, measurement))
    rows = [
        space.features(sketch, np.array([choices for choices, _ in pairs], np.int64))
        for sketch, pairs in by_sketch.items()
    ]
    sampled = [measurement for pairs in by_sketch.values() for _, measurement in pairs]
    matrix = np.vstack(rows) if rows else np.empty((0, 0), np.float32)
    secs = np.array([measurement.run_secs for measurement in sampled])
    weights = np.array([measurement.weight for measurement in sampled])
    operator, label = operator_hash(measured.task.func), measured.task.target.timing_label
    return Samples(measured.task.key, matrix, secs, weights, operator, label), num_skipped


def _fingerprint(samples: Sequence[Samples]) -> str:
    digest = sha256()
    for task_samples in samples:
        digest.update(task_samples.task_key.encode())
        for column in (task_samples.features, task_samples.run_secs):
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
