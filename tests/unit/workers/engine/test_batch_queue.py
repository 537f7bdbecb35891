"""The queue of batches against a model of the workers: what is sent, recalled and returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workers.engine.batch_queue import Batch, BatchQueue


class Fleet:
    """Workers as they are: each runs one batch, and keeps others that it got in its own order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.numbers = count()
        self.at_worker: dict[str, list[Batch]] = {}
        self.asked_back: list[Batch] = []
        self.queue = BatchQueue(self.run, self.asked_back.append, lambda: self.now)

    def run(self, batch: Batch) -> None:
        assert batch.worker is not None
        first, *others = [*self.at_worker[batch.worker], batch]
        # A worker begins those of the highest priority first, as the message has it.
        others.sort(key=lambda b: -b.message["priority"])
        self.at_worker[batch.worker] = [first, *others]

    def join(self, name: str) -> None:
        self.at_worker[name] = []
        self.queue.join(name)

    def leave(self, name: str) -> list[Batch]:
        del self.at_worker[name]
        self.asked_back[:] = [batch for batch in self.asked_back if batch.worker != name]
        return self.queue.leave(name)

    def add(
        self, owner: str = "a", requester: str = "", priority: int = 0, secs: float = 1.0
    ) -> Batch:
        batch = Batch("c", next(self.numbers), owner, requester or owner, priority, secs, {})
        self.queue.add(batch)
        return batch

    def end(self, name: str) -> Batch:
        batch = self.at_worker[name].pop(0)
        self.queue.ended(batch)
        return batch

    def answer_recalls(self) -> list[Batch]:
        """Return what was asked back, unless it runs; return those that came back."""
        asked, self.asked_back[:] = list(self.asked_back), []
        returned = []
        for batch in asked:
            if batch.worker is not None and batch in self.at_worker[batch.worker][1:]:
                self.at_worker[batch.worker].remove(batch)
                self.queue.returned(batch)
                returned.append(batch)
        return returned

    def shares(self) -> Counter[str]:
        return Counter(batch.owner for batches in self.at_worker.values() for batch in batches)


def test_a_batch_goes_to_an_idle_worker_before_it_waits_at_a_busy_one() -> None:
    fleet = Fleet()
    fleet.join("w1")
    fleet.join("w2")
    batches = [fleet.add() for _ in range(5)]
    assert [batch.worker for batch in batches] == ["w1", "w2", "w1", "w2", None]
    fleet.end("w2")
    assert batches[4].worker == "w2"


def test_a_batch_that_waits_at_a_busy_worker_is_recalled_for_an_idle_one() -> None:
    fleet = Fleet()
    fleet.join("w1")
    fleet.join("w2")
    first, _, third = (fleet.add() for _ in range(3))
    fleet.end("w2")
    assert fleet.asked_back == [third]
    assert fleet.answer_recalls() == [third]
    assert (first.worker, third.worker) == ("w1", "w2")


def test_a_recall_that_comes_too_late_changes_nothing() -> None:
    fleet = Fleet()
    fleet.join("w1")
    fleet.join("w2")
    _, _, third = (fleet.add() for _ in range(3))
    fleet.end("w2")
    fleet.end("w1")  # and it begins the third
    assert fleet.answer_recalls() == []
    assert fleet.end("w1") is third
    assert fleet.add().worker is not None


def test_owners_get_as_many_workers_whatever_the_number_of_their_requests() -> None:
    fleet = Fleet()
    for number in range(8):
        fleet.join(f"w{number}")
    for request in range(6):
        for _ in range(16):
            fleet.add("many", f"many{request}")
    for _ in range(16):
        fleet.add("few", "few0")
    for turn in range(16):
        fleet.end(f"w{turn % 8}")
    assert fleet.shares() == {"many": 8, "few": 8}


def test_requests_of_an_owner_share_its_part() -> None:
    fleet = Fleet()
    for request in range(4):
        for _ in range(16):
            fleet.add("a", f"a{request}")
    for number in range(8):
        fleet.join(f"w{number}")
    requesters = [b.requester for batches in fleet.at_worker.values() for b in batches]
    assert Counter(requesters) == {f"a{request}": 4 for request in range(4)}


def test_requests_are_counted_by_owner_at_workers_and_in_the_queue() -> None:
    fleet = Fleet()
    fleet.join("w")
    for owner, requester in [("a", "a0"), ("a", "a0"), ("a", "a0"), ("a", "a1"), ("b", "b0")]:
        fleet.add(owner, requester)
    assert fleet.queue.num_requesters == {"a": 2, "b": 1}


