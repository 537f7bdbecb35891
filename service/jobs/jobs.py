"""Submit jobs. Independent of HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.request_validation import read_rules, read_target, read_workload
from service.store import targets, warm_starts, webhooks, workloads
from service.store.database.database import Database
from service.store.jobs import idempotency, jobs, quotas
from service.store.jobs.jobs import JobRow, NewJob
from service.webhooks.allowed_addresses import AllowedAddresses
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
        read_body=lambda: read_workload(request.workload, to_tune=True),
        add=lambda session, workload: _add(session, request, workload, caller),
        read_result=lambda _, row: jobs.read(row),
    )


def _add(session: Session, request: JobCreate, workload: NewWorkload, caller: Caller) -> JobRow:
    row = Queue(session, request, caller).add(workload)
    attach_webhook(session, request, "job", row.id, [row])
    return row


def attach_webhook(
    session: Session, request: SearchOptions, kind: str, subject_id: UUID, rows: Iterable[JobRow]
) -> None:
    """Store the webhook of a submission, if it has one, with all of its jobs.

    Args:
        kind: Whether the subject is a job, a group or a model.

    Raises:
        UnprocessableError: If the server does not allow its address.
    """
    if request.webhook is None:
        return
    url = request.webhook.url
    host = AllowedAddresses.of_environment().refuse_early(url)
    webhook = webhooks.add(
        session,
        kind=kind,
        subject_id=subject_id,
        url=url,
        host=host,
        secret=request.webhook.secret,
    )
    for row in rows:
        row.webhook_id = webhook.id
    session.flush()


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
    """An idempotency key of a token, if any, and the digests of its request.

    The first digest is stored. The others are those that earlier versions stored for it.
    """

    owner: str | None
    text: str | None
    digests: tuple[str, ...]

    @classmethod
    def of(cls, request: SearchOptions, text: str | None, caller: Caller) -> IdempotencyKey:
        """Return the key of a request.

        Raises:
            UnprocessableError: If the key is empty or too long.
        """
        if text is not None and not 1 <= len(text) <= idempotency.MAX_KEY_CHARS:
            detail = f"an idempotency key has 1 to {idempotency.MAX_KEY_CHARS} characters"
            raise UnprocessableError(detail, Flaw(detail, "header/Idempotency-Key"))
        digests = (hashlib.sha256(form.encode()).hexdigest() for form in request.stable_forms())
        return cls(caller.name, text, tuple(digests))

    def recall(self, session: Session) -> JobRow | None:
        """Return the job that the key made, or None.

        Raises:
            UnprocessableError: If the key was used for another request.
        """
        if self.text is None:
            return None
        job_id = idempotency.recall(session, self.owner, self.text, self.digests)
        return None if job_id is None else jobs.get(session, job_id)

    def remember(self, session: Session, row: JobRow) -> None:
        """Store the key with the job that it made."""
        if self.text is not None:
            idempotency.remember(session, self.owner, self.text, self.digests[0], row.id)


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
                window=request.window,
            ),
        )
        if not request.warm_start:
            warm_starts.keep(session, row.id)
        return row
