"""Find buffers whose padding a program computes with.

Tiles that do not divide an extent have rows and lanes that do not exist. The program computes them,
too, and no result depends on them (`drop_guards`, `fill_vectors`). The time does: Intel's CPUs are
slow with subnormal numbers, and old memory holds such, as the upper halves of addresses are
subnormal `float32`. On an Emerald Rapids, attention of 197 tokens took 9.3 ms, not 1.3. So padding
is zero: on the stack when a function begins, and in workspaces, which start as zeros.
"""

from __future__ import annotations

from compiler.ir.arith.affine import Affine
from compiler.ir.core.nodes import Buffer, Stmt
from compiler.passes.common.accesses import LoweredAccess, collect_accesses


def may_read_padding(buffer: Buffer, body: Stmt) -> bool:
    """Return whether a statement may load elements of a buffer that it never stores."""
    accesses = collect_accesses(body, {buffer}).get(buffer, [])
    stores = [access for access in accesses if access.is_store]
    if any(store.conditions(0) for store in stores):
        return True
    written = _ends(stores)
    loaded = _ends([access for access in accesses if not access.is_store])
    return any(
        end is None or (last is not None and end > last)
        for last, end in zip(written, loaded, strict=False)
    )


def _ends(accesses: list[LoweredAccess]) -> list[int | None]:
    """Return, for each dimension, the end of the elements that are accessed; None if unknown."""
    by_access = [[_end(span) for span in access.box(0)] for access in accesses]
    return [
        None if any(end is None for end in ends) else max(end for end in ends if end is not None)
        for ends in zip(*by_access, strict=True)
    ]


def _end(span: tuple[Affine, int] | None) -> int | None:
    if span is None or span[0].terms:
        return None
    return span[0].const + span[1]
