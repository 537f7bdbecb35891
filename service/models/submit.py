"""Submit models: their tasks become jobs that share one trial limit."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.common.errors import Flaw, UnprocessableError
from service.intake.model_text import NewModel, NewModelTask, read_model
from service.jobs.jobs import IdempotencyKey, Queue
from service.models.reading import read
from service.store import models, workloads
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import groups, quotas
from service.store.jobs.jobs import JobRow
from service.store.models import ModelRow, ModelTaskRow
from service.wire.model_reads import ModelRead
from service.wire.requests import MAX_TASKS, ModelCreate
from tuner.loop.search_loop import ROUND_SIZE

MIN_SHARE = 0.005
"""A task below this share of the model's estimated time is not tuned: even without any time it
would not be noticed. Chosen.
"""
FLOPS_PER_BYTE = 16
"""Operations in the time of reading or writing a byte, to estimate shares before anything is
measured: a core of a server does about 10^11 operations and 6 * 10^9 bytes in a second.
"""


def submit_model(
    database: Database,
    request: ModelCreate,
    idempotency_key: str | None = None,
    *,
    caller: Caller = ANYBODY,
) -> tuple[ModelRead, bool]:
    """Queue jobs for the tasks of a model, or return the model that the key already made.

    Args:
        caller: The owner of the new jobs.

    Returns:
        The model, and whether it is new.

    Raises:
        UnprocessableError: If the model, the target or a rule is invalid, the trials are fewer than
            a round, or the key was used for another request.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """
    key = IdempotencyKey.of(request, idempotency_key, caller)
    if request.max_trials < ROUND_SIZE:
        detail = f"{request.max_trials} trials are too few: expected {ROUND_SIZE} or more"
        raise UnprocessableError(detail, Flaw(detail, "/max_trials"))
    model = read_model(request.model)
    with database.write() as session:
        if (first_job := key.recall(session)) is not None:
            assert first_job.group_id is not None, "the key belongs to this same request"
            return read(session, models.of_group(session, first_job.group_id).id), False
        with quotas.held(session, caller):
            row, jobs = _add(session, request, model, caller)
        key.remember(session, jobs[0])
        return read(session, row.id), True


def _add(
    session: Session, request: ModelCreate, model: NewModel, caller: Caller
) -> tuple[ModelRow, list[JobRow]]:
    queue = Queue(session, request, caller)
    group = groups.create(session, request.max_trials)
    tuned = tuned_tasks(model.tasks, request.max_trials)
    jobs = {
        number: queue.add(
            model.tasks[number].workload, group_id=group.id, weight=model.tasks[number].weight
        )
        for number in tuned
    }
    row = ModelRow(
        id=uuid4(),
        name=request.name,
        target=jobs[tuned[0]].target,
        owner=caller.name,
        group_id=group.id,
        num_steps=len(model.steps),
        steps=[step.model_dump(mode="json") for step in model.steps],
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    for number, task in enumerate(model.tasks):
        workloads.ensure(session, task.workload)
        session.add(
            ModelTaskRow(
                model_id=row.id,
                number=number,
                workload_key=task.workload.key,
                operators=task.operators,
                weight=task.weight,
                size_bytes=task.size_bytes,
                job_id=jobs[number].id if number in jobs else None,
            )
        )
    session.flush()
    return row, list(jobs.values())


def tuned_tasks(tasks: Sequence[NewModelTask], max_trials: int) -> list[int]:
    """Return the numbers of the tasks that get jobs: those that take the most of a run.

    Each of them gets a round of trials at least.
    """
    costs = [
        task.weight * max(task.workload.flops, FLOPS_PER_BYTE * task.size_bytes) for task in tasks
    ]
    by_cost = sorted(range(len(tasks)), key=lambda number: -costs[number])
    large = [number for number in by_cost if costs[number] >= MIN_SHARE * sum(costs)]
    return large[: min(MAX_TASKS, max_trials // ROUND_SIZE)]
