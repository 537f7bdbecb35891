"""The lists of the API, with their orders and filters. Independent of HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, String, cast, false, func, or_, select
from sqlalchemy.orm import Session, defer

from service.common.paging import CursorKey, ListPage, page, page_of_rows
from service.reading.queries import (
    CostModelsQuery,
    JobsQuery,
    TargetsQuery,
    TokensQuery,
    WorkersQuery,
    WorkloadsQuery,
)
from service.store import cost_models, workers
from service.store.cost_models import CostModelRow
from service.store.database.error import DatabaseDamagedError
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.store.targets import TargetRow
from service.store.tokens import TokenRow
from service.store.workloads import WorkloadRow
from service.wire.models import CostModelRead, JobRead, Page, Response
from service.wire.readings import TargetRead, WorkloadRead
from service.wire.server_models import TokenRead, WorkerRead

ReadT = TypeVar("ReadT", bound=Response)

_EXTENTS = re.compile(r"\s*[0-9]+(\s*[x\u00d7,\s]\s*[0-9]+)*\s*")


def as_page(list_page: ListPage, read: Callable[..., ReadT]) -> Page[ReadT]:
    """Return a page of rows as a page of API models.

    Raises:
        DatabaseDamagedError: If a row has no key.
    """
    if any(row[0] is None for row in list_page.rows):
        raise DatabaseDamagedError("the database is damaged (a row has no key): restore a backup")
    return Page[Any](
        items=tuple(read(*row) for row in list_page.rows), next_cursor=list_page.next_cursor
    )


def contains(text: str, *columns: Any) -> ColumnElement[bool]:
    """Return the condition that one of the columns contains a text, in any case."""
    return or_(*(column.icontains(text, autoescape=True) for column in columns))


def has_shape(text: str, workload_key: Any) -> ColumnElement[bool]:
    """Return the condition that a workload has such adjacent extents, as in `512 x 512`."""
    if _EXTENTS.fullmatch(text) is None:
        return false()
    extents = ", ".join(re.findall("[0-9]+", text))
    shaped = select(WorkloadRow.key).where(cast(WorkloadRow.shape, String).contains(extents))
    is_shaped: ColumnElement[bool] = workload_key.in_(shaped)
    return is_shaped


def list_jobs(session: Session, query: JobsQuery) -> Page[JobRead]:
    """Return a page of jobs.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(JobRow)
    if query.state:
        statement = statement.where(JobRow.state.in_(query.state))
    if query.operator is not None:
        statement = statement.where(JobRow.workload_name == query.operator)
    if query.target is not None:
        statement = statement.where(contains(query.target, JobRow.target))
    if query.owner is not None:
        statement = statement.where(JobRow.owner == query.owner)
    for tag in query.tag:  # quotes are no part of a tag
        statement = statement.where(cast(JobRow.tags, String).contains(f'"{tag}"', autoescape=True))
    if query.group is not None:
        statement = statement.where(JobRow.group_id == query.group)
    if query.text is not None:
        texts = (JobRow.name, JobRow.note, cast(JobRow.tags, String))
        fields = (JobRow.workload_name, JobRow.target, JobRow.owner, *texts)
        key = query.text.replace("-", "")
        is_id = contains(key, func.replace(cast(JobRow.id, String), "-", "")) if key else None
        named = or_(contains(query.text, *fields), has_shape(query.text, JobRow.workload_key))
        statement = statement.where(named if is_id is None else or_(named, is_id))
    by: dict[str, CursorKey] = {
        "created_at": CursorKey(JobRow.created_at, datetime),
        "best_secs": CursorKey(JobRow.best_secs, float, is_nullable=True),
        "num_measured": CursorKey(JobRow.num_measured, int),
        "priority": CursorKey(JobRow.priority, int),
        "workload_name": CursorKey(JobRow.workload_name, str),
    }
    keys = [by[query.sort.removeprefix("-")], CursorKey(JobRow.id, UUID)]
    return as_page(page(session, statement, keys, query.asked("jobs", query.sort)), jobs.read)


