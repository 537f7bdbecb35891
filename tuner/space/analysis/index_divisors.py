"""Find by which numbers a block divides an iterator in its indices."""

from __future__ import annotations

from compiler.ir.core.nodes import BinOp, Block, Expr, IntImm, Var
from compiler.ir.core.visit import walk


def index_divisors(block: Block, index: Expr) -> list[int]:
    """Return the constants that divide an iterator (`//` and `%`), the largest first.

    A tile's number `p` of a row of 7 tiles, and of images of 49, is read at `p // 49`,
    `p % 49 // 7` and `p % 7`: 49 and 7.
    """
    divisors = {
        node.rhs.value
        for node in walk(block.body)
        if isinstance(node, BinOp) and node.op in ("//", "%") and isinstance(node.rhs, IntImm)
        if index in [n for n in walk(node.lhs) if isinstance(n, Var)]
    }
    return sorted(divisors, reverse=True)
