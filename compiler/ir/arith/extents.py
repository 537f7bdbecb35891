"""Extents of loops and iterators that may be no literals."""

from __future__ import annotations

from compiler.ir.core.nodes import Expr, IntImm

UNKNOWN = 2**62
"""Stands for an extent that is no literal: what holds for more iterations holds for fewer.

So large that a quotient of it is still greater than any extent that is known.
"""


def extent_or_unknown(extent: Expr) -> int:
    """Return an extent, `UNKNOWN` if it is no literal."""
    return extent.value if isinstance(extent, IntImm) else UNKNOWN
