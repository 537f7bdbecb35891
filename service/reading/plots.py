"""The data of a job's plots. Independent of HTTP."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from service.common.errors import Flaw, UnprocessableError
from service.reading import decisions as decided
from service.reading import summary as summed
from service.reading.columns import ColumnsCache
from service.reading.curve import curve, since
from service.reading.decisions import none_for_nan
from service.reading.model_origin import model_origin
from service.reading.queries import MAX_NUMBER, ColumnsQuery, SelectionQuery
from service.reading.selection import selected, standings
from service.reading.thinning import thin
from service.store.jobs.jobs import JobRow
from service.store.trials import sketches, trial_index
from service.store.trials.trial_columns import Ints, TrialColumns
from service.wire.readings import Columns, Curve, Decisions, Summary


class Plots:
    """Returns the data of the pages of jobs, from cached columns."""

    def __init__(self) -> None:
        self._cache = ColumnsCache()

    def curve(self, session: Session, job: JobRow, points: int) -> Curve:
        """Return the best time so far, in at most `points` points."""
        columns = self._cache.of(session, job)
        return curve(columns, _started_secs(job, columns), points)

    def columns(self, session: Session, job: JobRow, query: ColumnsQuery) -> Columns:
        """Return the trials whose numbers are in a range, both ends included, thinned."""
        every = self._cache.of(session, job)
        start = int(np.searchsorted(every.number, query.from_number))
        last = MAX_NUMBER if query.to_number is None else query.to_number
        end = int(np.searchsorted(every.number, last, side="right"))
        indices = start + thin(every[start:end], query.points)
        return _shown(job, every, indices, end - start)

    def selection(self, session: Session, job: JobRow, query: SelectionQuery) -> Columns:
        """Return a part of the trials that meet conditions, in order, and how many do."""
        every = self._cache.of(session, job)
        indices = selected(every, query)
        page_indices = indices[query.offset : query.offset + query.limit]
        return _shown(job, every, page_indices, len(indices))

    def summary(self, session: Session, job: JobRow) -> Summary:
        """Return the failures, the best times of sketches, and the time of a job by activity."""
        columns = self._cache.of(session, job)
        numbers = list(summed.first_failures(columns).values())
        messages = trial_index.messages(session, job.id, numbers)
        return summed.summary(columns, job, messages, model_origin(session, job))

    def decisions(self, session: Session, job: JobRow, sketch: str | None) -> Decisions:
        """Return the decisions of a sketch's trials; by default of the sketch with most trials.

        Raises:
            UnprocessableError: If no trial of the job is of that sketch.
        """
        columns = self._cache.of(session, job)
        sketch_names = decided.sketches_of(columns)
        name = sketch if sketch is not None else next(iter(sketch_names), None)
        if name is None:
            return decided.NONE
        if name not in sketch_names:
            names = ", ".join(map(repr, sketch_names)) or "none"
            detail = f"no trial of this job has sketch {name!r}; its sketches are {names}"
            raise UnprocessableError(detail, Flaw(detail, "query/sketch"))
        places, _ = decided.chosen(columns, name)
        numbers = trial_index.decisions(session, job.id, columns.number[places].tolist())
        labels = sketches.labels(session, job.id, name)
        return decided.decisions(columns, name, sketch_names, labels, numbers)


def _shown(job: JobRow, every: TrialColumns, places: Ints, num_trials: int) -> Columns:
    """Return the trials at `places`; `num_trials` counts those before thinning."""
    predicted_percentile, relative_speed = standings(every, places)
    return Columns(
        number=every.number[places].tolist(),
        secs=since(every, _started_secs(job, every))[places].tolist(),
        best_secs=none_for_nan(every.best_secs[places]),
        predicted=none_for_nan(every.predicted[places]),
        predicted_percentile=none_for_nan(predicted_percentile),
        relative_speed=none_for_nan(relative_speed),
        round=every.round[places].tolist(),
        sketch=every.sketch[places].tolist(),
        outcome=every.outcome[places].tolist(),
        sketches=every.sketches,
        outcomes=every.outcomes,
        num_trials=num_trials,
        is_thinned=len(places) < num_trials,
    )


def _started_secs(job: JobRow, columns: TrialColumns) -> float:
    """Return the start of the job; imported trials may be older."""
    first = float(columns.at.min()) if len(columns) else 0.0
    return first if job.started_at is None else min(first, job.started_at.timestamp())