def test_what_an_owner_cannot_use_is_left_to_the_others() -> None:
    fleet = Fleet()
    fleet.add("few")
    for _ in range(20):
        fleet.add("many")
    for number in range(4):
        fleet.join(f"w{number}")
    assert fleet.shares() == {"few": 1, "many": 7}


def test_a_new_request_has_its_first_batch_run_before_the_others_are_done() -> None:
    fleet = Fleet()
    fleet.join("w1")
    for request in range(3):
        for _ in range(16):
            fleet.add("a", f"a{request}")
    new = fleet.add("a", "new")
    assert new in [fleet.end("w1") for _ in range(8)]


def test_a_batch_of_an_owner_with_fewer_running_ones_overtakes_one_that_waits_at_a_worker() -> None:
    fleet = Fleet()
    for name in ("w1", "w2", "w3"):
        fleet.join(name)
    for _ in range(10):
        fleet.add("many")
    fleet.now = 0.5
    fleet.end("w1")
    few = [fleet.add("few") for _ in range(3)]
    # w2 has run its batch for longest. With two of three workers next, the owner has its part.
    assert [batch.worker for batch in few] == ["w2", "w3", None]
    assert [batch.owner for batch in fleet.at_worker["w2"]] == ["many", "few", "many"]
    fleet.end("w2")
    assert fleet.at_worker["w2"][0] is few[0]


def test_no_batch_is_put_behind_one_that_may_hang() -> None:
    fleet = Fleet()
    fleet.join("w1")
    for _ in range(10):
        fleet.add("many", secs=1.0)
    fleet.now = 2.5
    assert fleet.add("few").worker is None


def test_an_urgent_batch_goes_before_others_to_the_worker_that_is_free_first() -> None:
    fleet = Fleet()
    for name, secs in (("w1", 9.0), ("w2", 2.0), ("w3", 5.0)):
        fleet.join(name)
        fleet.add(secs=secs)
    for _ in range(10):
        fleet.add()
    urgent = [fleet.add("b", priority=1) for _ in range(4)]
    assert [batch.worker for batch in urgent] == ["w2", "w3", "w1", None]
    fleet.end("w2")
    assert fleet.at_worker["w2"][0] is urgent[0]
    assert urgent[3].worker == "w2"  # the place is free again; w2 has one of a lower priority


def test_the_batch_that_runs_leaves_with_its_worker_and_others_return() -> None:
    fleet = Fleet()
    fleet.join("w1")
    runs, waits, dropped = fleet.add(), fleet.add(), fleet.add()
    fleet.queue.drop(dropped)
    assert fleet.leave("w1") == [runs]
    assert [batch.worker for batch in (waits, dropped)] == [None, None]
    fleet.join("w2")
    assert [batch.worker for batch in (waits, dropped)] == ["w2", None]


def test_a_dropped_batch_frees_the_place_where_it_waits() -> None:
    fleet = Fleet()
    fleet.join("w1")
    runs, waits, later = fleet.add(), fleet.add(), fleet.add()
    fleet.queue.drop(waits)
    fleet.queue.drop(runs)  # has no effect before its end
    assert fleet.answer_recalls() == [waits]
    assert later.worker == "w1"
    assert fleet.at_worker["w1"] == [runs, later]


