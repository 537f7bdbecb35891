"""Read the text of workloads in this process; see `text_reader` for reading in a child process.

Imports neither the database nor the cost model, so that a child process starts in half a second.
"""

from __future__ import annotations

from math import prod
from typing import Any

from pydantic import BaseModel

from compiler.executor.functions.registry import HOW_TO_ALLOW, allowed_functions
from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.products import main_dtype
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.library_calls import library_functions
from compiler.ir.core.nodes import BlockRealize, Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.inputs import param_roles
from compiler.ir.text.printer import script
from compiler.ir.verify.build_problem import build_problem
from compiler.ir.verify.verify import VerifyError, verify
from compiler.ops.error import OperatorError
from compiler.ops.spec import from_spec
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script.error import ScriptError
from compiler.script.parser import parse
from compiler.target.target import Target
from service.common.errors import Flaw, UnprocessableError
from service.common.new_workload import NewWorkload
from service.wire.readings import ParameterRead
from service.wire.requests import MAX_SCRIPT_CHARS, Workload
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.transfer.shape import shape_of

MAX_BLOCKS = 32
"""The design space of a program with more blocks takes too long to count while a user waits.
Chosen.
"""


class Looked(BaseModel):
    """The properties of a workload that its text determines."""

    workload: NewWorkload
    parameters: tuple[ParameterRead, ...]


def look_here(workload: Workload) -> Looked:
    """Read a workload in this process.

    Raises:
        UnprocessableError: If the workload is invalid; the message says where.
    """
    read = read_here(workload, to_tune=True)
    return Looked(workload=read, parameters=_parameters(parse(read.script)))


def read_here(workload: Workload, *, to_tune: bool = False) -> NewWorkload:
    """Return a workload of a request in the form in which it is stored.

    Args:
        to_tune: Whether schedules are asked for, which require blocks, of the program or derived.

    Raises:
        UnprocessableError: If the script or the operator is not a legal program of constant shapes;
            the message says where.
    """
    func = parse_workload(workload)
    _check_tunable(func, pointer_of(workload))
    if to_tune:
        num_blocks(func, pointer_of(workload))
    return stored_form(func, pointer_of(workload), workload.script)


def stored_form(func: PrimFunc, pointer: str, given: str | None = None) -> NewWorkload:
    """Return a program in the form in which it is stored.

    Args:
        pointer: The place of the program in the request.
        given: The text that it was parsed from, if there is one.

    Raises:
        UnprocessableError: If its text could not be parsed again, or if it calls a function that
            the owner of the server did not allow.
    """
    _check_allowed(func, pointer)
    text = script(func)
    if text != given:
        _check_printed(func, text, pointer)
    shape = shape_of(func)
    return NewWorkload(
        key=structural_hash(func),
        name=func.name[:255],
        script=text,
        flops=flops(func),
        operator_key=shape.operator,
        shape=shape.to_json(),
        dtype=main_dtype(func),
    )


def space_here(script: str, target: str) -> dict[str, Any] | None:
    """Return the size of a design space, counted in this process; None if that takes too long."""
    func = parse(script)
    if num_blocks(func, "/workload/script") > MAX_BLOCKS:
        return None
    space = design_space(Task(func, Target(target)))
    counts = [space.count(index) for index in range(len(space.sketches))]
    return {
        "sketches": [sketch.name for sketch in space.sketches],
        "num_schedules": sum(count.number for count in counts),
        "is_exact": all(count.is_exact for count in counts),
    }


def _parameters(func: PrimFunc) -> tuple[ParameterRead, ...]:
    inputs, outputs = param_roles(func)
    parameters = []
    for buffer in func.buffers:
        is_input, is_output = buffer.name in inputs, buffer.name in outputs
        role = "both" if is_input and is_output else "output" if is_output else "input"
        parameters.append(
            ParameterRead(
                name=buffer.name,
                shape=static_shape(buffer),
                dtype=buffer.dtype,
                role=role,
                bytes=_bytes(buffer),
            )
        )
    return tuple(parameters)


def _bytes(buffer: Buffer) -> int:
    return prod(static_shape(buffer)) * size_bytes(buffer.dtype)


def pointer_of(workload: Workload) -> str:
    """Return the place of the text in a request."""
    return "/workload/script" if workload.operator is None else "/workload/operator"


def _check_tunable(func: PrimFunc, pointer: str) -> None:
    if names := ", ".join(var.name for var in symbolic_vars(func)):
        raise _refused(
            f"function {func.name} is symbolic, and schedules are measured for constant shapes: "
            f"write numbers instead of {names}, or tune ranges of sizes by POST /shapes",
            pointer,
        )
    _check_allowed(func, pointer)
    problem = build_problem(func)
    if problem is not None:
        raise _refused(f"function {func.name}: {problem}", pointer)


def _check_allowed(func: PrimFunc, pointer: str) -> None:
    """Refuse calls of registered functions that the owner of the server did not allow."""
    allowed = allowed_functions()
    for name in library_functions(func.body):
        if name not in allowed:
            raise _refused(f"function {func.name} calls {name!r}: {HOW_TO_ALLOW}", pointer)


def num_blocks(func: PrimFunc, pointer: str) -> int:
    """Return the number of blocks that a schedule of a program has.

    Raises:
        UnprocessableError: If the program has none, and none can be derived.
    """
    try:
        scheduled = Schedule(func).func
    except ScheduleError as error:
        flaw = Flaw(error.reason, pointer)
        raise UnprocessableError(f"function {func.name} can't be tuned: {error}", flaw) from error
    return sum(isinstance(node, BlockRealize) for node in walk_stmts(scheduled.body))


def _check_printed(func: PrimFunc, text: str, pointer: str) -> None:
    """Refuse a program whose stored text could not be parsed again.

    The parser limits the size of a text. A printed program can be longer than its source: the
    printer adds types to literals and replaces names by their values.
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


def parse_workload(workload: Workload) -> PrimFunc:
    """Return the program of a workload.

    Raises:
        UnprocessableError: If the workload is invalid; the message says where.
    """
    pointer = pointer_of(workload)
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
        # The detail is the whole text with its caret; the flaw is for programs.
        flaw = Flaw(error.message, pointer, error.line, error.column)
        raise UnprocessableError(str(error), flaw) from error


def _refused(detail: str, pointer: str) -> UnprocessableError:
    return UnprocessableError(detail, Flaw(detail, pointer))
