"""Validate the workload, the target and the rules of a request. Text is parsed, never executed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlalchemy.orm import Session

from compiler.backends.backend import cores_by_label
from compiler.target.error import TargetError
from compiler.target.target import Target, complete_target
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.intake.text_reader import child_reader
from service.intake.workload_text import read_here
from service.store import workers
from service.wire.requests import Workload
from tuner.space.registry import built_in_rules


def read_workload(workload: Workload, *, to_tune: bool = False) -> NewWorkload:
    """Return a workload of a request in its stored form; parse it in a child if one is set.

    Args:
        to_tune: Whether it must be one that can be tuned.

    Raises:
        UnprocessableError: If the script or the operator is not a legal program of constant shapes;
            the message says where.
        ServiceBusyError: If too many requests wait for a child process.
    """
    reader = child_reader()
    if reader is None:
        return read_here(workload, to_tune=to_tune)
    return NewWorkload(**reader.ask("workload", to_tune=to_tune, **workload.model_dump()))


def parse_target(text: str) -> Target:
    """Parse a target of any machine: stored schedules may be for any.

    Raises:
        UnprocessableError: If the text is no valid target.
    """
    try:
        return Target(text)
    except TargetError as error:
        raise _refused(str(error), "/target") from error


def read_target(session: Session, text: str) -> Target:
    """Return a target that jobs can be measured for.

    These are the kind of this host, and each kind that a worker serves or has served.

    Raises:
        UnprocessableError: If the text is invalid, or no worker is known for such a machine.
    """
    cores = {
        **workers.served(session, now=False),
        **cores_by_label(),
        **workers.served(session, now=True),
    }
    try:
        target = complete_target(text, lambda: cores)
    except TargetError as error:
        raise _refused(str(error), "/target") from error
    if target.label not in cores:
        raise _refused(
            f"target {target.name!r}: no worker of this service is a {target.label}, or was one; "
            f"it has workers for {', '.join(sorted(cores))}: start `loopwright worker` on such a "
            "host, for a scheduler whose coordinator uses this database, and submit again",
            "/target",
        )
    if target.num_cores > (most := cores[target.label]):
        raise _refused(
            f"target {target.name!r}: the workers of this service for {target.label} have {most} "
            f"cores: ask for -num-cores={most} or fewer",
            "/target",
        )
    return target


def read_rules(names: Sequence[str] | None) -> list[str] | None:
    """Return the names of schedule rules; None for all of them.

    Raises:
        UnprocessableError: If a rule is unknown; rules that users registered in other processes are
            unknown here.
    """
    if names is None:
        return None
    for index, name in enumerate(names):
        if name not in built_in_rules():
            near = difflib.get_close_matches(name, built_in_rules(), n=1)
            rules = ", ".join(built_in_rules())
            hint = f"did you mean {near[0]!r}?" if near else f"known rules: {rules}"
            raise _refused(f"unknown schedule rule {name!r}: {hint}", f"/rules/{index}")
    return list(names)


def _refused(detail: str, pointer: str) -> UnprocessableError:
    return UnprocessableError(detail, Flaw(detail, pointer))
