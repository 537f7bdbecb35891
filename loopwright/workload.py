"""The forms of a workload, and their conversion to a program.

A workload is a program (`PrimFunc`), a module (`IRModule`) of a function and those that it calls,
which are inlined, a schedule (also one of tensor expressions), which stands for its current
program, a task of a module, the text of a script, or an operator such as
`matmul:512,512,512:float32`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.executor.named_type import named_type
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import only_entry
from compiler.ir.verify.verify import VerifyError
from compiler.ops import from_spec
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from compiler.te_schedule.tensor_schedule import TensorSchedule
from loopwright.module_tasks import ExtractedTask

Program: TypeAlias = PrimFunc | IRModule | Schedule | TensorSchedule | ExtractedTask
WorkloadLike: TypeAlias = Program | str
Workloads: TypeAlias = (
    list[str]
    | list[PrimFunc]
    | list[PrimFunc | str]
    | list[IRModule]
    | list[Schedule]
    | list[TensorSchedule]
    | list[ExtractedTask]
    | list[WorkloadLike]
    | tuple[WorkloadLike, ...]
)


def to_func(workload: WorkloadLike) -> PrimFunc:
    """Return the program of a workload.

    Raises:
        ScriptError: If the text of a script is invalid; the error shows the position.
        OperatorError: If the operator is unknown.
        TypeError: If it has none of the forms.
        ValueError: If not exactly one function of a module is called by no other, or a call is not
            legal.
    """
    if isinstance(workload, Program):
        return only_function(workload)
    check_is_text(workload)
    return parse(workload) if is_script(workload) else from_spec(workload.strip())


def is_script(text: str) -> bool:
    """Return whether a text is a script, not the name of an operator with its shape."""
    return "def " in text or "\n" in text.strip()


def only_function(program: Program) -> PrimFunc:
    """Return the only function of a program that no other calls.

    Raises:
        ValueError: If there is not exactly one, or a call is not legal.
    """
    if isinstance(program, Schedule | TensorSchedule | ExtractedTask):
        return program.func
    try:
        return only_entry(IRModule((program,)) if isinstance(program, PrimFunc) else program)
    except VerifyError:
        raise
    except ValueError as error:
        raise ValueError(
            f"a workload is one function: {error}, or lw.extract_tasks(module) for all of them"
        ) from None


def check_is_text(workload: object) -> None:
    """Refuse a workload that has none of the forms.

    Raises:
        TypeError: If it is no text.
    """
    if not isinstance(workload, str):
        raise TypeError(
            "a workload is a PrimFunc, an IRModule of one function and those that it calls, a"
            " Schedule, a task of a module, the text of a script or an operator with its shape, not"
            f" {named_type(workload)}"
        )


def weights_of(workloads: Sequence[WorkloadLike], weights: Sequence[float] | None) -> list[float]:
    """Return a weight for each of several workloads; by default that of a task, or 1.

    Raises:
        ValueError: If there are not as many weights as workloads.
    """
    if weights is None:
        return [weight.weight if isinstance(weight, ExtractedTask) else 1.0 for weight in workloads]
    if len(weights) != len(workloads):
        raise ValueError(
            f"{len(weights)} weights for {len(workloads)} workloads: expected one weight for each"
        )
    return list(weights)


def check_names(argument: str, names: object) -> None:
    """Refuse one name where names are expected: its letters would be taken for names.

    Raises:
        TypeError: If it is a text.
    """
    if isinstance(names, str):
        raise TypeError(f"{argument} is {names!r}: expected a list of names, such as [{names!r}]")
