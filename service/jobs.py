"""Submit jobs. Knows nothing of HTTP."""

from __future__ import annotations

import hashlib

from loopwright.models import JobCreate, JobRead
from service.errors import Flaw, InvalidRequestError
from service.intake import read_rules, read_target, read_workload
from service.store import idempotency, jobs, targets, warm_starts, workloads
from service.store.database import Database
from service.store.jobs import NewJob


def submit_job(
    database: Database,
    request: JobCreate,
    idempotency_key: str | None = None,
    *,
    owner: str | None = None,
) -> tuple[JobRead, bool]:
    """Queue a tuning job; with a key that was used for the same request, return that job.

    Args:
        owner: The name of the token that submits it.

    Returns:
        The job, and whether it is new.

    Raises:
        InvalidRequestError: If the workload, the target or a rule cannot be meant, or the key
            stood for another request.
    """
    if idempotency_key is not None and not 1 <= len(idempotency_key) <= idempotency.MAX_KEY_CHARS:
        detail = f"an idempotency key has 1 to {idempotency.MAX_KEY_CHARS} characters"
        raise InvalidRequestError(detail, Flaw(detail, "header/Idempotency-Key"))
    workload, target = read_workload(request.workload), read_target(request.target)
    rules = read_rules(request.rules)
    content = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    with database.write() as session:
        if idempotency_key is not None:
            known = idempotency.recall(session, idempotency_key, content)
            if known is not None:
                return jobs.read(jobs.get(session, known)), False
        workloads.ensure(session, workload)
        targets.ensure(session, target.name, target.label)
        row = jobs.submit(
            session,
            NewJob(
                workload_key=workload.key,
                workload_name=workload.name,
                target=target.name,
                trials=request.trials,
                seconds=request.seconds,
                plateau=request.plateau,
                seed=request.seed,
                strategy=request.strategy,
                rules=rules,
                priority=request.priority,
                owner=owner,
            ),
        )
        if not request.warm_start:
            warm_starts.keep(session, row.id)
        if idempotency_key is not None:
            idempotency.remember(session, idempotency_key, content, row.id)
        return jobs.read(row), True
