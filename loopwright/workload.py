"""The three forms in which a user gives a workload, and what each becomes.

A program (`PrimFunc`), the text of a script, or an operator such as `matmul:512,512,512:float32`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.ir.printer import script
from compiler.ir.program import PrimFunc
from compiler.ops import from_spec
from compiler.script import parse
from loopwright.models import Workload

WorkloadLike: TypeAlias = PrimFunc | str
Workloads: TypeAlias = list[str] | list[PrimFunc] | list[WorkloadLike] | tuple[WorkloadLike, ...]


def to_wire(workload: WorkloadLike) -> Workload:
    """Return what is sent to a server; text is sent as it was given, and read over there.

    Raises:
        TypeError: If it has none of the three forms.
    """
    if isinstance(workload, PrimFunc):
        return Workload(script=script(workload))
    _check_is_text(workload)
    if is_script(workload):
        return Workload(script=workload)
    return Workload(operator=workload.strip())


def to_func(workload: WorkloadLike) -> PrimFunc:
    """Return the program that a workload means.

    Raises:
        ScriptError: If the text of a script is wrong; the error shows the place.
        OperatorError: If it is no operator that is known.
        TypeError: If it has none of the three forms.
    """
    if isinstance(workload, PrimFunc):
        return workload
    _check_is_text(workload)
    return parse(workload) if is_script(workload) else from_spec(workload.strip())


def is_script(text: str) -> bool:
    """Say whether a text is a script, and not the name of an operator with its shape."""
    return "def " in text or "\n" in text.strip()


def _check_is_text(workload: object) -> None:
    if not isinstance(workload, str):
        raise TypeError(
            "a workload is a PrimFunc, the text of a script or an operator with its shape,"
            f" not a {type(workload).__name__}"
        )


def weights_of(workloads: Sequence[WorkloadLike], weights: Sequence[float] | None) -> list[float]:
    """Return a weight for each of several workloads.

    Raises:
        ValueError: If there are not as many weights as workloads.
    """
    if weights is None:
        return [1.0] * len(workloads)
    if len(weights) != len(workloads):
        raise ValueError(f"{len(weights)} weights for {len(workloads)} workloads: expected as many")
    return list(weights)
