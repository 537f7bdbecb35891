"""The common part of all search strategies: a memory, a warm start, and a proposer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

import numpy as np

from tuner.candidate import Candidate
from tuner.cost_model.cost_model import CostModel
from tuner.search.search_state import SearchState
from tuner.search.strategy import Proposal
from tuner.space.design_space import Point, SketchSpace
from tuner.trial import MeasuredTrial


class Proposer(Protocol):
    """A method to choose the next candidates.

    Different seeds must give different orders, so take the start from `rng`.
    """

    uses_model: ClassVar[bool]
    """Whether the proposer uses the scores of a cost model."""

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Return up to `num` different points that are not in `state.seen`.

        Fewer than `num` means that the space is exhausted. Random choices use `rng`.
        """
        ...


RESTART_AFTER = 512
"""Proposals after which a search makes a new proposer, which begins with what is measured. So a
search that continues elsewhere repeats no more calls than those since then, however long it is.
Most jobs are shorter (400 trials by default). Chosen.
"""


class Searcher:
    """Proposes the candidates of a warm start, then those of a proposer; see `SearchStrategy`.

    Args:
        new_proposer: Makes a proposer.
        model: Learns from measurements and predicts scores; None for no model.
        first: Candidates to propose before others; those outside the space are left out.
    """

    def __init__(
        self,
        new_proposer: Callable[[], Proposer],
        space: SketchSpace,
        seed: int,
        model: CostModel | None,
        *,
        task_key: str,
        first: Iterable[Candidate] = (),
    ) -> None:
        self._new_proposer = new_proposer
        self._proposer = new_proposer()
        self._seed = seed
        self._num_asks = self._num_proposed = 0
        self._state = SearchState(space, model, task_key)
        points = (space.point(candidate) for candidate in first)
        self._first = list(dict.fromkeys(point for point in points if point is not None))

    def ask(self, num: int) -> list[Proposal]:
        """Propose up to `num` new candidates."""
        rng = np.random.default_rng((self._seed, self._num_asks))
        self._num_asks += 1
        if self._num_proposed >= RESTART_AFTER:
            self._proposer, self._num_proposed = self._new_proposer(), 0
        seen = self._state.seen
        self._first = [point for point in self._first if point not in seen]
        chosen, self._first = self._first[:num], self._first[num:]
        seen.update(chosen)
        if len(chosen) < num:
            points = self._proposer.propose(num - len(chosen), self._state, rng)
            assert seen.isdisjoint(points), "a proposer returns new points only"
            seen.update(points)
            chosen = chosen + points
        self._num_proposed += len(chosen)
        candidates = self._state.candidates(chosen)
        if not chosen or not self._state.compares_sketches:
            return [Proposal(candidate) for candidate in candidates]
        scores = self._state.expected(self._state.proposed_features(chosen)).tolist()
        return list(map(Proposal, candidates, scores))

    def skip(self, proposed: Sequence[Sequence[Candidate]]) -> int:
        """Skip the calls of `ask` before the last new proposer; see `SearchStrategy`."""
        num_asks = num_since = 0
        for number, candidates in enumerate(proposed, 1):
            num_since += len(candidates)
            if num_since >= RESTART_AFTER:
                num_asks, num_since = number, 0
        self._num_asks = num_asks
        self._num_proposed = RESTART_AFTER if num_asks else 0
        self._state.mark_proposed([c for round_ in proposed[:num_asks] for c in round_])
        return num_asks

    def tell(self, trials: Sequence[MeasuredTrial]) -> None:
        """Record measurements, and train the model on them."""
        self._state.record(trials)

    def learned(self) -> bytes | None:
        """Return the cost model as stored bytes, once it is trained."""
        return self._state.learned()
