"""Evolutionary search under a cost model, over tables.

Populations are as large as sketches allow, since their features are tables (see `Pool`): of a small
sketch every candidate is ranked, of a larger one thousands, which evolve. Before the first
measurement, the roofline estimate ranks them.
"""

from __future__ import annotations

import itertools
from collections.abc import Set as AbstractSet
from typing import ClassVar

import numpy as np

from tuner.cost_model.cost_model import Scores
from tuner.search.pool import Pool, grow
from tuner.search.random import draw_points
from tuner.search.search_state import SearchState
from tuner.search.steps import random_steps
from tuner.space.design_space import Point

RANDOM_SHARE = 1 / 16
"""Share of random proposals: one of a round of 16. They show the model candidates that it would not
choose; more of them cost trials. Chosen.
"""
FIRST_RANDOM_SHARE = 1 / 4
"""The same before anything is measured: a model must see bad candidates too, and only candidates
that it would not choose can refute it. Chosen.
"""
HEDGED_SHARE = 1 / 4
"""Share of proposals of the first round that the estimate chooses although there is a model: if the
model is wrong, the round has good candidates all the same. Chosen.
"""
REFUTED_RANDOM_SHARE = 1 / 2
"""The same once measurements refute the model that the search started from: what it chose teaches
little, so the search explores again (`docs/search.md` has the measured effect).
"""
STEP_SHARE = 1 / 2
"""Share of proposals that are steps of one knob from the best points, whatever the model expects of
them; less, as far as the model knows other jobs. A model of the job alone expects little of what it
has not seen, and a search that followed it stayed in the first good region (`docs/search.md`).
"""
CENTERS = 4
"""Points around which steps are taken, the best most often. Chosen: the fastest of a long search
are alike.
"""
OPTIMISM = 0.5
"""Weight of the uncertainty in a score: exploration against trust in the model (an upper confidence
bound; Srinivas et al., ICML 2010). Chosen, not measured.
"""
MAX_ALIKE = 1
"""Candidates of a round that may differ in a single decision from another of the round. More of
them exploit a good region, and teach the model less. Chosen.
"""


class Evolutionary:
    """Proposes the most promising candidates; see `Proposer`."""

    uses_model: ClassVar[bool] = True

    def __init__(self) -> None:
        self._pools: list[Pool] = []

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Return the most promising points, then some by the estimate, steps, and random ones."""
        if not self._pools:
            self._pools = [Pool(state, i, rng) for i in range(len(state.space.sketches))]
        if state.compares_sketches:
            grow(self._pools, state, rng)
        num_random = _num_random(num, state, rng)
        num_hedged = int(num * HEDGED_SHARE) if _is_unconfirmed(state) else 0
        num_steps = _whole(num * STEP_SHARE * state.job_share, rng) if state.has_model else 0
        num_steps = min(num_steps, num - num_random - num_hedged)
        chosen = self._promising(num - num_random - num_hedged - num_steps, state)
        if num_hedged:
            chosen += self._by_estimate(num_hedged, state, set(chosen))
        chosen += _steps(num_steps, state, state.seen | set(chosen), rng)
        return chosen + draw_points(state.space, num - len(chosen), state.seen | set(chosen), rng)

    def _promising(self, num: int, state: SearchState) -> list[Point]:
        """Return new points by their prospects; in turns of sketches if these do not compare."""
        if not state.compares_sketches:
            return self._by_estimate(num, state, set())
        ranked = [pool.best(num, state, _prospects(pool)) for pool in self._pools]
        together = [entry for ranking in ranked for entry in ranking]
        together.sort(key=lambda entry: -entry[0])
        return spread_out([point for _, point in together], num)

    def _by_estimate(self, num: int, state: SearchState, chosen: AbstractSet[Point]) -> list[Point]:
        """Return new points by the estimate of the search space, in turns of sketches."""
        lists = []
        for pool in self._pools:
            ranking = pool.best(num + len(chosen), state, state.estimates(pool.matrix))
            fresh = [point for _, point in ranking if point not in chosen]
            lists.append(spread_out(fresh, num))
        turns = [ranking[turn] for turn in range(num) for ranking in lists if turn < len(ranking)]
        return turns[:num]


def _steps(
    num: int, state: SearchState, taken: AbstractSet[Point], rng: np.random.Generator
) -> list[Point]:
    """Return new points that differ in one knob from the best measured ones."""
    if not (num and (centers := state.ranked()[:CENTERS])):
        return []
    steps = [random_steps(state, center, rng) for center in centers]
    chosen: list[Point] = []
    for rank in rng.exponential(CENTERS / 2, num).astype(int):
        beside = steps[min(rank, len(steps) - 1)]
        fresh = (point for point in beside if point not in taken and point not in chosen)
        chosen += itertools.islice(fresh, 1)
    return chosen


def _whole(share: float, rng: np.random.Generator) -> int:
    """Return a whole number with this mean: a share of a small round is not lost."""
    return int(share + rng.random())


def _prospects(pool: Pool) -> Scores:
    return pool.scores + OPTIMISM * pool.uncertainty


def _is_unconfirmed(state: SearchState) -> bool:
    """Return whether the search follows a model of which it has measured nothing yet."""
    return state.has_model and not state.secs


def _num_random(num: int, state: SearchState, rng: np.random.Generator) -> int:
    if not (state.has_model and state.secs):
        return int(num * FIRST_RANDOM_SHARE)  # none of one: that is to be the best guess
    share = RANDOM_SHARE + (REFUTED_RANDOM_SHARE - RANDOM_SHARE) * (1 - state.trust)
    return _whole(num * share, rng)


def spread_out(ranked: list[Point], num: int) -> list[Point]:
    """Return the first `num` points, with those that resemble earlier ones moved to the end."""
    chosen: list[Point] = []
    put_off: list[Point] = []
    for point in ranked:
        if len(chosen) == num:
            break
        alike = sum(_is_alike(point, other) for other in chosen)
        (put_off if alike > MAX_ALIKE else chosen).append(point)
    return (chosen + put_off)[:num]


def _is_alike(point: Point, other: Point) -> bool:
    """Return whether two points differ in one decision at most."""
    differences = sum(a != b for a, b in zip(point.choices, other.choices, strict=False))
    return point.sketch == other.sketch and differences <= 1
