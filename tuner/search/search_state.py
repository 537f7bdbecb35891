"""The state of a search: its proposals, its measurements, and the scores of its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from compiler.runtime.measurement import ErrorKind
from tuner.candidate import Candidate
from tuner.cost_model.cost_model import CostModel, Outlook, Samples, Scores
from tuner.space.design_space import Point, SketchSpace
from tuner.space.search_space import FeatureMatrix
from tuner.space.tables.knob import Ints
from tuner.trial import MeasuredTrial


class SearchState:
    """The memory of one search.

    Attributes:
        secs: The time of each measured point in seconds, in the order of recording; infinite for a
            failure.
        seen: The points that were proposed or measured; they are not proposed again.
    """

    def __init__(self, space: SketchSpace, model: CostModel | None, task_key: str) -> None:
        self.space = space
        self.secs: dict[Point, float] = {}
        self.seen: set[Point] = set()
        self._model = model
        self._task_key = task_key
        # Of what is not measured yet: points by their candidates' keys, and rows of features.
        self._proposed: dict[str, Point] = {}
        self._rows: dict[Point, FeatureMatrix] = {}

    @property
    def has_model(self) -> bool:
        """Return whether there is a trained model."""
        return self._model is not None and self._model.is_trained

    @property
    def trust(self) -> float:
        """Return how far measurements confirm the model that the search started from, 0 to 1."""
        return 1.0 if self._model is None else self._model.trust

    @property
    def job_share(self) -> float:
        """Return the share of the measurements in what the model expects, 0 to 1."""
        return 0.0 if self._model is None else self._model.job_share

    @property
    def compares_sketches(self) -> bool:
        """Return whether `expected` compares candidates of different sketches."""
        is_estimated = self._model is not None and self.space.search_space.estimates_secs
        return self.has_model or is_estimated

    def candidates(self, points: Sequence[Point]) -> list[Candidate]:
        """Return the candidates of canonical points, which `record` need not search for."""
        candidates = list(map(self.space.candidate, points))
        keys = [candidate.key for candidate in candidates]
        self._proposed.update(zip(keys, points, strict=True))
        return candidates

    def mark_proposed(self, candidates: Sequence[Candidate]) -> None:
        """Note that candidates were proposed, by this search in another process."""
        for candidate, point in zip(candidates, self.space.points(candidates), strict=True):
            if point is not None:
                self._proposed[candidate.key] = point
                self.seen.add(point)

    def record(self, trials: Sequence[MeasuredTrial]) -> None:
        """Record measurements, and train the model on them."""
        secs: dict[Point, float] = {}
        for trial in trials:
            point = self._proposed.pop(trial.candidate.key, None)
            point = point or self.space.point(trial.candidate)
            if point is None:
                continue
            self.seen.add(point)
            # The loss of a worker is not a property of the candidate.
            if trial.measurement.error is not ErrorKind.WORKER_LOST:
                secs[point] = trial.best_secs
        self.secs |= secs
        if self._model is not None and secs:
            matrix = self._known_features(list(secs))
            self._model.update(Samples(self._task_key, matrix, np.array(list(secs.values()))))

    def proposed_features(self, points: Sequence[Point]) -> FeatureMatrix:
        """Return the features of points, and keep them until these are recorded."""
        matrix = self.features(points)
        self._rows.update(zip(points, matrix, strict=True))
        return matrix

    def _known_features(self, points: Sequence[Point]) -> FeatureMatrix:
        """Return the features of measured points, which most often were kept when proposed."""
        unknown = [point for point in points if point not in self._rows]
        self.proposed_features(unknown)
        return np.stack([self._rows.pop(point) for point in points])

    def features(self, points: Sequence[Point]) -> FeatureMatrix:
        """Return the features of points of any sketches, in their order."""
        matrix = np.empty((len(points), self.space.search_space.num_features), np.float32)
        for sketch in {p.sketch for p in points}:
            indices = [index for index, p in enumerate(points) if p.sketch == sketch]
            width = len(self.space.sketches[sketch].knobs)
            rows = rows_of((points[index] for index in indices), width)
            matrix[indices] = self.space.features(sketch, rows)
        return matrix

    def ranked(self, sketch: int | None = None) -> list[Point]:
        """Return the correct points, fastest first."""
        correct = [
            (secs, index, point)
            for index, (point, secs) in enumerate(self.secs.items())
            if np.isfinite(secs) and sketch in (None, point.sketch)
        ]
        return [point for _, _, point in sorted(correct, key=lambda entry: entry[:2])]

    def start_scores(self, matrix: FeatureMatrix) -> Scores:
        """Return what the model started from says of each candidate; see `CostModel`."""
        return (
            np.empty((len(matrix), 0)) if self._model is None else self._model.start_scores(matrix)
        )

    def outlook(self, matrix: FeatureMatrix, start: Scores | None = None) -> Outlook:
        """Return what is expected of each candidate by its features.

        Without a trained model the score is the estimate of the search space; see
        `compares_sketches`.

        Args:
            start: What `start_scores` returned for these candidates, if it was kept.
        """
        if self._model is not None and self._model.is_trained:
            return self._model.outlook(matrix, start)
        return Outlook(self.estimates(matrix), np.zeros(len(matrix)))

    def expected(self, matrix: FeatureMatrix) -> Scores:
        """Return the scores of `outlook`."""
        return self.outlook(matrix).scores

    def estimates(self, matrix: FeatureMatrix) -> Scores:
        """Return the estimate of the search space for each candidate: higher is faster."""
        estimates: Scores = -matrix[:, self.space.search_space.estimate_column].astype(np.float64)
        return estimates

    def learned(self) -> bytes | None:
        """Return what the model learned of the job, as stored bytes; None if it learned nothing."""
        return None if self._model is None else self._model.to_bytes()


def points_of(sketch: int, rows: Ints) -> list[Point]:
    """Return rows of choices of a sketch as points."""
    return [Point(sketch, tuple(row)) for row in rows.tolist()]


def rows_of(points: Iterable[Point], width: int) -> Ints:
    """Return points of one sketch, which has `width` knobs, as rows of choices."""
    rows = [p.choices for p in points]
    return np.array(rows, np.int64).reshape(len(rows), width)
