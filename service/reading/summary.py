"""The statistics of a job: failures, best times of sketches, time by activity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from service.reading.model_value import model_value
from service.store.jobs.jobs import JobRow
from service.store.trials.trial_columns import OK, TrialColumns
from service.wire.readings import FailureCount, ModelOrigin, SketchCount, Summary, TimeSpent


def first_failures(columns: TrialColumns) -> dict[str, int]:
    """Return the number of the first trial of each kind of failure."""
    kinds, indices = np.unique(columns.outcome, return_index=True)
    pairs = zip(kinds.tolist(), indices.tolist(), strict=True)
    first_numbers = {columns.outcomes[kind]: int(columns.number[index]) for kind, index in pairs}
    return {kind: number for kind, number in first_numbers.items() if kind != OK}


def summary(
    columns: TrialColumns, job: JobRow, messages: Mapping[int, str], model_origin: ModelOrigin
) -> Summary:
    """Return the statistics of a job.

    Args:
        messages: The error message of the first trial of each kind of failure, by its number.
    """
    return Summary(
        num_trials=len(columns),
        failures=_failures(columns, messages),
        sketches=_sketches(columns),
        time=_time(columns, job),
        model=model_value(columns),
        model_origin=model_origin,
    )


def _failures(columns: TrialColumns, messages: Mapping[int, str]) -> tuple[FailureCount, ...]:
    counts = np.bincount(columns.outcome, minlength=len(columns.outcomes))
    failures = [
        FailureCount(
            kind=kind,
            count=int(counts[columns.outcomes.index(kind)]),
            first_number=number,
            first_message=messages.get(number, ""),
        )
        for kind, number in first_failures(columns).items()
    ]
    return tuple(sorted(failures, key=lambda f: (-f.count, f.first_number)))


def _sketches(columns: TrialColumns) -> tuple[SketchCount, ...]:
    num = len(columns.sketches)
    right = columns.is_right
    best = np.full(num, np.inf)
    np.minimum.at(best, columns.sketch[right], columns.best_secs[right])
    counts = np.bincount(columns.sketch, minlength=num)
    num_right = np.bincount(columns.sketch[right], minlength=num)
    order = sorted(range(num), key=lambda i: (best[i], -counts[i]))
    return tuple(
        SketchCount(
            name=columns.sketches[i],
            count=int(counts[i]),
            num_right=int(num_right[i]),
            best_secs=float(best[i]) if np.isfinite(best[i]) else None,
        )
        for i in order
    )


def _time(columns: TrialColumns, job: JobRow) -> TimeSpent:
    finish = _finish_secs(columns, job)
    propose = None
    if job.active_secs > 0:
        propose = max(0.0, job.active_secs - _busy_secs(columns) - (finish or 0.0))
    wait = 0.0
    if job.started_at is not None:
        wait = max(0.0, (job.started_at - job.created_at).total_seconds())
    return TimeSpent(
        propose=propose,
        build=float(columns.build_secs.sum()),
        check=float(columns.check_secs.sum()),
        time=float(columns.time_secs.sum()),
        finish=finish,
        wait=wait,
    )


def _finish_secs(columns: TrialColumns, job: JobRow) -> float | None:
    """Return the seconds from the last trial to the end of a job that compared finalists."""
    if job.finished_at is None or job.best_interval is None or not len(columns):
        return None
    return max(0.0, job.finished_at.timestamp() - float(columns.at.max()))


def _busy_secs(columns: TrialColumns) -> float:
    """Return the seconds in which at least one trial was being measured."""
    if not len(columns):
        return 0.0
    start = columns.at - columns.build_secs - columns.check_secs - columns.time_secs
    order = np.argsort(start)
    start, end = start[order], columns.at[order]
    reached = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return float(np.maximum(end - np.maximum(start, reached), 0.0).sum())
