"""Submit jobs. Independent of HTTP."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
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
from service.wire.requests import JobCreate, SearchOptions


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
    key = IdempotencyKey.of(request, idempotency_key, caller)
    workload = read_workload(request.workload)
    with database.write() as session:
        if (existing := key.recall(session)) is not None:
            return jobs.read(existing), False
        with quotas.held(session, caller):
            row = Queue(session, request, caller).add(workload)
        key.remember(session, row)
        return jobs.read(row), True


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

    def add(
        self, workload: NewWorkload, *, group_id: UUID | None = None, weight: float = 1.0
    ) -> JobRow:
        """Queue a job for a workload."""
        session, request = self._session, self._request
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
            ),
        )
        if not request.warm_start:
            warm_starts.keep(session, row.id)
        return row
