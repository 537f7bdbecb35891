"""The batches of a coordinator's process that the scheduler has, and their answers.

The connection may be lost, and a scheduler may be replaced. So the scheduler is asked every second
which batches it lacks; as the messages keep their order, such a batch is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from threading import Event
from time import monotonic
from typing import Any, TypeAlias

import structlog
from distributed import Client
from distributed.comm.core import CommClosedError
from tornado.ioloop import PeriodicCallback

from workers.engine import batch_protocol as protocol

_log = structlog.get_logger()

_CHECK_SECS = 1.0
"""Interval at which the scheduler is asked about batches: a lost one costs as much. Chosen."""
_SILENCE_SECS = 15.0
"""A scheduler that did not answer for so long gets a new connection: it may know this one no more.
It is longer than a scheduler stands still on a busy host. Chosen.
"""


class Loss(Enum):
    """Why there is no answer."""

    WORKER = auto()  # the worker of the batch is gone
    CONNECTION = auto()  # the scheduler does not have the batch


Answer: TypeAlias = str | Loss


@dataclass(frozen=True, slots=True)
class Slots:
    """The workers of a label, and by owner the number of requests that share them."""

    num_workers: int = 0
    requesters: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_requesters(self) -> int:
        """The number of requests that share the workers."""
        return sum(self.requesters.values())

    def share(self, owner: str) -> float:
        """Return how many workers a request of an owner may expect beside the others.

        Owners share the workers evenly, and so do the requests of an owner its part.
        """
        num_of_owner = self.requesters.get(owner, 0)
        num_owners = len(self.requesters) + (not num_of_owner)
        return self.num_workers / num_owners / max(1, num_of_owner)


@dataclass(frozen=True, slots=True)
class Ticket:
    """What decides when a batch has its turn; see `workers.engine.batch_queue.Batch`."""

    owner: str
    requester: str
    priority: int
    secs: float


class BatchClient:
    """Sends batches to the scheduler of a Dask client; safe to use from several threads."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client
        self._numbers = count()
        # Changed by the thread of the client alone.
        self._awaited: dict[int, Callable[[Answer], None]] = {}
        self._slots: Mapping[str, Slots] = {}
        self._has_slots = Event()
        self._heard_at = monotonic()
        self._client._stream_handlers |= {
            protocol.ANSWER: self._answer,
            protocol.SLOTS: self._note_slots,
        }
        self._checks = PeriodicCallback(self._check, 1000 * _CHECK_SECS)
        assert client.loop is not None
        self._loop = client.loop
        self._loop.add_callback(self._begin)

    @property
    def is_connected(self) -> bool:
        """Return whether there is a connection to the scheduler now."""
        return bool(self._client.status == "running")

    @property
    def is_closed(self) -> bool:
        """Return whether the client was closed, or did not find its scheduler again."""
        # It ends with an error if connecting again fails in a way that Dask does not expect.
        report = self._client._handle_report_task
        has_failed = report is not None and report.done()
        return has_failed or self._client.status in {"closing", "closed"}

    def slots(self, timeout_secs: float) -> Mapping[str, Slots]:
        """Return the workers by label, as the scheduler told last.

        Args:
            timeout_secs: How long to wait if it has not told yet.
        """
        self._has_slots.wait(timeout_secs)
        return self._slots

    def submit(
        self, label: str, ticket: Ticket, work: Mapping[str, str], done: Callable[[Answer], None]
    ) -> int:
        """Send a batch; return its number.

        Args:
            done: Called once, from another thread, with the answer or why there is none.
        """
        number = next(self._numbers)
        message = {
            "op": protocol.SUBMIT,
            "number": number,
            "label": label,
            "ticket": {name: getattr(ticket, name) for name in Ticket.__slots__},
            "work": dict(work),
        }
        self._loop.add_callback(self._submit, number, message, done)
        return number

    def drop(self, numbers: Collection[int]) -> None:
        """Wait for batches no longer; those that have not begun never do."""
        if numbers:
            self._loop.add_callback(self._drop, list(numbers))

    def _begin(self) -> None:
        self._checks.start()
        self._check()

    def _submit(self, number: int, message: Mapping[str, Any], done: Callable[..., None]) -> None:
        self._awaited[number] = done
        self._send(message)

    def _drop(self, numbers: Collection[int]) -> None:
        for number in numbers:
            self._awaited.pop(number, None)
        self._send({"op": protocol.DROP, "numbers": numbers})

    def _send(self, message: Mapping[str, Any]) -> None:
        # A message that a lost connection took along is found by the next check.
        with suppress(CommClosedError):
            self._client._send_to_scheduler_safe(message)

    def _answer(self, number: int, answer: str | None) -> None:
        if (done := self._awaited.pop(number, None)) is not None:
            done(Loss.WORKER if answer is None else answer)

    def _check(self) -> None:
        if self.is_closed:
            self._checks.stop()
        if not self.is_connected:
            self._heard_at = monotonic()
            return
        if monotonic() - self._heard_at > _SILENCE_SECS:
            _log.warning("the scheduler does not answer: connecting again")
            self._heard_at = monotonic()
            self._client.scheduler_comm.comm.abort()
            return
        self._send({"op": protocol.CHECK, "numbers": list(self._awaited)})

    def _note_slots(
        self, slots: Mapping[str, tuple[int, Mapping[str, int]]], unknown: Collection[int]
    ) -> None:
        self._heard_at = monotonic()
        self._slots = {label: Slots(*numbers) for label, numbers in slots.items()}
        self._has_slots.set()
        for number in unknown:
            if (done := self._awaited.pop(number, None)) is not None:
                done(Loss.CONNECTION)
