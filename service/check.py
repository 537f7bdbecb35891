"""Look at a workload that somebody is about to submit. Knows nothing of HTTP."""

from __future__ import annotations

import threading
from functools import lru_cache, partial
from math import prod
from typing import Any

from pydantic import BaseModel

from compiler.ir.dtypes import size_bytes
from compiler.ir.inputs import param_roles
from compiler.ir.nodes import BlockRealize, Buffer, static_shape
from compiler.ir.program import PrimFunc
from compiler.ir.visit import walk_stmts
from compiler.script.parser import parse
from compiler.target import Target
from loopwright.models import Workload
from loopwright.readings import CheckRequest, ParameterRead, SpaceRead, WorkloadCheck
from service.intake import read_here, read_target
from service.store.best_schedules import BestScheduleRow
from service.store.database import Database
from service.store.workloads import NewWorkload
from service.text_reader import apart
from tuner.space.generate import design_space
from tuner.task import Task

MAX_BLOCKS = 32
"""A design space of more is not made while somebody waits."""

_one_at_a_time = threading.Lock()


class Looked(BaseModel):
    """What the text of a workload says."""

    workload: NewWorkload
    parameters: tuple[ParameterRead, ...]


def look_here(workload: Workload) -> Looked:
    """Read a workload in this process.

    Raises:
        InvalidRequestError: If it cannot be meant; says where.
    """
    read = read_here(workload)
    return Looked(workload=read, parameters=_parameters(parse(read.script)))


def check(database: Database, request: CheckRequest) -> WorkloadCheck:
    """Return what a workload and a target are read as.

    Raises:
        InvalidRequestError: If one of them cannot be meant; says where.
    """
    elsewhere = apart()
    looked = (
        look_here(request.workload)
        if elsewhere is None
        else Looked.model_validate(elsewhere.ask("look", **request.workload.model_dump()))
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


def _parameters(func: PrimFunc) -> tuple[ParameterRead, ...]:
    inputs, outputs = param_roles(func)
    found = []
    for buffer in func.buffers:
        is_input, is_output = buffer.name in inputs, buffer.name in outputs
        role = "both" if is_input and is_output else "output" if is_output else "input"
        found.append(
            ParameterRead(
                name=buffer.name,
                shape=static_shape(buffer),
                dtype=buffer.dtype,
                role=role,
                bytes=_bytes(buffer),
            )
        )
    return tuple(found)


def _bytes(buffer: Buffer) -> int:
    return prod(static_shape(buffer)) * size_bytes(buffer.dtype)


def _space(script: str, target: str) -> SpaceRead | None:
    """Return how large a design space is; None if somebody else's is being made.

    That takes up to a second, of which a process has only so many: whoever types asks again.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return None
    try:
        return _counted(script, target)
    finally:
        _one_at_a_time.release()


@lru_cache(maxsize=256)
def _counted(script: str, target: str) -> SpaceRead | None:
    elsewhere = apart()
    ask = space_here if elsewhere is None else partial(elsewhere.ask, "space")
    found = ask(script=script, target=target)
    return None if found is None else SpaceRead.model_validate(found)


def space_here(script: str, target: str) -> dict[str, Any] | None:
    """Count a design space in this process; none if that would take too long."""
    func = parse(script)
    if sum(isinstance(node, BlockRealize) for node in walk_stmts(func.body)) > MAX_BLOCKS:
        return None
    space = design_space(Task(func, Target(target)))
    counts = [space.count(index) for index in range(len(space.sketches))]
    return {
        "sketches": [sketch.name for sketch in space.sketches],
        "num_schedules": sum(count.number for count in counts),
        "is_exact": all(count.is_exact for count in counts),
    }
