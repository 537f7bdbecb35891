"""Variation of rows of choices: selection, crossover, mutation. Rows hold indices of options.

So any variation is a row of choices again (see `tuner.space.tables.knob`); the static filter may
still drop it.
"""

from __future__ import annotations

import numpy as np

from tuner.cost_model.cost_model import Scores
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

MUTATION = 0.85
"""The chance that a child is mutated: that of MetaSchedule's evolutionary search.
Half of the mutations redraw a knob, half step to a neighbour.
"""
SELECTION = 1 / 8
"""Share of the ranks after which the chance to be a parent has fallen to 1/e: pressure against
diversity. Chosen.
"""


def selected(rows: Ints, scores: Scores, num: int, rng: np.random.Generator) -> Ints:
    """Draw parents; the chance falls geometrically with the rank."""
    order = np.argsort(-scores, kind="stable")
    scale = max(len(order) * SELECTION, 1.0)
    ranks = np.minimum(rng.exponential(scale, num).astype(np.int64), len(order) - 1)
    chosen: Ints = rows[order[ranks]]
    return chosen


def crossed(parents: Ints, rng: np.random.Generator) -> Ints:
    """Take each knob from one of two parents; half of the children stay unchanged."""
    mates = parents[rng.permutation(len(parents))]
    takes = rng.random(parents.shape) < 0.5
    takes &= rng.random((len(parents), 1)) < 0.5
    return np.where(takes, mates, parents)


def mutated(sketch: Sketch, rows: Ints, rng: np.random.Generator) -> Ints:
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


def one_apart(sketch: Sketch, row: Ints) -> Ints:
    """Return all rows that differ from one in a single knob, knob by knob."""
    changed = []
    for index, knob in enumerate(sketch.knobs):
        others = np.delete(np.arange(len(knob.options)), row[index])
        rows = np.repeat(row[None], len(others), axis=0)
        rows[:, index] = others
        changed.append(rows)
    return np.vstack([np.empty((0, len(row)), np.int64), *changed])
