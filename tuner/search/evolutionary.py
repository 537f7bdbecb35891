"""Evolutionary search under a cost model, over tables.

A population of choice rows evolves for a few generations, scored by the model alone; the best that
were seen are measured, beside a few random ones that keep the model honest. Rows stay legal under
mutation and crossover because they hold indices of options (see `tuner.space.knob`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.cost_model.cost_model import Scores
from tuner.search.known import Known, points_of, rows_of
from tuner.search.random import draw_points
from tuner.space.design_space import Point, distinct
from tuner.space.knob import Ints
from tuner.space.sketch import Sketch

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


class Evolutionary:
    """Proposes what the model likes best; see `Proposer`."""

    def propose(self, num: int, known: Known, rng: np.random.Generator) -> list[Point]:
        """Return the points of the best scores, and some random ones, best first."""
        num_random = max(1, round(num * RANDOM_SHARE)) if known.has_model else num // 2
        chosen = _best(num - num_random, known, rng)
        return chosen + draw_points(known.space, num - len(chosen), known.seen | set(chosen), rng)


def _best(num: int, known: Known, rng: np.random.Generator) -> list[Point]:
    """Return the new points of the best scores that evolution comes across."""
    found: list[tuple[float, Point]] = []
    for sketch in range(len(known.space.sketches)):
        evolved = _evolve(sketch, known, rng)
        order = np.argsort(-evolved.scores, kind="stable")[: num + len(known.seen)]
        points = points_of(sketch, evolved.rows[order])
        fresh = [
            (s, p)
            for s, p in zip(evolved.scores[order].tolist(), points, strict=True)
            if p not in known.seen
        ]
        found += fresh[:num]
    found.sort(key=lambda pair: -pair[0])
    return [p for _, p in found[:num]]


def _evolve(sketch: int, known: Known, rng: np.random.Generator) -> _Scored:
    """Return every row that a few generations saw, with its score."""
    space = known.space
    size = max(POPULATION // len(space.sketches), 64)
    rows = space.draw(sketch, size, rng)
    if elite := known.ranked(sketch)[: min(ELITE, size // 4)]:
        rows = np.vstack([rows_of(elite), rows[: size - len(elite)]])
    seen = _Scored(distinct(rows), known.scores(sketch, distinct(rows)))
    if not len(rows):
        return seen
    for _ in range(GENERATIONS if known.has_model else 0):
        parents = _select(seen, size, rng)
        mutated = _mutated(space.sketches[sketch], _crossed(parents, rng), rng)
        every = distinct(np.vstack([seen.rows, space.keep(sketch, mutated)]))
        fresh = every[len(seen.rows) :]
        seen = _Scored(every, np.concatenate([seen.scores, known.scores(sketch, fresh)]))
    return seen


def _mutated(sketch: Sketch, rows: Ints, rng: np.random.Generator) -> Ints:
    """Change one knob in most rows."""
    rows = rows.copy()
    which = rng.integers(max(len(sketch.knobs), 1), size=len(rows))
    dice = rng.random(len(rows))
    for index, knob in enumerate(sketch.knobs):
        steps = np.flatnonzero((which == index) & (dice < MUTATION / 2))
        rows[steps, index] = knob.neighbours(rows[steps, index], rng)
        jumps = np.flatnonzero((which == index) & (dice >= MUTATION / 2) & (dice < MUTATION))
        rows[jumps, index] = rng.integers(len(knob.options), size=len(jumps))
    return rows


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
