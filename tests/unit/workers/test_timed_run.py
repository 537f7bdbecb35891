from __future__ import annotations

from collections.abc import Sequence

from workers.libraries.library import Array, Call
from workers.timed_run import LibraryRun


class Threads:
    """A library that notes with how many threads it is to run."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def start(self, num_threads: int) -> str:
        self.counts.append(num_threads)
        return "Threads 1.0"

    def prepare(self, operator: str, inputs: Sequence[Array]) -> Call:
        raise NotImplementedError


class Fixed:
    """A run whose samples are known; `is_cold` is kept."""

    def __init__(self, secs: float) -> None:
        self.first_secs = secs
        self.was_cold: list[bool] = []

    def check(self) -> None:
        raise ValueError(f"that of {self.first_secs}")

    def sample(self, *, is_cold: bool = False) -> float:
        self.was_cold.append(is_cold)
        return self.first_secs


def test_a_library_is_as_fast_as_with_its_best_number_of_threads() -> None:
    library, one, two = Threads(), Fixed(0.5), Fixed(4.0)
    run = LibraryRun(library, {1: one, 2: two})
    assert run.sample(is_cold=True) == 0.5
    assert library.counts == [1, 2], "it is left with those of the kernel beside it"
    assert one.was_cold == two.was_cold == [True]
    one.first_secs, two.first_secs = 3.0, 2.0
    assert run.sample() == 2.0
    assert run.first_secs == 4.0
