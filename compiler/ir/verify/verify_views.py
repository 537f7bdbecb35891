"""The check of views: shapes, strides and offsets must be those of the viewed region."""

from __future__ import annotations

from compiler.ir.arith.facts import Facts
from compiler.ir.arith.vectors import shifted
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import symbolic_strides
from compiler.ir.core.nodes import BinOp, Buffer, Expr, IntImm, MatchBuffer, Var
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.verify_error import VerifyError


class Layouts:
    """The layout of buffers and views: strides, and the offset in the storage."""

    def __init__(self) -> None:
        self._strides: dict[Buffer, tuple[Expr, ...]] = {}
        self._offsets: dict[Buffer, Expr] = {}

    def match(self, match: MatchBuffer, facts: Facts) -> Facts:
        """Check a view against its region; return the facts with the values of its variables.

        Raises:
            VerifyError: If the region exceeds its buffer, or the view has another layout.
        """
        view, region = match.buffer, match.source.region
        source = match.source.buffer
        lead = len(region) - len(view.shape)
        if lead < 0:
            raise VerifyError(
                f"{view.name} has {len(view.shape)} dimensions, the region of {source.name} that "
                f"it matches {len(region)}",
                view,
                "view",
            )
        expected = [*[IntImm(1)] * lead, *view.shape]
        for r, size, extent in zip(region, source.shape, expected, strict=True):
            if not facts.same(r.extent, extent):
                raise VerifyError(
                    f"{view.name} has shape {_shown(view.shape)}, but matches a region of shape "
                    f"{_shown(tuple(r.extent for r in region))} of {source.name}",
                    view,
                    "view",
                )
            last = BinOp("-", size, shifted(IntImm(0, dtype_of(size)), r.extent))
            if not (facts.at_least(r.minimum, IntImm(0)) and facts.at_least(last, r.minimum)):
                raise VerifyError(
                    f"can't prove that the region of {source.name} that {view.name} matches is in "
                    f"bounds: it begins at {show_expr(r.minimum)} and has {show_expr(r.extent)} "
                    f"elements, the dimension {show_expr(size)}",
                    view,
                    "view",
                )
        strides = self._strides.get(source) or symbolic_strides(source)
        offset = self._offsets.get(source, IntImm(0))
        for r, stride in zip(region, strides, strict=True):
            offset = BinOp("+", offset, BinOp("*", r.minimum, stride))
        self._strides[view], self._offsets[view] = strides[lead:], offset
        return self._bind(view, facts)

    def _bind(self, view: Buffer, facts: Facts) -> Facts:
        strides, offset = self._strides[view], self._offsets[view]
        for declared, stride in zip(view.strides, strides, strict=False):
            interval = facts.bounds(stride)
            if isinstance(declared, Var) and interval is not None:
                facts = facts.with_range(declared, interval)
            elif not facts.same(declared, stride):
                raise VerifyError(
                    f"{view.name} has strides {_shown(view.strides)}, what it matches "
                    f"{_shown(strides)}",
                    view,
                    "view",
                )
        if view.strides and len(view.strides) != len(strides):
            raise VerifyError(
                f"{view.name} has {len(view.strides)} strides for {len(strides)} dimensions",
                view,
                "view",
            )
        if view.offset_factor > 1 and not facts.same(
            BinOp("%", offset, IntImm(view.offset_factor)), IntImm(0)
        ):
            raise VerifyError(
                f"can't prove that {view.name} begins at a multiple of {view.offset_factor} "
                f"elements: it begins at {show_expr(offset)}",
                view,
                "view",
            )
        if isinstance(view.elem_offset, Var):
            interval = facts.bounds(offset)
            return facts if interval is None else facts.with_range(view.elem_offset, interval)
        if view.elem_offset is not None and not facts.same(view.elem_offset, offset):
            raise VerifyError(
                f"{view.name} begins at element {show_expr(view.elem_offset)}, what it matches at "
                f"{show_expr(offset)}",
                view,
                "view",
            )
        return facts


def _shown(exprs: tuple[Expr, ...]) -> str:
    return f"[{', '.join(show_expr(e) for e in exprs)}]"
