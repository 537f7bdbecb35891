"""The types that programs compute with, and products that are added to sums."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Cast, Expr, Load, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts

_BYTES = {"int8", "uint8"}


def common_dtype(func: PrimFunc) -> str | None:
    """Return the type of all parameters of a program, None if they have several."""
    dtypes = {buffer.dtype for buffer in func.buffers}
    return str(dtypes.pop()) if len(dtypes) == 1 else None


def main_dtype(func: PrimFunc) -> str | None:
    """Return the type that a program computes with; None if it has several.

    It is that of all parameters, or else of the numbers that are multiplied and added.
    """
    return common_dtype(func) or multiplied_dtype(func)


def added_product(store: Store) -> BinOp | None:
    """Return the product that a statement adds to the element it stores, if it does that."""
    match store.value:
        case BinOp("+", Load(buffer, indices), BinOp("*") as product) | BinOp(
            "+", BinOp("*") as product, Load(buffer, indices)
        ) if (buffer, indices) == (store.buffer, store.indices):
            return product
        case _:
            return None


def multiplied_dtype(func: PrimFunc) -> DType | None:
    """Return the type of the numbers that a program multiplies and adds, before they are converted.

    It is None if there are no such products, or if their types differ. Bytes count as one type,
    "int8", whether they are signed or not.
    """
    products = (added_product(node) for node in walk_stmts(func.body) if isinstance(node, Store))
    factors = [side for p in products if p is not None for side in (p.lhs, p.rhs)]
    dtypes = {_unconverted(factor) for factor in factors}
    return dtypes.pop() if len(dtypes) == 1 else None


def _unconverted(factor: Expr) -> DType:
    while isinstance(factor, Cast):
        factor = factor.value
    dtype = dtype_of(factor)
    return "int8" if dtype in _BYTES else dtype
