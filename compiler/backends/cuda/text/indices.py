"""Positions of elements: indices of a buffer as one linear form, and its text."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from compiler.backends.cuda.text.scope import KernelScope
from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bounds import Ranges, bounds
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import BinOp, Buffer, Cast, Expr, IntImm, static_int, static_shape

_MOST_INT = (1 << 31) - 1

AtomPrinter = Callable[[Expr, int], str]
"""Prints an expression inside an operator of a precedence."""


def flat_index(buffer: Buffer, indices: tuple[Expr, ...], scope: KernelScope) -> Affine:
    """Return the position of an element in the storage of its buffer, in elements."""
    dtype: DType = "int64" if any(dtype_of(i) == "int64" for i in indices) else "int32"
    strides = (
        tuple(static_int(s, "a stride") for s in buffer.strides)
        if buffer.strides
        else strides_of(buffer)
    )
    total: Expr = (
        IntImm(0, dtype) if buffer.elem_offset is None else _as_type(buffer.elem_offset, dtype)
    )
    for index, stride in zip(indices, strides, strict=True):
        total = BinOp("+", total, BinOp("*", _as_type(index, dtype), IntImm(stride, dtype)))
    return affine(simplify(total, scope.ranges))


def _as_type(index: Expr, dtype: DType) -> Expr:
    return index if dtype_of(index) == dtype else Cast(dtype, index)


def needs_64_bits(buffer: Buffer, form: Affine, ranges: Ranges) -> bool:
    """Return whether the arithmetic of a position may leave 32 bits."""
    if prod(static_shape(buffer)) > _MOST_INT:
        return True
    total = abs(form.const)
    for atom, coefficient in form.terms:
        interval = bounds(atom, ranges)
        # Values out of buffers are positions in bounds: they fit if the buffer does.
        total += abs(coefficient) * max(map(abs, interval)) if interval else 0
    return total > _MOST_INT


def print_index(form: Affine, scope: KernelScope, print_atom: AtomPrinter, *, wide: bool) -> str:
    """Print a position: `i * 8 + j`, and `(int64)i * 65536 + j` if it needs 64 bits."""
    if not form.terms:
        return str(form.const)
    leads = form.const > 0 and all(coefficient < 0 for _, coefficient in form.terms)
    text = str(form.const) if leads else ""
    for number, (atom, coefficient) in enumerate(form.terms):
        # The first term makes the sum one of 64 bits; products are formed before they are added.
        casts = wide and dtype_of(atom) != "int64" and (number == 0 or abs(coefficient) != 1)
        level = UNARY if casts else SUM + 1 if abs(coefficient) == 1 else PRODUCT
        term = print_atom(atom, level)
        if casts:
            term = f"({scope.value_type('int64')}){term}"
        if abs(coefficient) != 1:
            term += f" * {abs(coefficient)}"
        if text:
            text += f" {'-' if coefficient < 0 else '+'} {term}"
        else:
            text = f"-{term}" if coefficient < 0 else term
    if form.const and not leads:
        text += f" {'-' if form.const < 0 else '+'} {abs(form.const)}"
    return text


UNARY, PRODUCT, SUM = 15, 13, 12
"""How tightly operators of C++ bind."""
