from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.coordinator.even_share import PATIENCE_SECS, EvenShare
from service.store.jobs.claims import Look


class Process:
    """A process of coordinators that polls the queue."""

    def __init__(self, seats: int = 1000) -> None:
        self.now = 0.0
        self.num_own = 0
        self._seats = seats
        self._share = EvenShare(lambda: self.now)

    def poll(self, now: float, num_open: int, num_free: int, num_processes: int) -> int:
        """Claim, as a coordinator does; return how many jobs."""
        self.now = now
        most = self._share.most(Look(num_open, num_free, 0, self.num_own), num_processes)
        taken = min(most, num_free, self._seats - self.num_own)
        self.num_own += taken
        return taken


@given(num_jobs=st.integers(1, 300), num_processes=st.integers(1, 6))
def test_processes_that_poll_in_turn_run_as_many_jobs_each(
    num_jobs: int, num_processes: int
) -> None:
    processes = [Process() for _ in range(num_processes)]
    num_free = num_jobs
    for process in processes:
        num_free -= process.poll(0.0, num_jobs, num_free, num_processes)
    assert num_free == 0
    assert max(p.num_own for p in processes) <= -(-num_jobs // num_processes)


def test_the_others_share_the_jobs_of_one_that_ended() -> None:
    first, second = Process(), Process()
    first.num_own = second.num_own = 13
    assert first.poll(0.0, 40, 14, 2) == 7
    assert second.poll(0.1, 40, 7, 2) == 7


def test_jobs_that_no_other_takes_are_claimed_after_a_while() -> None:
    full, process = Process(seats=2), Process()
    assert full.poll(0.0, 8, 8, 2) == 2
    assert process.poll(0.0, 8, 6, 2) == 4
    assert process.poll(PATIENCE_SECS / 2, 8, 2, 2) == 0
    assert process.poll(PATIENCE_SECS, 8, 2, 2) == 2
    # The time begins anew once no job was free.
    assert process.poll(10.0, 8, 0, 2) == 0
    assert process.poll(20.0, 9, 1, 2) == 0
    assert process.poll(20.0 + PATIENCE_SECS, 9, 1, 2) == 1


def test_urgent_jobs_are_not_left_to_others() -> None:
    share = EvenShare(lambda: 0.0)
    assert share.most(Look(num_open=8, num_free=3, num_urgent=1, num_own=5), 2) == 1
