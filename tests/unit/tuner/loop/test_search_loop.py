"""The order in which a search is asked and told, beside the measuring or not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait

import pytest

from compiler import ops
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from tests.patience import PATIENCE_SECS
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.loop.budget import Budget, StopReason
from tuner.loop.search_loop import ROUND_SIZE, SearchLoop
from tuner.measurer.measurer import Measurer
from tuner.measurer.memory import MemoryMeasurer
from tuner.search.strategy import Proposal
from tuner.task import Task
from tuner.trial import MeasuredTrial

TASK = Task(ops.matmul(4, 4, 4), Target("cpu -mcpu=x86-64-v3 -num-cores=1"))


class Diary:
    """A strategy that writes down what is asked and told, and skips up to `num_skipped` asks."""

    def __init__(self, num_skipped: int = 0) -> None:
        self.entries: list[str] = []
        self.asked = threading.Event()
        self._num_asked = 0
        self._num_skipped = num_skipped

    def skip(self, proposed: Sequence[Sequence[Candidate]]) -> int:
        skipped = proposed[: self._num_skipped]
        self._num_asked = sum(map(len, skipped))
        if skipped:
            self.entries.append(f"skip {list(map(len, skipped))}")
        return len(skipped)

    def ask(self, num: int) -> list[Proposal]:
        self.entries.append(f"ask {num}")
        self.asked.set()
        self._num_asked += num
        numbers = range(self._num_asked - num, self._num_asked)
        return [Proposal(Candidate(f"s{n}", _Numbered(n))) for n in numbers]

    def tell(self, trials: Sequence[MeasuredTrial]) -> None:
        self.entries.append(f"tell {trials[0].number}-{trials[-1].number}")

    def learned(self) -> bytes | None:
        self.entries.append("learned")
        return None


class _Numbered(Trace):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def key(self) -> str:
        return f"{self._number:064}"


def rounds(
    search: Diary,
    measurer: Measurer,
    *,
    overlap: bool = False,
    num_ahead: int = 0,
    history: Sequence[MeasuredTrial] = (),
    interrupted: Callable[[], StopReason | None] = lambda: None,
    default_at: int | None = 0,
) -> SearchLoop:
    return SearchLoop(
        TASK,
        measurer,
        search,
        lambda: Budget(4 * ROUND_SIZE),
        history=history,
        on_trials=lambda _: None,
        interrupted=interrupted,
        overlap=overlap,
        num_ahead=lambda: num_ahead,
        default_at=default_at,
    )


EXPECTED = [
    "ask 15",
    "tell 0-15",
    "ask 16",
    "ask 16",
    "tell 16-31",
    "ask 16",
    "tell 32-47",
    "tell 48-63",
    "learned",
]


@pytest.mark.parametrize(("overlap", "num_ahead"), [(True, 1), (True, 0), (False, 0), (False, 2)])
def test_asks_and_tells_come_in_one_order(overlap: bool, num_ahead: int) -> None:
    search = Diary()
    measurer = MemoryMeasurer(lambda _: 1.0)
    with rounds(search, measurer, overlap=overlap, num_ahead=num_ahead) as running:
        while running.run_next() is None:
            pass
        running.learned()
    assert search.entries == EXPECTED


@pytest.mark.parametrize("num_ahead", [1, 0])
def test_a_history_is_asked_and_told_the_same(num_ahead: int) -> None:
    with rounds(Diary(), MemoryMeasurer(lambda _: 1.0), overlap=True) as running:
        while running.run_next() is None:
            pass
        history = running.trials()
    search, measurer = Diary(), MemoryMeasurer(lambda _: 1.0)
    begun = history[: 2 * ROUND_SIZE + 3]
    with rounds(search, measurer, overlap=True, num_ahead=num_ahead, history=begun) as running:
        while running.run_next() is None:
            pass
        running.learned()
        assert running.trials() == history
    assert search.entries == EXPECTED
    assert len(measurer.asked) == 2 * ROUND_SIZE - 3


@pytest.mark.parametrize("overlap", [True, False])
def test_the_first_rounds_of_a_long_history_are_told_and_not_asked_again(overlap: bool) -> None:
    with rounds(Diary(), MemoryMeasurer(lambda _: 1.0), overlap=overlap) as running:
        while running.run_next() is None:
            pass
        history = running.trials()
    search, measurer = Diary(num_skipped=2), MemoryMeasurer(lambda _: 1.0)
    begun = history[: 3 * ROUND_SIZE + 3]
    with rounds(search, measurer, overlap=overlap, history=begun) as running:
        while running.run_next() is None:
            pass
        running.learned()
        assert running.trials() == history
    assert search.entries == ["skip [15, 16]", "tell 0-15", *EXPECTED[3:]]
    assert len(measurer.asked) == ROUND_SIZE - 3


def test_one_complete_round_of_a_history_is_asked_again() -> None:
    """After it the loop looks whether the search ends, on a plateau for example."""
    with rounds(Diary(), MemoryMeasurer(lambda _: 1.0)) as running:
        while running.run_next() is None:
            pass
        history = running.trials()
    search = Diary(num_skipped=4)
    with rounds(search, MemoryMeasurer(lambda _: 1.0), history=history) as running:
        assert running.run_next() is StopReason.BUDGET
        assert running.measured_trials() == history
    assert search.entries[:4] == ["skip [15, 16, 16]", "tell 0-15", "tell 16-31", "ask 16"]


def test_the_next_round_is_proposed_while_one_is_measured() -> None:
    search = Diary()

    class Waiting:
        """Answers round 1 only once the search was asked for round 2."""

        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            if incumbent_secs is not None:
                assert search.asked.wait(PATIENCE_SECS), "nobody asked"
            for index in range(len(candidates)):
                yield index, Measurement((1.0,))

    with rounds(search, Waiting(), overlap=True) as running:
        running.run_next()
        running._coming[0].result()
        search.asked.clear()
        running.run_next()
        assert search.entries == EXPECTED[:4]


class Eager:
    """Begins at the call, and answers once the search has proposed; writes down what happens."""

    def __init__(self, running: Callable[[], SearchLoop]) -> None:
        self.entries: list[str] = []
        self._running = running
        self._num_begun = 0

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        number, self._num_begun = self._num_begun, self._num_begun + 1
        self.entries.append(f"begin {number}")
        results = self._results(number, len(candidates))
        next(results)
        return results

    def _results(self, number: int, size: int) -> Iterator[tuple[int, Measurement]]:
        try:
            yield 0, Measurement((1.0,))  # read at the call
            for index in range(size):
                wait(self._running()._coming)
                yield index, Measurement((1.0,))
            self.entries.append(f"end {number}")
        finally:
            self.entries.append(f"close {number}")


def test_a_round_begins_beside_the_one_before_it_if_it_is_certain_to_be_measured() -> None:
    measurer = Eager(lambda: running)
    with rounds(Diary(), measurer, overlap=True, num_ahead=1) as running:
        while running.run_next() is None:
            pass
        assert [t.number for t in running.trials()] == list(range(4 * ROUND_SIZE))
    assert [entry for entry in measurer.entries if not entry.startswith("close")] == [
        *("begin 0", "end 0", "begin 1"),  # the first rounds depend on each other
        *("begin 2", "end 1", "begin 3", "end 2", "end 3"),
    ]


def test_several_rounds_begin_beside_one_and_are_proposed_from_the_same_trials() -> None:
    search = Diary()
    measurer = Eager(lambda: running)
    with rounds(search, measurer, overlap=True, num_ahead=2) as running:
        while running.run_next() is None:
            pass
        running.learned()
        assert [t.number for t in running.trials()] == list(range(4 * ROUND_SIZE))
    assert search.entries == [
        *("ask 15", "tell 0-15", "ask 16", "ask 16", "ask 16"),
        *("tell 16-31", "tell 32-47", "tell 48-63", "learned"),
    ]
    begins = [entry for entry in measurer.entries if not entry.startswith("close")]
    assert begins[:3] == ["begin 0", "end 0", "begin 1"]
    assert begins.index("end 1") > begins.index("begin 2")
    assert begins.index("end 2") > begins.index("begin 3")


def test_a_history_of_several_rounds_at_a_time_is_completed_without_gaps() -> None:
    with rounds(Diary(), MemoryMeasurer(lambda _: 1.0), overlap=True, num_ahead=2) as running:
        while running.run_next() is None:
            pass
        history = running.trials()[: ROUND_SIZE + 5]
    with rounds(Diary(), MemoryMeasurer(lambda _: 1.0), overlap=True, history=history) as running:
        while running.run_next() is None:
            pass
        resumed = running.trials()
    assert [t.number for t in resumed] == list(range(4 * ROUND_SIZE))
    assert len({t.candidate.key for t in resumed}) == 4 * ROUND_SIZE
    assert resumed[: len(history)] == history


def test_a_round_that_began_is_abandoned_if_the_search_ends_before_it() -> None:
    measurer = Eager(lambda: running)

    def interrupted() -> StopReason | None:
        return StopReason.CANCELLED if running.num_measured == 20 else None

    with rounds(Diary(), measurer, overlap=True, num_ahead=1, interrupted=interrupted) as running:
        assert running.run_next() is None
        assert running.run_next() is StopReason.CANCELLED
        assert measurer.entries[3:] == ["begin 1", "begin 2", "close 1", "close 2"]
        assert [t.number for t in running.trials()] == list(range(20))


def test_nothing_is_proposed_while_a_round_is_measured_alone() -> None:
    search = Diary()
    seen: list[int] = []

    def count(_: Candidate) -> float:
        seen.append(len(search.entries))
        return 1.0

    with rounds(search, MemoryMeasurer(count), overlap=False) as running:
        for _ in range(3):
            running.run_next()
    assert [len(set(seen[i : i + ROUND_SIZE])) for i in range(0, 48, ROUND_SIZE)] == [1, 1, 1]


@pytest.mark.parametrize("num_ahead", [1, 0])
def test_a_budget_that_shrinks_ends_a_round_and_one_that_grows_again_ends_it_whole(
    num_ahead: int,
) -> None:
    """In the order of completion: those that are left are measured later."""
    budget, arrived = [Budget(4 * ROUND_SIZE)], list[MeasuredTrial]()

    def shrink(trials: Sequence[MeasuredTrial]) -> None:
        arrived.extend(trials)
        if len(arrived) == ROUND_SIZE + 5:
            budget[0] = Budget(ROUND_SIZE + 7)

    def run(
        search: Diary, history: Sequence[MeasuredTrial]
    ) -> tuple[StopReason, tuple[MeasuredTrial, ...]]:
        with SearchLoop(
            TASK, MemoryMeasurer(lambda _: 1.0), search, lambda: budget[0], history=history,
            on_trials=shrink, interrupted=lambda: None, overlap=True, num_ahead=lambda: num_ahead,
        ) as running:  # fmt: skip
            reason = running.replay()
            while reason is None:
                reason = running.run_next()
            return reason, running.trials()

    reason, found = run(Diary(), ())
    assert (reason, len(found)) == (StopReason.BUDGET, ROUND_SIZE + 7)
    budget[0] = Budget(2 * ROUND_SIZE)
    reason, found = run(Diary(), found)
    assert (reason, [t.number for t in found]) == (StopReason.BUDGET, list(range(2 * ROUND_SIZE)))


@pytest.mark.parametrize(("call", "rounds_between"), [("ask", 1), ("tell", 2)])
def test_an_error_of_the_search_ends_it(
    call: str, rounds_between: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    search = Diary()
    with rounds(search, MemoryMeasurer(lambda _: 1.0), overlap=True) as running:
        running.run_next()
        running._coming[0].result()
        monkeypatch.setattr(search, call, fail)
        for _ in range(rounds_between):
            running.run_next()
        with pytest.raises(ZeroDivisionError):
            running.run_next()


def _sketches(measurer: MemoryMeasurer) -> list[str]:
    return [candidate.sketch for candidate in measurer.asked]


def test_the_default_schedule_may_come_second_and_stays_trial_0() -> None:
    measurer = MemoryMeasurer(lambda _: 1.0)
    with rounds(Diary(), measurer, default_at=1) as running:
        running.run_next()
        assert _sketches(measurer)[:3] == ["s0", DEFAULT_SKETCH, "s1"]
        numbers = {t.candidate.sketch: t.number for t in running.trials()}
    assert [numbers[sketch] for sketch in (DEFAULT_SKETCH, "s0", "s14")] == [0, 1, 15]


def test_the_default_schedule_may_be_left_out() -> None:
    search, measurer = Diary(), MemoryMeasurer(lambda _: 1.0)
    with rounds(search, measurer, default_at=None) as running:
        assert not running.has_result
        running.run_next()
        assert running.has_result
        running.run_next()
        assert [t.number for t in running.trials()] == list(range(1, 2 * ROUND_SIZE))
    assert DEFAULT_SKETCH not in _sketches(measurer)
    assert search.entries[:2] == ["ask 15", "tell 1-15"]


def test_a_default_schedule_that_was_left_out_is_measured_if_nothing_else_is_correct() -> None:
    failed = Measurement(error=ErrorKind.CRASH, message="signal 11")
    measurer = MemoryMeasurer(lambda c: 1.0 if c.sketch == DEFAULT_SKETCH else failed)
    with rounds(Diary(), measurer, default_at=None) as running:
        running.run_next()
        assert [t.number for t in running.trials() if t.measurement.ok] == [0]
    assert _sketches(measurer) == [*(f"s{n}" for n in range(15)), DEFAULT_SKETCH]


@pytest.mark.parametrize("default_at", [0, 1, None])
def test_a_search_has_a_result_after_its_first_trial(default_at: int | None) -> None:
    def interrupted() -> StopReason | None:
        return StopReason.TIME_BUDGET if running.has_result else None

    measurer = MemoryMeasurer(lambda _: 1.0)
    with rounds(Diary(), measurer, interrupted=interrupted, default_at=default_at) as running:
        assert running.run_next() is StopReason.TIME_BUDGET
        assert running.num_measured == 1
