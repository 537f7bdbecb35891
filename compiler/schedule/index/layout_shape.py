"""The shape that results from an index map of a shape, including symbolic extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.ir.arith.affine import affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.schedule.index.index_map import IndexMap, IndexMapError, show
from compiler.schedule.index.row_major import renumbered


def map_extents(index_map: IndexMap, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the smallest shape, from zero, that holds all elements of a shape.

    Raises:
        IndexMapError: If an index may be negative, or its extent has an unsupported form.
    """
    flat = renumbered(index_map, shape)
    if flat is not None:
        return map_extents(flat.index_map, flat.sizes)
    numbers = index_map.map_shape([extent_or_unknown(extent) for extent in shape])
    symbols = {
        param: extent
        for param, extent in zip(index_map.params, shape, strict=True)
        if not isinstance(extent, IntImm)
    }
    extents: list[Expr] = []
    for result, number in zip(index_map.results, numbers, strict=True):
        used = [node for node in walk(result) if isinstance(node, Var) and node in symbols]
        is_cut_off = isinstance(result, BinOp) and result.op == "%"
        if not used or is_cut_off:
            extents.append(IntImm(number, dtype_of(result)))
        else:
            extents.append(_extent(index_map, result, symbols))
    return tuple(extents)


def _extent(index_map: IndexMap, result: Expr, symbols: Mapping[Var, Expr]) -> Expr:
    """Return the extent of an index that grows with a symbolic one."""
    dtype = dtype_of(result)
    match result:
        case BinOp("//", Var() as var, IntImm(divisor)) if divisor > 0:
            # The extent, rounded up to a multiple of the divisor.
            rest = BinOp("%", symbols[var], IntImm(-divisor, dtype))
            return BinOp("//", BinOp("-", symbols[var], rest), IntImm(divisor, dtype))
        case _:
            # A symbolic index is the coarsest split of a sum, or the sum is not understood later.
            tops = [(a, scale) for a, scale in affine(result).terms if a in symbols]
            if len(tops) != 1 or any(
                node in symbols and node is not tops[0][0] for node in walk(result)
            ):
                shown = show(index_map.params, result)
                raise IndexMapError(f"the extent of the index {shown} is not understood")
            ((top, scale),) = tops
            assert isinstance(top, Var), "only variables are symbolic"
            extent = symbols[top]
            return extent if scale == 1 else BinOp("*", extent, IntImm(scale, dtype))
