"""The queue of batches for the workers of one label, and which worker runs which batch.

A worker has at most two batches: one runs, one waits there, so that the worker is not idle between
them. A batch goes to an idle worker if there is one. If a worker becomes idle while batches wait
at others, one of those is recalled for it.

Order: the highest priority; then the owner with the fewest batches at workers; then the requester
of that owner with the fewest; then the one whose last turn is longest ago. So each owner gets as
many workers as any other, and what an owner cannot use is left to the others (max-min fairness; D.
Bertsekas and R. Gallager, Data Networks, 1992, section 6.5.2). A batch of a higher priority than
those that wait at workers goes before them, to the worker that is expected to be free first.

An owner with few jobs has few batches, which would wait at workers as long as they run, and so use
half of the workers that they could. So a batch of an owner with fewer running batches than another
goes before one of the other that waits at a worker.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")

_OVERDUE = 2.0
"""A batch that runs for so many times its expected time may hang: none is put behind it. Chosen."""


@dataclass(eq=False, slots=True)
class Batch:
    """A batch of a client.

    Attributes:
        client: The name of the client that waits for it.
        number: Its number among those of the client.
        owner: Whom its requester belongs to.
        requester: The request that it is a part of, unique among all clients.
        priority: Higher ones go first.
        secs: How long it is expected to take; 0 if that is unknown.
        message: What its worker gets.
        worker: The worker that has it; None while it waits in the queue.
        is_dropped: Whether its client waits for it no more.
        is_recalled: Whether its worker was asked to return it.
        is_ahead: Whether it is put before others at its worker, or runs there and none is: each
            worker that is busy has one such batch.
    """

    client: str
    number: int
    owner: str
    requester: str
    priority: int
    secs: float
    message: dict[str, Any]
    worker: str | None = None
    is_dropped: bool = False
    is_recalled: bool = False
    is_ahead: bool = False


@dataclass(slots=True)
class _Worker:
    """A worker: its first batch runs, the others wait there in their order."""

    batches: list[Batch] = field(default_factory=list)
    began_at: float = 0.0

    @property
    def free_at(self) -> float:
        """When its running batch is expected to end."""
        return self.began_at + self.batches[0].secs if self.batches else self.began_at


_Key: TypeAlias = tuple[int, str, str]
"""The priority, the owner and the requester of batches that wait together."""


class BatchQueue:
    """The batches and the workers of one label.

    Args:
        run: Sends a batch to its worker.
        recall: Asks the worker of a batch to return it, unless it runs; see `returned`.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        run: Callable[[Batch], None],
        recall: Callable[[Batch], None],
        clock: Callable[[], float],
    ) -> None:
        self._run = run
        self._recall = recall
        self._clock = clock
        self._workers: dict[str, _Worker] = {}
        # Workers with no batch and with one, those that have been so for longest first.
        self._idle: dict[str, None] = {}
        self._single: dict[str, None] = {}
        # Those that run a batch, the one that began first in front.
        self._busy: dict[str, None] = {}
        self._waiting: dict[_Key, deque[Batch]] = {}
        self._of_owner: Counter[str] = Counter()  # batches at workers
        self._ahead_of_owner: Counter[str] = Counter()  # see `Batch.is_ahead`
        self._of_requester: Counter[tuple[str, str]] = Counter()  # by owner and requester
        self._put_off: Counter[int] = Counter()  # priorities of batches that wait at workers
        self._num_recalled = 0

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return len(self._workers)

    @property
    def num_requesters(self) -> Counter[str]:
        """The number of requests with batches at workers or in the queue, by their owners."""
        waiting = {(owner, requester) for _, owner, requester in self._waiting}
        return Counter(owner for owner, _ in waiting | self._of_requester.keys())

    def join(self, worker: str) -> None:
        """Add a worker without batches."""
        self._workers[worker] = _Worker(began_at=self._clock())
        self._idle[worker] = None
        self._assign()

    def leave(self, worker: str) -> list[Batch]:
        """Remove a worker; return its batches that left with it.

        That which ran is lost. Those that waited there return to the queue, unless dropped.
        """
        batches = self._workers.pop(worker).batches
        for names in (self._idle, self._single, self._busy):
            names.pop(worker, None)
        for position, batch in enumerate(batches):
            self._take_from_worker(batch, is_running=not position)
        for batch in reversed(batches[1:]):
            self._put_back(batch)
        self._assign()
        return [batch for n, batch in enumerate(batches) if not n or batch.is_dropped]

    def add(self, batch: Batch) -> None:
        """Add a batch; it goes to a worker at once if one is free."""
        self._waiting.setdefault(_key(batch), deque()).append(batch)
        self._assign()

    def drop(self, batch: Batch) -> None:
        """Remove a batch; one at a worker stays there until the worker has ended or returned it."""
        batch.is_dropped = True
        if batch.worker is None:
            self._remove(batch)
        elif self._workers[batch.worker].batches[0] is not batch:
            self._ask_back(batch)

    def ended(self, batch: Batch) -> None:
        """Note that the worker of a batch has ended it."""
        self._free(batch)
        self._assign()

    def returned(self, batch: Batch) -> None:
        """Note that the worker of a batch has returned it without running it."""
        self._free(batch)
        self._put_back(batch)
        self._assign()

    def _free(self, batch: Batch) -> None:
        name = batch.worker
        assert name is not None
        worker = self._workers[name]
        is_running = worker.batches[0] is batch
        worker.batches.remove(batch)
        if batch.is_ahead and not is_running:
            self._put_ahead(worker.batches[0])
        self._take_from_worker(batch, is_running=is_running)
        if is_running:
            self._busy.pop(name)
            worker.began_at = self._clock()
            if worker.batches:
                # It has begun: if it was recalled, that came too late.
                self._withdraw_recall(worker.batches[0])
                _count(self._put_off, worker.batches[0].priority, -1)
                self._begin(worker.batches[0], name)
        self._sort(name)

    def _begin(self, batch: Batch, name: str) -> None:
        """Note that a worker runs a batch from now on."""
        self._busy[name] = None
        self._put_ahead(batch)

    def _put_ahead(self, batch: Batch) -> None:
        if not batch.is_ahead:
            batch.is_ahead = True
            _count(self._ahead_of_owner, batch.owner, 1)

    def _put_behind(self, batch: Batch) -> None:
        if batch.is_ahead:
            batch.is_ahead = False
            _count(self._ahead_of_owner, batch.owner, -1)

    def _sort(self, name: str) -> None:
        """Put a worker among those with as many batches."""
        num = len(self._workers[name].batches)
        for batches, names in enumerate((self._idle, self._single)):
            if num == batches:
                names.setdefault(name)
            else:
                names.pop(name, None)

    def _take_from_worker(self, batch: Batch, *, is_running: bool) -> None:
        """Count a batch no longer as one at a worker."""
        batch.worker = None
        _count(self._of_owner, batch.owner, -1)
        _count(self._of_requester, (batch.owner, batch.requester), -1)
        self._put_behind(batch)
        if not is_running:
            _count(self._put_off, batch.priority, -1)
        self._withdraw_recall(batch)

    def _withdraw_recall(self, batch: Batch) -> None:
        self._num_recalled -= batch.is_recalled
        batch.is_recalled = False

    def _put_back(self, batch: Batch) -> None:
        """Return a batch to the front of the queue, unless it was dropped."""
        if not batch.is_dropped:
            self._waiting.setdefault(_key(batch), deque()).appendleft(batch)

    def _remove(self, batch: Batch) -> None:
        key = _key(batch)
        self._waiting[key].remove(batch)
        if not self._waiting[key]:
            del self._waiting[key]

    def _assign(self) -> None:
        """Give batches to workers, and recall some for workers that would be idle."""
        while self._waiting:
            key = min(self._waiting, key=self._rank)
            name = next(iter(self._idle or self._single), None) or self._overtaken(key[0])
            goes_ahead = name is None
            name = name or self._overtaken_by_owner(key)
            if name is None:
                return
            batches = self._waiting.pop(key)
            batch = batches.popleft()
            if batches:
                self._waiting[key] = batches  # behind all others of its rank
            self._give(batch, name, goes_ahead=goes_ahead)
        if len(self._idle) > self._num_recalled < self._put_off.total():
            self._recall_for_idle()

    def _rank(self, key: _Key) -> tuple[int, int, int]:
        """Return the place of batches; the last turn of equal ones decides, by their order."""
        priority, owner, requester = key
        return -priority, self._of_owner[owner], self._of_requester[owner, requester]

    def _overtaken(self, priority: int) -> str | None:
        """Return the worker that is free first among those where only lower priorities wait."""
        if not any(put_off < priority for put_off in self._put_off):
            return None
        return min(
            (
                name
                for name, worker in self._workers.items()
                if all(batch.priority < priority for batch in worker.batches[1:])
            ),
            key=lambda name: self._workers[name].free_at,
            default=None,
        )

    def _overtaken_by_owner(self, key: _Key) -> str | None:
        """Return a worker where a batch of an owner with more running batches waits.

        The one that has run its batch for longest, unless that may hang.
        """
        priority, owner, _ = key
        num_ahead = self._ahead_of_owner[owner]
        if num_ahead >= max(self._ahead_of_owner.values(), default=0):
            return None
        now = self._clock()
        for name in self._busy:
            runs, *waiting = self._workers[name].batches
            if (
                len(waiting) == 1
                and waiting[0].priority == priority
                and num_ahead < self._ahead_of_owner[waiting[0].owner]
                and self._of_owner[owner] < self._of_owner[waiting[0].owner]
                and now <= self._workers[name].began_at + _OVERDUE * runs.secs
            ):
                return name
        return None

    def _give(self, batch: Batch, name: str, *, goes_ahead: bool) -> None:
        batch.worker = name
        _count(self._of_owner, batch.owner, 1)
        _count(self._of_requester, (batch.owner, batch.requester), 1)
        worker = self._workers[name]
        # A worker begins its waiting batches in this order, too.
        rank = batch.message["priority"] = batch.priority + 0.5 * goes_ahead
        if worker.batches:
            later = (n for n, b in enumerate(worker.batches) if n and b.message["priority"] < rank)
            worker.batches.insert(next(later, len(worker.batches)), batch)
            _count(self._put_off, batch.priority, 1)
            if goes_ahead:
                self._put_behind(worker.batches[0])
                self._put_ahead(batch)
        else:
            worker.batches.append(batch)
            worker.began_at = self._clock()
            self._begin(batch, name)
        self._sort(name)
        self._run(batch)

    def _recall_for_idle(self) -> None:
        """Recall as many batches as there are idle workers, from those that run for longest."""
        behind = [worker for worker in self._workers.values() if len(worker.batches) > 1]
        behind.sort(key=lambda worker: -worker.free_at)
        for worker in behind:
            if len(self._idle) <= self._num_recalled:
                return
            if not worker.batches[-1].is_recalled:
                self._ask_back(worker.batches[-1])

    def _ask_back(self, batch: Batch) -> None:
        if not batch.is_recalled:
            batch.is_recalled = True
            self._num_recalled += 1
            self._recall(batch)


def _key(batch: Batch) -> _Key:
    return batch.priority, batch.owner, batch.requester


def _count(counter: Counter[ItemT], item: ItemT, num: int) -> None:
    """Change a count, and forget it at zero."""
    counter[item] += num
    if not counter[item]:
        del counter[item]
