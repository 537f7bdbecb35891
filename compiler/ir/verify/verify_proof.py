"""Proofs of claims that the verifier needs: by known facts, or else by trying all points."""

from __future__ import annotations

from compiler.ir.arith.facts import Facts
from compiler.ir.arith.vectors import ends
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, BufferRegion, Expr, IntImm
from compiler.ir.verify.exhaustive_proof import MAX_POINTS, is_never_negative, points_of

# A chosen bound on the points of all proofs of one program.
_ALL_POINTS = 1 << 21


class Prover:
    """Proves claims about indices of one program.

    Args:
        accepts_all: Whether to accept all claims that are in question for a symbolic program.
    """

    def __init__(self, *, accepts_all: bool) -> None:
        self._accepts_all = accepts_all
        self._points_left = _ALL_POINTS  # a limit, so that a refusal takes little time

    def within(self, facts: Facts, value: Expr, low: int, high: int) -> bool:
        """Return whether a value is provably in `low` to `high`, both included."""
        if self._accepts_all or facts.within(value, low, high):
            return True
        dtype = dtype_of(value)
        return self._try_all(BinOp("-", value, IntImm(low, dtype)), facts) and self._try_all(
            BinOp("-", IntImm(high, dtype), value), facts
        )

    def is_below(self, facts: Facts, value: Expr, extent: Expr) -> bool:
        """Return whether a value is provably in 0 to `extent - 1`."""
        if isinstance(extent, IntImm):
            return self.within(facts, value, 0, extent.value - 1)
        if self._accepts_all:
            return True
        last = BinOp("-", extent, IntImm(1, dtype_of(extent)))
        zero = IntImm(0, dtype_of(value))
        return self.at_least(facts, value, zero) and self.at_least(facts, last, value)

    def at_least(self, facts: Facts, greater: Expr, smaller: Expr) -> bool:
        """Return whether `greater >= smaller` provably holds."""
        return facts.at_least(greater, smaller) or self._try_all(
            BinOp("-", greater, smaller), facts
        )

    def _try_all(self, expr: Expr, facts: Facts) -> bool:
        """Return whether an expression is never negative, by all points if they are few."""
        points = points_of(expr, facts)
        if points is None or points > min(MAX_POINTS, self._points_left):
            return False
        self._points_left -= points
        return is_never_negative(expr, facts)

    def covers(self, region: BufferRegion, indices: tuple[Expr, ...], facts: Facts) -> bool:
        """Return whether an access, which is in bounds, is provably in a region."""
        for r, index, size in zip(region.region, indices, region.buffer.shape, strict=True):
            is_whole = r.extent == size and r.minimum == IntImm(0, dtype_of(r.minimum))
            if index == r.minimum or is_whole:
                continue
            last = BinOp("-", BinOp("+", r.minimum, r.extent), IntImm(1, dtype_of(r.minimum)))
            for end in ends(index) or (index,):
                if not (self.at_least(facts, end, r.minimum) and self.at_least(facts, last, end)):
                    return False
        return True
