"""Check a workload before its submission, without HTTP."""

from __future__ import annotations

import threading
from functools import lru_cache, partial

from service.intake.request_validation import read_target
from service.intake.text_reader import child_reader
from service.intake.workload_text import Looked, look_here, space_here
from service.store.database.database import Database
from service.store.results.best_schedules import BestScheduleRow
from service.wire.readings import CheckRequest, SpaceRead, WorkloadCheck

_one_at_a_time = threading.Lock()


def check(database: Database, request: CheckRequest) -> WorkloadCheck:
    """Return the parsed workload and target, and the size of the design space.

    Raises:
        UnprocessableError: If the workload or the target is invalid; the message says where.
    """
    reader = child_reader()
    looked = (
        look_here(request.workload)
        if reader is None
        else Looked.model_validate(reader.ask("look", **request.workload.model_dump()))
    )
    workload = looked.workload
    with database.read() as session:
        target = read_target(session, request.target)
        is_tuned = session.get(BestScheduleRow, (workload.key, target.name)) is not None
    return WorkloadCheck(
        key=workload.key,
        name=workload.name,
        operator_key=workload.operator_key,
        dtype=workload.dtype,
        target=target.name,
        flops=workload.flops,
        bytes=sum(parameter.bytes for parameter in looked.parameters),
        parameters=looked.parameters,
        script=workload.script,
        space=_space(workload.script, target.name) if request.space else None,
        is_tuned=is_tuned,
    )


def _space(script: str, target: str) -> SpaceRead | None:
    """Return the size of a design space; None if another one is being counted.

    Counting takes up to a second, so a process counts one at a time; an editor repeats its request.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return None
    try:
        return _counted(script, target)
    finally:
        _one_at_a_time.release()


@lru_cache(maxsize=256)
def _counted(script: str, target: str) -> SpaceRead | None:
    reader = child_reader()
    ask = space_here if reader is None else partial(reader.ask, "space")
    count = ask(script=script, target=target)
    return None if count is None else SpaceRead.model_validate(count)