class QueueMachine(RuleBasedStateMachine):
    """Any order of joins, losses, batches, ends, late answers to recalls."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()
        self.open: set[Batch] = set()

    @initialize()
    def begin(self) -> None:
        self.fleet.join("w")

    @rule(name=st.sampled_from("wxyz"))
    def join(self, name: str) -> None:
        if name not in self.fleet.at_worker:
            self.fleet.join(name)

    @rule(
        owner=st.sampled_from("ab"), request=st.integers(0, 1), priority=st.sampled_from([0, 0, 1])
    )
    def add(self, owner: str, request: int, priority: int) -> None:
        self.open.add(self.fleet.add(owner, f"{owner}{request}", priority))

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.fleet.at_worker:
            name = data.draw(st.sampled_from(sorted(self.fleet.at_worker)))
            self.open -= set(self.fleet.leave(name))

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if busy := [name for name, batches in self.fleet.at_worker.items() if batches]:
            self.open.remove(self.fleet.end(data.draw(st.sampled_from(sorted(busy)))))

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        if self.open:
            batches = sorted(self.open, key=lambda batch: batch.number)
            batch = data.draw(st.sampled_from(batches))
            self.fleet.queue.drop(batch)
            if batch.worker is None:
                self.open.remove(batch)

    @precondition(lambda self: self.fleet.asked_back)
    @rule()
    def answer_recalls(self) -> None:
        for batch in self.fleet.answer_recalls():
            if batch.is_dropped:
                self.open.remove(batch)

    @invariant()
    def workers_have_what_the_queue_gave_them(self) -> None:
        at_workers = [b for batches in self.fleet.at_worker.values() for b in batches]
        assert len(at_workers) == len(set(at_workers))
        assert set(at_workers) <= self.open
        for name, batches in self.fleet.at_worker.items():
            assert {batch.worker for batch in batches} <= {name}

    @invariant()
    def no_worker_is_idle_while_a_batch_waits(self) -> None:
        waiting = [batch for batch in self.open if batch.worker is None]
        loads = [len(batches) for batches in self.fleet.at_worker.values()]
        assert not waiting or min(loads, default=2) >= 2

    @invariant()
    def waiting_batches_are_recalled_for_idle_workers(self) -> None:
        if not self.fleet.asked_back:
            loads = [len(batches) for batches in self.fleet.at_worker.values()]
            assert not loads or min(loads) > 0 or max(loads) < 2

    def teardown(self) -> None:
        """Every batch that was not lost or dropped comes to its end."""
        if not self.fleet.at_worker:
            self.fleet.join("w")
        while busy := [name for name, batches in self.fleet.at_worker.items() if batches]:
            self.answer_recalls()
            for name in busy:
                if self.fleet.at_worker[name]:
                    self.open.remove(self.fleet.end(name))
        assert self.open == set()
        assert not self.fleet.queue.num_requesters


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueue = QueueMachine.TestCase


@given(requests=st.lists(st.integers(1, 12), min_size=2, max_size=5))
@settings(deadline=None, max_examples=30)
def test_owners_with_enough_work_get_equally_many_batches_done(requests: list[int]) -> None:
    fleet = Fleet()
    for number in range(10):
        fleet.join(f"w{number}")
    for owner, num in enumerate(requests):
        for number in range(400):
            fleet.add(str(owner), f"{owner}/{number % num}")
    for turn in range(40):
        fleet.end(f"w{turn % 10}")
    ended = Counter(fleet.end(f"w{turn % 10}").owner for turn in range(300))
    assert max(ended.values()) <= 1.2 * min(ended.values())


class Rounds:
    """Jobs that measure round after round, each of 16 batches, on workers with a clock.

    Args:
        num_ahead: The rounds of a job that are in flight.
    """

    ANSWER_SECS = 0.1  # until the next round is sent, on a busy host

    def __init__(self, num_workers: int, num_jobs: dict[str, int], num_ahead: int) -> None:
        self.fleet = Fleet()
        self.ended: Counter[str] = Counter()
        self._rng = Random(0)
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._left: Counter[tuple[str, int]] = Counter()
        self._running: dict[str, Batch] = {}
        for number in range(num_workers):
            self.fleet.join(f"w{number}")
        for owner, num in num_jobs.items():
            for job in range(num):
                for number in range(num_ahead):
                    self._at(
                        self._rng.random(), partial(self._send, owner, f"{owner}{job}", number)
                    )

    def run(self, secs: float) -> None:
        """Let time pass."""
        end = self.fleet.now + secs
        while self._coming and self._coming[0][0] < end:
            self.fleet.now, _, act = heappop(self._coming)
            act()
            for name, (first, *_) in filter(itemgetter(1), self.fleet.at_worker.items()):
                if self._running.get(name) is not first:
                    self._running[name] = first
                    self._at(self._rng.uniform(0.5, 1.5), partial(self._end, name))

    def _at(self, secs: float, act: Callable[[], None]) -> None:
        heappush(self._coming, (self.fleet.now + secs, next(self._order), act))

    def _send(self, owner: str, job: str, number: int) -> None:
        for _ in range(16):
            self._left[job, number] += 1
            self.fleet.add(owner, job).message["round"] = number

    def _end(self, name: str) -> None:
        batch = self.fleet.end(name)
        self.ended[batch.owner] += 1
        round_key = batch.requester, batch.message["round"]
        self._left[round_key] -= 1
        if not self._left[round_key]:
            send = partial(self._send, batch.owner, batch.requester, round_key[1])
            self._at(self.ANSWER_SECS, send)


def test_an_owner_with_few_jobs_gets_its_share_if_they_have_two_rounds_in_flight() -> None:
    """With one round its jobs wait for their slowest batches, and it gets about a third."""
    shares = []
    for num_ahead in (1, 2):
        rounds = Rounds(40, {"many": 6, "few": 2}, num_ahead)
        rounds.run(10.0)
        rounds.ended.clear()
        rounds.run(40.0)
        shares.append(rounds.ended["few"] / rounds.ended.total())
    assert shares[0] < 0.4
    assert 0.45 < shares[1] < 0.55
