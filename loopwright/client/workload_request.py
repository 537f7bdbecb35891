"""A workload in a request to a server."""

from __future__ import annotations

from compiler.ir.text.printer import script
from loopwright.workload import Program, WorkloadLike, check_is_text, is_script, only_function
from service.wire.requests import Workload


def to_wire(workload: WorkloadLike) -> Workload:
    """Return the text for a server; a text is sent unchanged, and parsed there.

    Raises:
        TypeError: If it has none of the forms.
        ValueError: If not exactly one function of a module is called by no other, or a call is not
            legal.
    """
    if isinstance(workload, Program):
        return Workload(script=script(only_function(workload)))
    check_is_text(workload)
    if is_script(workload):
        return Workload(script=workload)
    return Workload(operator=workload.strip())
