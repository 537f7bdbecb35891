"""The contract of `Proposer`. Subclass `ProposerContract` and define `new`."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from tests.targets import level
from tuner.search.search_state import SearchState
from tuner.search.searcher import Proposer
from tuner.space.generate import design_space
from tuner.task import Task

TASK = Task(ops.matmul(4, 8, 2), level(3))
LARGE = Task(ops.matmul(1024, 1024, 1024), level(3))


def new_state() -> SearchState:
    return SearchState(design_space(TASK), None, TASK.key)


class ProposerContract:
    """Tests of a proposer without a cost model: override `new`."""

    def new(self) -> Proposer:
        raise NotImplementedError

    def test_points_are_new_different_and_in_the_space(self) -> None:
        proposer, state = self.new(), new_state()
        for seed in range(3):
            points = proposer.propose(8, state, np.random.default_rng(seed))
            assert len(points) == len(set(points)) == 8
            assert state.seen.isdisjoint(points)
            assert all(state.space.point(state.space.candidate(p)) == p for p in points)
            state.seen.update(points)

    def test_large_sketches_are_proposed_too(self) -> None:
        space = design_space(LARGE)
        large = {index for index in range(len(space.sketches)) if not space.is_small(index)}
        assert large
        state = SearchState(space, None, LARGE.key)
        proposer = self.new()
        for seed in range(40):
            points = proposer.propose(64, state, np.random.default_rng(seed))
            if any(point.sketch in large for point in points):
                return
            state.seen.update(points)
        raise AssertionError("2560 proposals, and none of a large sketch")

    def test_another_generator_gives_other_points(self) -> None:
        draws = [self.new().propose(8, new_state(), np.random.default_rng(n)) for n in (3, 4)]
        assert draws[0] != draws[1]

    def test_the_generator_decides(self) -> None:
        draws = [self.new().propose(8, new_state(), np.random.default_rng(3)) for _ in range(2)]
        assert draws[0] == draws[1]

    def test_a_proposal_changes_no_state(self) -> None:
        state = new_state()
        self.new().propose(8, state, np.random.default_rng(0))
        assert not state.seen
        assert not state.secs

    @pytest.mark.parametrize("num", [0, 1])
    def test_it_proposes_no_more_than_requested(self, num: int) -> None:
        assert len(self.new().propose(num, new_state(), np.random.default_rng(0))) == num

    def test_fewer_points_mean_that_the_space_holds_no_more(self) -> None:
        state = new_state()
        space, rng = state.space, np.random.default_rng(0)
        size = sum(len(space.draw(i, 10_000, rng)) for i in range(len(space.sketches)))
        points = self.new().propose(size + 1, state, rng)
        assert len(points) == len(set(points)) == size
