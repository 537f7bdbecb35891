"""The finish under noise of the worst kind, and what it does with its findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.finish.contest import ANALYSIS_ROUNDS, Finish, Outcome
from tuner.finish.finish import (
    DEFAULT_ROUNDS,
    FINALIST_RATIO,
    LEAST_SECS,
    MAX_SECS,
    NUM_FINALISTS,
    NUM_WHOLE_FINALISTS,
    choose_finalists,
    finish,
)
from tuner.task import Task
from tuner.trial import MeasuredTrial

TASK = Task(ops.matmul(4, 4, 4), Target("cpu -mcpu=x86-64-v3 -num-cores=1"))
NUM_RUNS = 200


def trial(number: int, secs: float = 1.0) -> MeasuredTrial:
    return MeasuredTrial(number, Candidate(f"sketch {number}", Trace()), Measurement((secs,)))


class Machine:
    """Times candidates by their true seconds and noise that is heavy-tailed and has a memory.

    A load drifts over everything, a round's arrays favour this candidate or that one for all its
    turns, and single turns are interrupted.
    """

    def __init__(self, secs: Sequence[float], seed: int = 0) -> None:
        self.num_rounds = 0
        self.asked: list[list[str]] = []
        self._secs = {f"sketch {number}": s for number, s in enumerate(secs)}
        self._rng = np.random.default_rng(seed)
        self._load = 0.0

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        self.asked.append([c.sketch for c in candidates])
        for _ in range(num_rounds):
            self.num_rounds += 1
            yield self._round([self._secs[c.sketch] for c in candidates])

    def _round(self, secs: Sequence[float]) -> list[Measurement]:
        order = self._rng.permutation(len(secs)).tolist()
        luck = self._rng.normal(0, 0.02, len(secs)) + 0.2 * (self._rng.random(len(secs)) < 0.1)
        samples: list[list[float]] = [[] for _ in secs]
        for _ in range(5):
            for place in order:
                self._load = 0.97 * self._load + 0.01 * self._rng.standard_t(2)
                noise = luck[place] + abs(self._load) + 0.02 * abs(self._rng.standard_t(1.5))
                samples[place].append(secs[place] * math.exp(min(noise, 20.0)))
            order.reverse()
        return [Measurement(tuple(s)) for s in samples]


def run(secs: Sequence[float], seed: int = 0) -> Finish:
    found = finish(TASK, [trial(n) for n in range(len(secs))], Machine(secs, seed), seed=seed)
    assert found is not None
    return found


def winner(found: Finish) -> int | None:
    assert found.kept is not None
    return None if found.is_tied else found.kept.trial.number


def test_among_two_equals_a_winner_is_declared_in_at_most_5_percent_of_runs() -> None:
    winners = [winner(run([1.0, 1.0], seed)) for seed in range(NUM_RUNS)]
    assert sum(w is not None for w in winners) <= 0.05 * NUM_RUNS


def test_among_several_equals_there_is_no_winner_either() -> None:
    runs = [winner(run([1.0] * NUM_FINALISTS, seed)) for seed in range(40)]
    assert sum(w is not None for w in runs) <= 2


def test_ten_percent_are_found_in_at_least_95_percent_of_runs() -> None:
    found = [winner(run([1.1, 1.0], seed)) for seed in range(NUM_RUNS)]
    assert sum(w == 1 for w in found) >= 0.95 * NUM_RUNS
    assert 0 not in found


def test_the_fastest_of_several_is_found() -> None:
    assert [winner(run([1.15, 1.1, 1.0, 1.2], seed)) for seed in range(10)] == [2] * 10


def test_the_time_of_the_winner_has_an_interval_around_it() -> None:
    found = run([1.1, 1.0])
    assert found.kept is not None
    low, high = found.kept.interval
    assert low < found.kept.run_secs < high
    assert found.kept.run_secs == np.median([m.best_secs for m in found.kept.rounds])


def test_who_is_slower_drops_out_early() -> None:
    machine = Machine([1.0, 1.0, 1.5, 1.0])
    found = finish(TASK, [trial(n) for n in range(4)], machine)
    assert found is not None
    assert found.finalists[2].outcome is Outcome.SLOWER
    assert len(found.finalists[2].rounds) == ANALYSIS_ROUNDS[0]
    assert all("sketch 2" not in asked for asked in machine.asked[1:])


class Fixed:
    """Answers with seconds that follow from the candidate and the round, without noise."""

    def __init__(self, secs: Callable[[str, int], float | Measurement]) -> None:
        self._secs = secs
        self.number = 0

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for _ in range(num_rounds):
            self.number += 1
            answers = [self._secs(c.sketch, self.number) for c in candidates]
            yield [a if isinstance(a, Measurement) else Measurement((a,)) for a in answers]


def test_the_same_within_a_percent_are_tied_and_the_earliest_is_kept() -> None:
    def secs(name: str, number: int) -> float:
        return 1 + 0.003 * math.sin(97 * number + 30 * int(name[-1])) - 1e-5 * int(name[-1])

    comparer = Fixed(secs)
    found = finish(TASK, [trial(n) for n in range(3)], comparer)
    assert found is not None
    assert [f.outcome for f in found.finalists] == [Outcome.KEPT, Outcome.TIED, Outcome.TIED]
    assert comparer.number == ANALYSIS_ROUNDS[0], "more rounds would change nothing"


def test_a_difference_that_matters_is_kept_even_if_it_is_not_sure() -> None:
    def secs(name: str, number: int) -> float:
        luck = 0.1 * math.sin(97 * number + 30 * int(name[-1]))
        return (1.0 if name == "sketch 1" else 1.03) + luck

    found = finish(TASK, [trial(0), trial(1)], Fixed(secs))
    assert found is not None
    assert [f.outcome for f in found.finalists] == [Outcome.TIED, Outcome.KEPT]


def test_a_finalist_that_goes_wrong_is_never_kept() -> None:
    wrong = Measurement(error=ErrorKind.WRONG_RESULT, message="a race")
    comparer = Fixed(lambda name, number: wrong if name == "sketch 1" and number >= 3 else 1.0)
    found = finish(TASK, [trial(0), trial(1, 0.9)], comparer)
    assert found is not None
    assert [f.outcome for f in found.finalists] == [Outcome.KEPT, Outcome.FAILED]
    assert found.finalists[1].rounds[-1] == wrong
    assert found.finalists[1].run_secs == math.inf


def test_where_all_finalists_go_wrong_the_next_best_take_their_places() -> None:
    crash = Measurement(error=ErrorKind.CRASH)
    trials = [trial(0, 10.0), *(trial(n, 1.0) for n in range(1, 1 + NUM_FINALISTS))]
    comparer = Fixed(lambda name, _: 10.0 if name == "sketch 0" else crash)
    found = finish(TASK, trials, comparer)
    assert found is not None
    outcomes = [f.outcome for f in found.finalists]
    assert outcomes == [Outcome.KEPT, *[Outcome.FAILED] * NUM_FINALISTS]


def test_where_all_go_wrong_nothing_is_kept() -> None:
    crash = Measurement(error=ErrorKind.CRASH)
    found = finish(TASK, [trial(0), trial(1)], Fixed(lambda *_: crash))
    assert found is not None
    assert found.kept is None
    assert not found.is_tied


def test_a_single_finalist_is_measured_for_its_interval() -> None:
    machine = Machine([1.0])
    found = finish(TASK, [trial(0)], machine)
    assert found is not None
    assert winner(found) == 0
    assert machine.num_rounds == ANALYSIS_ROUNDS[0]


def test_nothing_right_leaves_nothing_to_finish() -> None:
    failed = MeasuredTrial(0, Candidate("s", Trace()), Measurement(error=ErrorKind.CRASH))
    assert finish(TASK, [failed], Machine([1.0])) is None
    assert finish(TASK, [], Machine([])) is None


def test_a_finish_that_is_stopped_finds_nothing() -> None:
    machine = Machine([1.0, 1.0])
    stop = lambda: machine.num_rounds >= 4  # noqa: E731
    assert finish(TASK, [trial(0), trial(1)], machine, should_stop=stop) is None
    assert machine.num_rounds == 4


def by_chance(name: str, number: int) -> float:
    """Return times so far apart from round to round that no look can tell."""
    return 1.0 + 0.4 * math.sin(97 * number + 30 * int(name[-1]))


def test_no_look_is_taken_where_little_is_to_be_gained() -> None:
    def secs(name: str, number: int) -> float:
        return 1.0 + 0.02 * int(name[-1]) + 0.01 * math.sin(97 * number + int(name[-1]))

    comparer = Fixed(secs)
    found = finish(TASK, [trial(n) for n in range(4)], comparer)
    assert found is not None
    assert found.kept is not None
    assert found.kept.trial.number == 0
    assert comparer.number == ANALYSIS_ROUNDS[0]


@pytest.mark.parametrize(
    ("round_secs", "trial_secs", "num_rounds"),
    [
        (MAX_SECS / 3, 0.0, 4),  # it stops amid the first look
        (LEAST_SECS / 8, 0.0, ANALYSIS_ROUNDS[0]),  # there is time for one look
        (LEAST_SECS / 14, 0.0, ANALYSIS_ROUNDS[1]),
        (LEAST_SECS / 14, 50 * LEAST_SECS, ANALYSIS_ROUNDS[-1]),  # the trials took long, too
    ],
)
def test_a_finish_takes_no_longer_than_it_is_worth(
    round_secs: float, trial_secs: float, num_rounds: int
) -> None:
    comparer = Fixed(by_chance)
    trials = [
        replace(trial(n), measurement=Measurement((1.0,), build_secs=trial_secs)) for n in range(2)
    ]
    found = finish(TASK, trials, comparer, clock=lambda: comparer.number * round_secs)
    assert found is not None
    assert comparer.number == num_rounds
    assert found.is_tied


def test_the_same_seed_asks_for_the_same_rounds() -> None:
    seeds: list[list[tuple[int, int]]] = [[], []]

    class Spy(Fixed):
        def compare(
            self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
        ) -> Iterator[Sequence[Measurement]]:
            asked.append((num_rounds, seed))
            return super().compare(task, candidates, num_rounds, seed)

    for asked in seeds:  # noqa: B007
        finish(TASK, [trial(0), trial(1)], Spy(by_chance), seed=3)
    assert seeds[0] == seeds[1]
    assert len({seed for _, seed in seeds[0]}) == len(ANALYSIS_ROUNDS)


@pytest.mark.parametrize("default_secs", [1.2, 2.0])
def test_finalists_are_the_best_that_are_close_and_the_default_if_it_is(
    default_secs: float,
) -> None:
    trials = [trial(0, default_secs), *(trial(n, 1 + 0.01 * n) for n in range(1, 9))]
    chosen = [t.number for t in choose_finalists(trials[::-1])]
    first = [0] if default_secs < FINALIST_RATIO else []
    assert chosen == [*first, *range(1, 1 + NUM_FINALISTS)]


def test_a_default_that_is_no_finalist_is_timed_in_rounds_too() -> None:
    comparer = Fixed(lambda name, number: (0.03 if name == "sketch 0" else 0.01) + 1e-4 * number)
    found = finish(TASK, [trial(0, 0.029), trial(1, 0.009)], comparer)
    assert found is not None
    default, kept = found.finalists
    assert (default.outcome, kept.outcome) == (Outcome.SLOWER, Outcome.KEPT)
    assert len(default.rounds) == DEFAULT_ROUNDS
    low, high = default.interval
    assert 0.03 < low < default.run_secs < high


@pytest.mark.parametrize(("default_secs", "num_rounds"), [(0.12, 8), (0.2, 6), (0.25, 6)])
def test_a_default_with_long_runs_has_fewer_rounds(default_secs: float, num_rounds: int) -> None:
    found = finish(TASK, [trial(0, default_secs), trial(1, 0.009)], Fixed(lambda *_: 0.01))
    assert found is not None
    assert [len(f.rounds) for f in found.finalists] == [num_rounds, ANALYSIS_ROUNDS[0]]


@pytest.mark.parametrize("default_secs", [0.26, math.inf])
def test_a_default_that_would_take_long_or_failed_is_left_alone(default_secs: float) -> None:
    first = trial(0, default_secs)
    if math.isinf(default_secs):
        first = replace(first, measurement=Measurement(error=ErrorKind.TIMEOUT))
    found = finish(TASK, [first, trial(1, 0.009)], Fixed(lambda *_: 0.01))
    assert found is not None
    assert [f.trial.number for f in found.finalists] == [1]


@pytest.mark.parametrize(
    ("secs", "max_secs", "num_finalists", "num_rounds"),
    [
        (1e-3, 4.0, NUM_FINALISTS, ANALYSIS_ROUNDS[0]),
        (1e-3, 0.2, 2, 7),
        (1e-3, 0.1, 0, 0),  # two finalists need 0.16 s
        (1.0, 4.0, 0, 0),
    ],
)
def test_a_short_time_has_as_many_finalists_as_it_suffices_for(
    secs: float, max_secs: float, num_finalists: int, num_rounds: int
) -> None:
    trials = [trial(n, (1 + 0.01 * n) * secs) for n in range(8)]
    machine = Machine([t.best_secs for t in trials])
    found = finish(TASK, trials, machine, max_secs=max_secs)
    asked = machine.asked[0] if machine.asked else []
    assert asked == [f"sketch {n}" for n in range(num_finalists)]
    assert machine.num_rounds == num_rounds
    assert (found is None) == (num_finalists == 0)
    if found is not None:
        assert [len(f.rounds) for f in found.finalists] == [num_rounds] * num_finalists


def test_the_only_finalist_of_a_short_time_gets_its_interval() -> None:
    found = finish(TASK, [trial(1, 1e-3)], Machine([0.0, 1e-3]), max_secs=0.2)
    assert found is not None
    assert found.kept is not None
    assert len(found.kept.rounds) == ANALYSIS_ROUNDS[0]


def test_a_longer_time_ends_the_comparison_like_the_limit_of_all() -> None:
    clock = iter(range(0, 1000, 3)).__next__
    machine = Machine([1.0, 1.04])
    trials = [trial(0), trial(1)]
    found = finish(TASK, trials, machine, max_secs=LEAST_SECS + 1, clock=lambda: float(clock()))
    assert found is not None
    assert machine.num_rounds < ANALYSIS_ROUNDS[0]


def whole(secs: Sequence[float], seed: int = 0) -> Finish:
    trials = [trial(n, own) for n, own in enumerate(secs)]
    found = finish(TASK, trials, Machine(secs, seed), seed=seed, is_whole=True)
    assert found is not None
    assert found.kept is not None
    return found


def test_a_search_that_did_not_measure_everything_has_no_margin() -> None:
    assert run([1.0, 1.0]).margin is None


def test_all_close_schedules_of_a_whole_space_are_finalists() -> None:
    found = whole([1.0 + 0.02 * n for n in range(20)])
    assert [f.trial.number for f in found.finalists] == list(range(13))  # within 25%


def test_the_margin_of_a_whole_space_holds_in_at_least_95_percent_of_runs() -> None:
    secs = [1.03, 1.0, 1.01, 1.0, 1.02, 1.1, 1.15, 1.005]
    wrong = 0
    for seed in range(60):
        found = whole(secs, seed)
        assert found.kept is not None
        assert found.margin is not None
        best = min(secs) / secs[found.kept.trial.number]
        wrong += found.margin < 1 - best - 1e-9
    assert wrong <= 3


def test_who_wins_against_all_others_of_a_whole_space_has_no_margin_left() -> None:
    assert whole([1.2, 1.0, 1.22]).margin == 0.0


def test_too_many_close_schedules_have_no_margin() -> None:
    found = whole([1.0] * (NUM_WHOLE_FINALISTS + 1))
    assert len(found.finalists) == NUM_WHOLE_FINALISTS
    assert found.margin is None
