"""Submit models: their tasks become jobs that share one trial limit."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from service.common.caller import ANYBODY, Caller
from service.intake.model_text import NewModel, NewModelTask, read_model
from service.jobs.jobs import Queue, attach_webhook
from service.jobs.subjects import new_columns, submit_subject
from service.models.reading import read
from service.store import workloads
from service.store.database.database import Database
from service.store.jobs import groups
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
    return submit_subject(
        database,
        request,
        idempotency_key,
        caller,
        ModelRow,
        read_body=lambda: read_model(request.model),
        add=lambda session, model: _add(session, request, model, caller),
        read=read,
    )


def _add(session: Session, request: ModelCreate, model: NewModel, caller: Caller) -> JobRow:
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
        **new_columns(request.name, group, jobs[tuned[0]], caller),
        num_steps=len(model.steps),
        steps=[step.model_dump(mode="json") for step in model.steps],
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
    attach_webhook(session, request, "model", row.id, jobs.values())
    return jobs[tuned[0]]


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
