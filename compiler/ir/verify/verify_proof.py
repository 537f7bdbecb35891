"""What the verifier must be sure of: by what the facts say, or else by trying all points."""

from __future__ import annotations

from compiler.ir.arith.facts import Facts
from compiler.ir.arith.vectors import ends
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, BufferRegion, Expr, IntImm, IterVar
from compiler.ir.verify.exhaustive_proof import MAX_POINTS, is_never_negative, points_of

_ALL_POINTS = 1 << 21


class Prover:
    """Proves claims of indices for one program; of a symbolic one it takes them as they are."""

    def __init__(self, *, is_static: bool) -> None:
        self._is_static = is_static
        self._points_left = _ALL_POINTS  # so that no program takes long to refuse

    def within(self, facts: Facts, value: Expr, low: int, high: int) -> bool:
        """Tell whether a value surely lies in `low` to `high`, both included."""
        if not self._is_static or facts.within(value, low, high):
            return True
        dtype = dtype_of(value)
        return self._try_all(BinOp("-", value, IntImm(low, dtype)), facts) and self._try_all(
            BinOp("-", IntImm(high, dtype), value), facts
        )

    def at_least(self, facts: Facts, greater: Expr, smaller: Expr) -> bool:
        """Tell whether `greater >= smaller` surely holds."""
        return facts.at_least(greater, smaller) or self._try_all(
            BinOp("-", greater, smaller), facts
        )

    def _try_all(self, expr: Expr, facts: Facts) -> bool:
        """Tell whether an expression is never negative, by all points where they are few."""
        points = points_of(expr, facts)
        if points is None or points > min(MAX_POINTS, self._points_left):
            return False
        self._points_left -= points
        return is_never_negative(expr, facts)

    def covers(self, region: BufferRegion, indices: tuple[Expr, ...], facts: Facts) -> bool:
        """Tell whether an access, which is in bounds, surely lies in a region."""
        for r, index, size in zip(region.region, indices, region.buffer.shape, strict=True):
            is_whole = r.extent == size and r.minimum == IntImm(0, dtype_of(r.minimum))
            if index == r.minimum or is_whole:
                continue
            last = BinOp("-", BinOp("+", r.minimum, r.extent), IntImm(1, dtype_of(r.minimum)))
            for end in ends(index) or (index,):
                if not (self.at_least(facts, end, r.minimum) and self.at_least(facts, last, end)):
                    return False
        return True

    def is_in_domain(self, iter_var: IterVar, value: Expr, extent: int, facts: Facts) -> bool:
        """Tell whether the value of an iterator surely lies in its domain."""
        if isinstance(iter_var.extent, IntImm):
            return self.within(facts, value, 0, extent - 1)
        last = BinOp("-", iter_var.extent, IntImm(1, dtype_of(iter_var.extent)))
        zero = IntImm(0, dtype_of(value))
        return self.at_least(facts, value, zero) and self.at_least(facts, last, value)
