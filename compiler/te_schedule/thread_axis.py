"""Axes of the threads of a GPU, to which `bind` gives the loops of a stage."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.nodes import IntImm
from compiler.schedule.primitives.loops.bind import THREAD_TAGS
from compiler.te.axis import TensorAxis
from compiler.te_schedule.error import StageError


def thread_axis(
    dom: Sequence[int] | int | str | None = None, tag: str = "", name: str = ""
) -> TensorAxis:
    """Declare an axis of threads, as the argument of `s[C].bind`.

    Args:
        dom: The number of threads, or a start of 0 and the number; it is checked against the loop.
            May be left out: `te.thread_axis("threadIdx.x")`.
        tag: "blockIdx.x", "threadIdx.x", "vthread", ...
        name: A name for errors.

    Raises:
        StageError: If there are no such threads, or `dom` is no number of them.
    """
    if isinstance(dom, str):
        return thread_axis(None, dom, name)
    if tag not in THREAD_TAGS:
        tags = ", ".join(THREAD_TAGS)
        raise StageError(
            "te.thread_axis", f"there is no axis {tag!r}; there are: {tags}", "not_found"
        )
    return TensorAxis(name or tag, "thread", _extent(dom), tag)


def _extent(dom: Sequence[int] | int | None) -> IntImm | None:
    ends: object = list(dom) if isinstance(dom, Sequence) else dom
    match ends:
        case None:
            return None
        case [int(first), int(extent)] if first == 0 and extent > 0:
            return IntImm(extent)
        case int(extent) if extent > 0:
            return IntImm(extent)
        case _:
            reason = f"{dom!r} is no range of threads: expected a number, or (0, number)"
            raise StageError("te.thread_axis", reason)
