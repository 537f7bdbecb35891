"""The loops that may be split, fused and sampled."""

from __future__ import annotations

from compiler.ir.core.nodes import For, IntImm
from compiler.schedule.error import Refuse


def require_plain(loop: For, refuse: Refuse) -> None:
    """Refuse a loop with annotations or a thread, which its replacement would lose."""
    if loop.thread is not None:
        raise refuse(f"loop {loop.var.name} is bound to {loop.thread}", loop, "loop_kind")
    if loop.annotations:
        names = ", ".join(key for key, _ in loop.annotations)
        raise refuse(f"loop {loop.var.name} has annotations: {names}", loop, "loop_kind")


def literal_extent(loop: For, refuse: Refuse) -> int:
    """Return the extent of a loop, or refuse one that is not a literal."""
    if not isinstance(loop.extent, IntImm):
        raise refuse(f"the extent of loop {loop.var.name} is not a literal", loop, "loop_kind")
    return loop.extent.value
