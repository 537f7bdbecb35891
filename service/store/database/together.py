"""Group commit: transactions of several threads as one.

Many jobs store their trials at the same time, and one transaction writes at a time. A thread whose
turn comes runs the acts of all threads that wait, in one transaction: the wait for the lock and the
commit are paid once. Each act has a savepoint, so that an error undoes that act alone. A thread
returns when the transaction with its act is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

from sqlalchemy.orm import Session

from service.store.database.database import Database

ResultT = TypeVar("ResultT")

_MAX_ACTS = 64
"""Acts in a transaction: others wait for its end. Chosen."""


class _Ticket(Generic[ResultT]):
    """An act that waits for its turn, then its result or its error."""

    def __init__(self, act: Callable[[Session], ResultT]) -> None:
        self.is_done = False
        self._act = act
        self._result: ResultT | None = None
        self._error: Exception | None = None

    def run(self, session: Session) -> None:
        self._result = self._act(session)

    def run_beside_others(self, session: Session) -> None:
        """Run the act; its error undoes it alone."""
        try:
            with session.begin_nested():
                self.run(session)
        except Exception as error:
            self._error = error

    def fail(self, error: Exception) -> None:
        self._error = self._error or error

    def result(self) -> ResultT:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # the act returned it


class GroupCommit:
    """Runs acts of several threads in common transactions of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Ticket[Any]] = []
        self._lock = Lock()  # of the list
        self._turn = Lock()

    def write(self, act: Callable[[Session], ResultT]) -> ResultT:
        """Run `act` in a transaction, which may contain acts of other threads; return its result.

        Raises:
            Exception: What `act` raises, which undoes it; or the error of the transaction.
        """
        ticket = _Ticket(act)
        with self._lock:
            self._waiting.append(ticket)
        with self._turn:
            while not ticket.is_done:
                self._commit()
        return ticket.result()

    def _commit(self) -> None:
        with self._lock:
            tickets, self._waiting = self._waiting[:_MAX_ACTS], self._waiting[_MAX_ACTS:]
        try:
            self._run(tickets)
        except Exception as error:
            for ticket in tickets:
                ticket.fail(error)
        for ticket in tickets:
            ticket.is_done = True

    def _run(self, tickets: Sequence[_Ticket[Any]]) -> None:
        with self._database.write() as session:
            if len(tickets) == 1:
                tickets[0].run(session)
            else:
                for ticket in tickets:
                    ticket.run_beside_others(session)
