"""The contract of `SearchStrategy`. Subclass `SearchStrategyContract` and define `make`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.cpu import CpuTarget
from tuner.candidate import Candidate, default_candidate
from tuner.search.strategy import Proposal, SearchStrategy
from tuner.space.filter.static_filter import passes
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import COLD, WarmStart

TARGET = CpuTarget("cpu -mcpu=haswell -num-cores=1")
MATMUL = Task(ops.matmul(8, 8, 2), TARGET)
TINY = Task(ops.matmul(2, 2, 2), TARGET)
ONE_SKETCH = Task(ops.relu(96), TARGET)
SMALL = Task(ops.matmul(4, 8, 2), TARGET)


def cost(candidate: Candidate) -> float:
    """Return a deterministic time that depends on the decisions, instead of a measured one."""
    parts = [np.log2(1 + np.array(d, float)) for d in candidate.trace.decisions.values()]
    return 1e-3 * (1 + sum(float(np.abs(p - 1.5).sum()) for p in parts))


def measured(proposals: Sequence[Proposal], start: int = 0) -> list[MeasuredTrial]:
    """Return the trials of proposals; one in seven failed."""
    trials = []
    for number, proposal in enumerate(proposals, start):
        fails = int(proposal.candidate.key[:2], 16) % 7 == 0
        found = (
            Measurement(error=ErrorKind.CRASH)
            if fails
            else Measurement((cost(proposal.candidate),))
        )
        trials.append(MeasuredTrial(number, proposal.candidate, found, proposal.predicted))
    return trials


def keys(proposals: Sequence[Proposal]) -> list[str]:
    return [p.candidate.key for p in proposals]


def size_of(task: Task) -> int:
    """Return the number of candidates of a small space."""
    space = design_space(task)
    rng = np.random.default_rng(0)
    return sum(len(space.draw(i, 10_000, rng)) for i in range(len(space.sketches)))


def played(search: SearchStrategy, script: str) -> list[list[Proposal]]:
    """Call the strategy by a script of `a`sks and `t`ells. A tell reports the oldest open round."""
    asked: list[list[Proposal]] = []
    told = 0
    for letter in script:
        if letter == "a":
            asked.append(search.ask(8))
        elif told < len(asked):
            search.tell(measured(asked[told], 8 * told))
            told += 1
    return asked


SCRIPTS = st.text(alphabet="at", max_size=8)
INTERLEAVED = "aat" * 2 + "at" * 2


class _Made:
    """Creates the tested strategy."""

    def make(self, task: Task, seed: int, warm_start: WarmStart) -> SearchStrategy:
        raise NotImplementedError

    def new(self, task: Task = MATMUL, seed: int = 0, warm: WarmStart = COLD) -> SearchStrategy:
        return self.make(task, seed, warm)


class SearchStrategyContract(_Made):
    """Tests of a strategy: override `make`."""

    def test_it_proposes_as_many_as_asked_all_different(self) -> None:
        assert len(set(keys(self.new().ask(16)))) == 16

    def test_it_proposes_nothing_when_nothing_is_asked(self) -> None:
        search = self.new()
        assert search.ask(0) == []

    def test_a_round_that_is_under_way_is_not_waited_for(self) -> None:
        search = self.new()
        first, second = search.ask(16), search.ask(16)
        search.tell(measured(first))
        third = search.ask(16)
        search.tell(measured(second))
        assert len({*keys(first), *keys(second), *keys(third)}) == 48

    def test_a_seed_decides(self) -> None:
        assert played(self.new(seed=4), "atat") != played(self.new(seed=5), "atat")

    def test_it_does_not_matter_how_a_round_is_told(self) -> None:
        whole, piecewise = self.new(), self.new()
        trials = measured(whole.ask(16))
        piecewise.ask(16)
        whole.tell(trials)
        piecewise.tell(trials[:5])
        piecewise.tell(trials[5:])
        assert whole.ask(16) == piecewise.ask(16)

    def test_it_proposes_only_what_passes_the_filter(self) -> None:
        space = design_space(MATMUL)
        for proposals in played(self.new(), INTERLEAVED):
            for proposal in proposals:
                point = space.point(proposal.candidate)
                assert point is not None
                row = np.array([point.choices])
                assert passes(space.sketches[point.sketch], row, TARGET).all()

    def test_what_others_measured_is_not_proposed(self) -> None:
        other = self.new(seed=7).ask(16)
        search = self.new(seed=7)
        search.tell(measured(other))
        assert set(keys(other)).isdisjoint(keys(search.ask(64)))

    def test_foreign_trials_are_no_trouble(self) -> None:
        search = self.new()
        search.tell([MeasuredTrial(0, default_candidate(), Measurement((1.0,)))])
        assert search.ask(8) == self.new().ask(8)

    def test_what_is_told_twice_counts_once(self) -> None:
        search = self.new()
        trials = measured(search.ask(16))
        search.tell(trials)
        search.tell(trials)
        assert len(search.ask(8)) == 8

    def test_a_warm_start_comes_first_and_in_order(self) -> None:
        relatives = tuple(p.candidate for p in self.new(seed=9).ask(12))
        search = self.new(warm=WarmStart(candidates=relatives))
        asked = [*search.ask(8), *search.ask(8)]
        assert tuple(p.candidate for p in asked[:12]) == relatives
        assert len(set(keys(asked))) == 16

    def test_a_warm_start_that_was_measured_is_not_proposed(self) -> None:
        relatives = tuple(p.candidate for p in self.new(seed=9).ask(4))
        search = self.new(warm=WarmStart(candidates=relatives))
        search.tell([MeasuredTrial(0, relatives[1], Measurement((1.0,)))])
        asked = [p.candidate for p in search.ask(4)]
        assert asked[:3] == [relatives[0], *relatives[2:]]
        assert relatives[1] not in asked

    def test_what_is_outside_the_space_is_no_warm_start(self) -> None:
        search = self.new(warm=WarmStart(candidates=(default_candidate(),)))
        assert default_candidate() not in [p.candidate for p in search.ask(8)]


class ThoroughContract(_Made):
    """Tests with many calls, for a strategy whose model costs little. Override `make`."""

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(script=SCRIPTS, seed=st.integers(0, 3))
    def test_the_sequence_of_asks_and_tells_decides(self, script: str, seed: int) -> None:
        """A stopped search can so continue by repeating the sequence."""
        whole = played(self.new(SMALL, seed), script + INTERLEAVED)
        assert played(self.new(SMALL, seed), script) == whole[: script.count("a")]
        assert played(self.new(SMALL, seed), script + INTERLEAVED) == whole

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(script=SCRIPTS)
    def test_nothing_is_proposed_twice_however_asks_and_tells_come(self, script: str) -> None:
        rounds = played(self.new(SMALL), script + INTERLEAVED)
        proposed = [key for proposals in rounds for key in keys(proposals)]
        assert len(proposed) == len(set(proposed)) == min(8 * len(rounds), size_of(SMALL))

    @pytest.mark.parametrize("task", [TINY, ONE_SKETCH], ids=["sketches", "one sketch"])
    @pytest.mark.parametrize("num", [3, 8, 1000])
    def test_a_small_space_is_proposed_whole(self, task: Task, num: int) -> None:
        search = self.new(task)
        found: list[str] = []
        while proposals := search.ask(num):
            found += keys(proposals)
            if len(proposals) < num:
                assert search.ask(num) == [], "a short round exhausts the space"
            search.tell(measured(proposals))
        assert len(found) == len(set(found)) == size_of(task)

    @pytest.mark.parametrize("error", [ErrorKind.CRASH, ErrorKind.WORKER_LOST])
    def test_failures_are_no_trouble(self, error: ErrorKind) -> None:
        search = self.new()
        proposed: list[str] = []
        for _ in range(4):
            proposals = search.ask(16)
            failed = Measurement(error=error)
            search.tell([MeasuredTrial(n, p.candidate, failed) for n, p in enumerate(proposals)])
            proposed += keys(proposals)
        assert len(set(proposed)) == 64