def list_workloads(session: Session, query: WorkloadsQuery) -> Page[WorkloadRead]:
    """Return a page of workloads, without their programs.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(WorkloadRow).options(defer(WorkloadRow.script))
    if query.operator is not None:
        statement = statement.where(WorkloadRow.name == query.operator)
    if query.operator_key is not None:
        statement = statement.where(WorkloadRow.operator_key == query.operator_key)
    if query.text is not None:
        named = contains(query.text, WorkloadRow.name, WorkloadRow.key)
        statement = statement.where(named | has_shape(query.text, WorkloadRow.key))
    by: dict[str, CursorKey] = {
        "created_at": CursorKey(WorkloadRow.created_at, datetime),
        "name": CursorKey(WorkloadRow.name, str),
        "flops": CursorKey(WorkloadRow.flops, int),
    }
    keys = [by[query.sort.removeprefix("-")], CursorKey(WorkloadRow.key, str)]
    list_page = page(session, statement, keys, query.asked("workloads", query.sort))
    return as_page(list_page, _reader(WorkloadRead))


def list_targets(session: Session, query: TargetsQuery) -> Page[TargetRead]:
    """Return a page of targets.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(TargetRow)
    if query.label is not None:
        statement = statement.where(TargetRow.label == query.label)
    if query.text is not None:
        statement = statement.where(contains(query.text, TargetRow.name))
    name = CursorKey(TargetRow.name, str)
    is_by_name = query.sort.removeprefix("-") == "name"
    keys = [name] if is_by_name else [CursorKey(TargetRow.created_at, datetime), name]
    list_page = page(session, statement, keys, query.asked("targets", query.sort))
    return as_page(list_page, _reader(TargetRead))


def list_cost_models(session: Session, query: CostModelsQuery) -> Page[CostModelRead]:
    """Return a page of cost models' metadata, without the models themselves.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(CostModelRow).options(defer(CostModelRow.blob))
    if query.label is not None:
        statement = statement.where(CostModelRow.label == query.label)
    if query.job is not None:
        statement = statement.where(CostModelRow.job_id == query.job)
    if query.of_store is not None:
        is_of_store = CostModelRow.job_id.is_(None)
        statement = statement.where(is_of_store if query.of_store else ~is_of_store)
    by: dict[str, CursorKey] = {
        "created_at": CursorKey(CostModelRow.created_at, datetime),
        "trained_on": CursorKey(CostModelRow.trained_on, int),
    }
    keys = [by[query.sort.removeprefix("-")], CursorKey(CostModelRow.id, int)]
    list_page = page(session, statement, keys, query.asked("cost-models", query.sort))
    return as_page(list_page, cost_models.read)


def list_workers(session: Session, query: WorkersQuery) -> Page[WorkerRead]:
    """Return a page of workers, by name.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    matching: Sequence[WorkerRead] = [
        worker
        for worker in workers.all_workers(session)
        if query.label in (None, worker.label)
        and query.host in (None, worker.host)
        and (not query.state or worker.state in query.state)
    ]
    names = [worker.name for worker in matching]
    list_page = page_of_rows(
        [(worker,) for worker in matching], names, query.asked("workers", "name")
    )
    return as_page(list_page, lambda worker: worker)


def list_tokens(session: Session, query: TokensQuery) -> Page[TokenRead]:
    """Return a page of tokens.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(TokenRow)
    if query.text is not None:
        statement = statement.where(contains(query.text, TokenRow.name))
    if query.revoked is not None:
        is_live = TokenRow.revoked_at.is_(None)
        statement = statement.where(~is_live if query.revoked else is_live)
    by = {
        "created_at": CursorKey(TokenRow.created_at, datetime),
        "name": CursorKey(TokenRow.name, str),
    }
    keys = [by[query.sort.removeprefix("-")], CursorKey(TokenRow.id, UUID)]
    list_page = page(session, statement, keys, query.asked("tokens", query.sort))
    return as_page(list_page, _reader(TokenRead))


def _reader(model: type[ReadT]) -> Callable[[Any], ReadT]:
    return lambda row: model.model_validate(row, from_attributes=True)
