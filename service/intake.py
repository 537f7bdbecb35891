"""Take in what a user names: a workload and a target. Text is parsed, and never executed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqlalchemy.orm import Session

from compiler.cores import available_cores
from compiler.host import TargetError
from compiler.ir.flops import flops
from compiler.ir.printer import script
from compiler.ir.program import PrimFunc
from compiler.ir.specialize import symbolic_problem
from compiler.ir.structural import structural_equal, structural_hash
from compiler.ir.verify import VerifyError, verify
from compiler.ops.error import OperatorError
from compiler.ops.spec import from_spec
from compiler.script.error import ScriptError
from compiler.script.parser import parse
from compiler.target import Target
from loopwright.models import MAX_SCRIPT_CHARS, Workload
from service.errors import Flaw, InvalidRequestError
from service.store import workers
from service.store.workloads import NewWorkload
from service.text_reader import apart
from tuner.relatives.shape import common_dtype, shape_of
from tuner.space.rule import BUILT_IN_RULES


def read_workload(workload: Workload) -> NewWorkload:
    """Turn a workload from the wire into one to keep; in a child process if that is asked for.

    Raises:
        InvalidRequestError: If the script or the operator is not a legal program of constant
            shapes; says where.
        BusyError: If too many wait for a child process.
    """
    elsewhere = apart()
    if elsewhere is None:
        return read_here(workload)
    return NewWorkload(**elsewhere.ask("workload", **workload.model_dump()))


def read_here(workload: Workload) -> NewWorkload:
    """Do the same in this process."""
    func = _program(workload)
    _check_static(func, _pointer(workload))
    text = script(func)
    if text != workload.script:
        _check_printed(func, text, _pointer(workload))
    shape = shape_of(func)
    return NewWorkload(
        key=structural_hash(func),
        name=func.name[:255],
        script=text,
        flops=flops(func),
        operator_key=shape.operator,
        shape=shape.to_json(),
        dtype=common_dtype(func),
    )


def parse_target(text: str) -> Target:
    """Turn the text of a target into one: of any machine, for what is known may be of any.

    Raises:
        InvalidRequestError: If the text means nothing.
    """
    try:
        return Target(text)
    except TargetError as error:
        raise _refused(str(error), "/target") from error


def read_target(session: Session, text: str) -> Target:
    """Turn the text of a target into one that jobs can be measured for.

    That is this host's kind, and any that a worker serves or has served.

    Raises:
        InvalidRequestError: If the text means nothing, or no worker is known for such a machine.
    """
    target = parse_target(text)
    cores = {
        **workers.served(session, now=False),
        Target("cpu").label: available_cores(),
        **workers.served(session, now=True),
    }
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
    """Return the names of schedule rules, None for all of them.

    Raises:
        InvalidRequestError: If there is no such rule; those that users added elsewhere are not
            known here.
    """
    if names is None:
        return None
    for place, name in enumerate(names):
        if name not in BUILT_IN_RULES:
            near = difflib.get_close_matches(name, BUILT_IN_RULES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BUILT_IN_RULES)}"
            raise _refused(f"there is no schedule rule {name!r}: {hint}", f"/rules/{place}")
    return list(names)


def _pointer(workload: Workload) -> str:
    return "/workload/script" if workload.operator is None else "/workload/operator"


def _check_static(func: PrimFunc, pointer: str) -> None:
    problem = symbolic_problem(func)
    if problem is not None:
        reason = "schedules are measured for constant shapes"
        raise _refused(f"function {func.name} is symbolic: {reason}, and {problem}", pointer)


def _check_printed(func: PrimFunc, text: str, pointer: str) -> None:
    """Refuse a program whose stored text could not be read again.

    The parser limits the size of a text; a program is printed longer than it was written where
    literals get types and names are replaced by what they stand for.
    """
    if len(text) > MAX_SCRIPT_CHARS:
        raise _refused(
            f"function {func.name} is too large: printed with all types it has {len(text)} "
            f"characters, expected {MAX_SCRIPT_CHARS} at most",
            pointer,
        )
    try:
        back = parse(text)
    except ScriptError as error:
        raise _refused(
            f"function {func.name} is too large to be stored: its text, printed with all types, "
            f"is refused: {error.message}",
            pointer,
        ) from error
    assert structural_equal(back, func), "what is printed is the same program"


def _program(workload: Workload) -> PrimFunc:
    pointer = _pointer(workload)
    if workload.operator is not None:
        try:
            func = from_spec(workload.operator)
            verify(func)
        except (OperatorError, VerifyError) as error:
            raise _refused(str(error), pointer) from error
        return func
    assert workload.script is not None, "the wire model has one of the two"
    try:
        return parse(workload.script)
    except ScriptError as error:
        # The detail is the whole rendering, caret included; the flaw is for programs to read.
        flaw = Flaw(error.message, pointer, error.line, error.column)
        raise InvalidRequestError(str(error), flaw) from error


def _refused(detail: str, pointer: str) -> InvalidRequestError:
    return InvalidRequestError(detail, Flaw(detail, pointer))
