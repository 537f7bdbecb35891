"""Submit jobs. Independent of HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.request_validation import read_rules, read_target, read_workload
from service.store import targets, warm_starts, workloads
from service.store.database.database import Database
from service.store.jobs import idempotency, jobs, quotas
from service.store.jobs.jobs import JobRow, NewJob
from service.wire.models import JobRead
from service.wire.requests import JobCreate, JobDescription, SearchOptions

BodyT = TypeVar("BodyT")
ResultT = TypeVar("ResultT")


def submit_job(
    database: Database,
    request: JobCreate,
    idempotency_key: str | None = None,
    *,
    caller: Caller = ANYBODY,
) -> tuple[JobRead, bool]:
    """Queue a tuning job, or return the job that the idempotency key already made.

    Args:
        caller: The owner of the new job.

    Returns:
        The job, and whether it is new.

    Raises:
        UnprocessableError: If the workload, the target or a rule is invalid, or the key was used
            for another request.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    return submit_once(
        database,
        IdempotencyKey.of(request, idempotency_key, caller),
        caller,
        read_body=lambda: read_workload(request.workload),
        add=lambda session, workload: Queue(session, request, caller).add(workload),
        read_result=lambda _, row: jobs.read(row),
    )


def submit_once(
    database: Database,
    key: IdempotencyKey,
    caller: Caller,
    *,
    read_body: Callable[[], BodyT],
    add: Callable[[Session, BodyT], JobRow],
    read_result: Callable[[Session, JobRow], ResultT],
) -> tuple[ResultT, bool]:
    """Queue the jobs of a request, or find those that its idempotency key already made.

    Args:
        read_body: Reads the programs of the request, which may take long. A repeated request does
            without.
        add: Queues jobs within the caller's quota; returns the first.
        read_result: Returns the answer from the first job.

    Returns:
        The answer, and whether it is new.

    Raises:
        UnprocessableError: If the key was used for another request, or `read_body` refuses it.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    with database.read() as session:
        if (made := key.recall(session)) is not None:
            return read_result(session, made), False
    body = read_body()
    with database.write() as session:
        if (made := key.recall(session)) is not None:  # a concurrent request was faster
            return read_result(session, made), False
        with quotas.held(session, caller):
            row = add(session, body)
        key.remember(session, row)
        return read_result(session, row), True


@dataclass(frozen=True)
class IdempotencyKey:
    """An idempotency key of a token, if any, and the digest of its request."""

    owner: str | None
    text: str | None
    content: str

    @classmethod
    def of(cls, request: SearchOptions, text: str | None, caller: Caller) -> IdempotencyKey:
        """Return the key of a request.

        Raises:
            UnprocessableError: If the key is empty or too long.
        """
        if text is not None and not 1 <= len(text) <= idempotency.MAX_KEY_CHARS:
            detail = f"an idempotency key has 1 to {idempotency.MAX_KEY_CHARS} characters"
            raise UnprocessableError(detail, Flaw(detail, "header/Idempotency-Key"))
        content = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        return cls(caller.name, text, content)

    def recall(self, session: Session) -> JobRow | None:
        """Return the job that the key made, or None.

        Raises:
            UnprocessableError: If the key was used for another request.
        """
        if self.text is None:
            return None
        job_id = idempotency.recall(session, self.owner, self.text, self.content)
        return None if job_id is None else jobs.get(session, job_id)

    def remember(self, session: Session, row: JobRow) -> None:
        """Store the key with the job that it made."""
        if self.text is not None:
            idempotency.remember(session, self.owner, self.text, self.content, row.id)


class Queue:
    """Queues jobs of one request.

    Args:
        caller: The owner of the jobs.

    Raises:
        UnprocessableError: If the target or a rule is invalid.
        ForbiddenError: If the priority exceeds the caller's limit.
    """

    def __init__(self, session: Session, request: SearchOptions, caller: Caller) -> None:
        quotas.refuse_priority(caller, request.priority)
        self._session = session
        self._request = request
        self._owner = caller.name
        self._target = read_target(session, request.target)
        self._rules = read_rules(request.rules)
        # The programs of a model have no texts: the model has a name.
        described = request if isinstance(request, JobDescription) else JobDescription()
        self._texts = (described.name, described.note, described.tags or ())

    def add(
        self, workload: NewWorkload, *, group_id: UUID | None = None, weight: float = 1.0
    ) -> JobRow:
        """Queue a job for a workload."""
        session, request = self._session, self._request
        name, note, tags = self._texts
        workloads.ensure(session, workload)
        targets.ensure(session, self._target.name, self._target.label)
        row = jobs.submit(
            session,
            NewJob(
                workload_key=workload.key,
                workload_name=workload.name,
                target=self._target.name,
                max_trials=request.max_trials,
                max_secs=request.max_secs,
                plateau=request.plateau,
                seed=request.seed,
                strategy=request.strategy,
                rules=self._rules,
                priority=request.priority,
                owner=self._owner,
                group_id=group_id,
                weight=weight,
                name=name,
                note=note,
                tags=tags,
            ),
        )
        if not request.warm_start:
            warm_starts.keep(session, row.id)
        return row
