"""With little time, fewer kernels are timed at fewer sizes, which are still spread."""

from __future__ import annotations

from tests.unit.tuner.shapes.test_tune_shapes import FormulaMeasurer, found, tuned
from tuner.shapes.choice_budget import BEST_OF_EACH, ChoiceBudget
from tuner.shapes.sizes import ends_first


class Clock:
    """Advances at each reading."""

    def __init__(self, step_secs: float) -> None:
        self.secs = 0.0
        self._step_secs = step_secs

    def __call__(self) -> float:
        self.secs += self._step_secs
        return self.secs


def test_the_least_and_the_greatest_size_come_first() -> None:
    sizes = [{"M": m} for m in range(1, 8)]
    assert [size["M"] for size in ends_first(sizes)] == [7, 1, 4, 2, 5, 3, 6]
    assert ends_first(sizes[:1]) == sizes[:1]
    assert ends_first([]) == []


def test_without_a_limit_everything_is_affordable() -> None:
    budget = ChoiceBudget()
    budget.reserve(1e9)
    assert budget.affords(1e9)
    assert budget.best_of_each(8, 1e9) == BEST_OF_EACH


def test_schedules_of_each_size_are_as_many_as_there_is_time_for() -> None:
    budgets = [ChoiceBudget(secs, clock=lambda: 0.0) for secs in (0.001, 5.0, 15.0, 150.0)]
    assert [budget.best_of_each(8, 0.04) for budget in budgets] == [1, 1, 2, BEST_OF_EACH]


def test_what_is_reserved_is_not_spent() -> None:
    budget = ChoiceBudget(10.0, clock=lambda: 0.0)
    assert budget.affords(10.0)
    budget.reserve(4.0)
    assert budget.affords(6.0)
    assert not budget.affords(6.1)


def test_little_time_gives_kernels_by_fewer_sizes() -> None:
    _, sizes, _ = tuned()
    over, short, long = (
        found(FormulaMeasurer(), ChoiceBudget(max_secs, clock=Clock(1.0)))
        for max_secs in (1.0, 90.0, 9000.0)
    )
    assert len(over.matrix.kernels) == 1
    assert [dict(size) for size in over.matrix.sizes] == [sizes[-1]]
    assert {1, sizes[-1]["M"]} <= {size["M"] for size in short.matrix.sizes}
    assert len(over.matrix.sizes) < len(short.matrix.sizes) < len(long.matrix.sizes)
    assert set(map(str, long.matrix.sizes)) > set(map(str, sizes))
