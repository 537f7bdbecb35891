"""Evolutionary search under a cost model, over tables.

A population of choice rows evolves for a few generations, scored by the model alone; the best that
were seen are measured, beside a few random ones that keep the model honest. Rows stay legal under
mutation and crossover because they hold indices of options (see `tuner.space.knob`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.cost_model.cost_model import CostModel, Samples, Scores
from tuner.search.random import draw_points, points_of
from tuner.search.strategy import Proposal
from tuner.space.design_space import DesignSpace, Point, distinct
from tuner.space.features import FEATURE_NAMES, FeatureMatrix
from tuner.space.knob import Ints
from tuner.trial import Trial

POPULATION = 768
GENERATIONS = 4
ELITE = 64
"""Measured candidates that found a population."""
RANDOM_SHARE = 0.125
MUTATION = 0.85
"""Chance that a child is mutated; half of the mutations redraw a knob, half step to a neighbour."""


@dataclass(frozen=True)
class _Scored:
    """Rows of one sketch with their scores."""

    rows: Ints
    scores: Scores


class EvolutionaryStrategy:
    """Proposes what the model likes best; see `SearchStrategy`."""

    def __init__(self, space: DesignSpace, seed: int, model: CostModel, task_key: str) -> None:
        self._space = space
        self._seed = seed
        self._model = model
        self._task_key = task_key
        self._round = 0
        self._secs: dict[Point, float] = {}

    def ask(self, num: int) -> list[Proposal]:
        """Propose the candidates of the best scores, and some random ones, best first."""
        rng = np.random.default_rng((self._seed, self._round))
        num_random = max(1, round(num * RANDOM_SHARE)) if self._model.is_trained else num // 2
        chosen = self._best(num - num_random, rng)
        known = {p for p, _ in chosen} | set(self._secs)
        drawn = draw_points(self._space, num - len(chosen), known, rng)
        scored = chosen + [(p, self._score(p)) for p in drawn]
        is_trained = self._model.is_trained
        return [
            Proposal(self._space.candidate(p), float(s) if is_trained else None) for p, s in scored
        ]

    def tell(self, trials: Sequence[Trial]) -> None:
        """End a round: remember what was measured, and teach it to the model."""
        self._round += 1
        by_sketch: dict[int, list[tuple[Point, float]]] = {}
        for trial in trials:
            point = self._space.point(trial.candidate)
            if point is not None:
                self._secs[point] = trial.best_secs
                by_sketch.setdefault(point.sketch, []).append((point, trial.best_secs))
        for sketch, pairs in by_sketch.items():
            rows = np.array([p.choices for p, _ in pairs], np.int64)
            secs = np.array([s for _, s in pairs])
            self._model.update(Samples(self._task_key, self._space.features(sketch, rows), secs))

    def learned(self) -> bytes | None:
        """Return the cost model as stored bytes, once it is trained."""
        return self._model.to_bytes() if self._model.is_trained else None

    def _best(self, num: int, rng: np.random.Generator) -> list[tuple[Point, float]]:
        """Return the unmeasured points of the best scores that evolution comes across."""
        found: list[tuple[float, Point]] = []
        for sketch in range(len(self._space.sketches)):
            seen = self._evolve(sketch, rng)
            order = np.argsort(-seen.scores, kind="stable")[: num + len(self._secs)]
            points = points_of(sketch, seen.rows[order])
            fresh = [
                (s, p)
                for s, p in zip(seen.scores[order].tolist(), points, strict=True)
                if p not in self._secs
            ]
            found += fresh[:num]
        found.sort(key=lambda pair: -pair[0])
        return [(p, s) for s, p in found[:num]]

    def _evolve(self, sketch: int, rng: np.random.Generator) -> _Scored:
        """Return every row that a few generations saw, with its score."""
        size = max(POPULATION // len(self._space.sketches), 64)
        elite = self._elite(sketch)[: size // 4]
        rows = distinct(np.vstack([elite, self._space.draw(sketch, size - len(elite), rng)]))
        seen = _Scored(rows, self._scores(sketch, rows))
        if not len(rows):
            return seen
        for _ in range(GENERATIONS if self._model.is_trained else 0):
            parents = _select(seen, size, rng)
            children = self._space.keep(sketch, self._mutated(sketch, _crossed(parents, rng), rng))
            every = distinct(np.vstack([seen.rows, children]))
            fresh = every[len(seen.rows) :]
            scores = np.concatenate([seen.scores, self._scores(sketch, fresh)])
            seen = _Scored(every, scores)
        return seen

    def _elite(self, sketch: int) -> Ints:
        own = [(s, p.choices) for p, s in self._secs.items() if p.sketch == sketch]
        own = sorted((pair for pair in own if np.isfinite(pair[0])), key=lambda pair: pair[0])
        width = len(self._space.sketches[sketch].knobs)
        best = own[:ELITE]
        return np.array([c for _, c in best], np.int64).reshape(len(best), width)

    def _mutated(self, sketch: int, rows: Ints, rng: np.random.Generator) -> Ints:
        """Change one knob in most rows."""
        knobs = self._space.sketches[sketch].knobs
        rows = rows.copy()
        which = rng.integers(max(len(knobs), 1), size=len(rows))
        dice = rng.random(len(rows))
        for index, knob in enumerate(knobs):
            steps = np.flatnonzero((which == index) & (dice < MUTATION / 2))
            rows[steps, index] = knob.neighbours(rows[steps, index], rng)
            jumps = np.flatnonzero((which == index) & (dice >= MUTATION / 2) & (dice < MUTATION))
            rows[jumps, index] = rng.integers(len(knob.options), size=len(jumps))
        return rows

    def _scores(self, sketch: int, rows: Ints) -> Scores:
        matrix = self._space.features(sketch, rows)
        return self._model.predict(matrix) if self._model.is_trained else _estimates(matrix)

    def _score(self, point: Point) -> float:
        return float(self._scores(point.sketch, np.array([point.choices], np.int64))[0])


def _estimates(matrix: FeatureMatrix) -> Scores:
    """Score by the roofline estimate, which is all there is before the first measurement."""
    estimated: Scores = -matrix[:, FEATURE_NAMES.index("cycles.total")].astype(np.float64)
    return estimated


def _select(seen: _Scored, num: int, rng: np.random.Generator) -> Ints:
    """Draw parents; the chance falls geometrically with the rank."""
    order = np.argsort(-seen.scores, kind="stable")
    scale = max(len(order) / 8, 1.0)
    ranks = np.minimum(rng.exponential(scale, num).astype(np.int64), len(order) - 1)
    chosen: Ints = seen.rows[order[ranks]]
    return chosen


def _crossed(parents: Ints, rng: np.random.Generator) -> Ints:
    """Take each knob from one of two parents, with one half of the children left as they are."""
    mates = parents[rng.permutation(len(parents))]
    takes = rng.random(parents.shape) < 0.5
    takes &= rng.random((len(parents), 1)) < 0.5
    return np.where(takes, mates, parents)
