"""Compare a kernel's results with the oracle's.

Rounding errors grow with the number of terms of a sum, and a sum of large terms that cancel keeps
the error of the large terms. So the tolerance is a share of an output's largest magnitude, and
grows with the square root of the reduction length, in the type of the sums. Narrow floats are
computed in 32 bits: a product of bfloat16 that is summed in float32 is rounded to bfloat16 once. A
program that amplifies rounding errors, such as a recurrence, gets a tolerance from its growth of
errors, which `compiler.ir.interpret.error_growth` measures. Integers must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compiler.ir.analysis.running_sum import running_sum
from compiler.ir.arith.bounds import Interval, reach
from compiler.ir.core.dtypes import DType, epsilon, is_float, sum_dtype
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Cast,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import children, is_stmt, operands_of, statements_in, walk, walk_stmts

# A product or an accurate function errs by one rounding, a polynomial for exp by a few, and
# operations are chained. A sum adds a random walk, here five times its expected length.
_ROUNDINGS = 16.0
_ROUNDINGS_PER_ROOT = 8.0
# Two values that hardly differ may be rounded to neighbours, one epsilon apart.
_ROUNDINGS_OF_CONVERSIONS = 1.0
# The roundings of a kernel have a few times the effect of moving each input by one rounding.
# The limit keeps half of the digits, so that a defect shows.
_GROWTHS = 8.0
# A chosen bound: zeros are off by 1. Only long sums in a narrow type reach it.
_LARGEST_TOLERANCE = 0.5

# The assumed length of a sum in a loop of unknown length.
_WHILE_TERMS = 64


class Mismatch(Exception):  # noqa: N818 - a finding, which callers turn into a value
    """A result that differs from that of the oracle.

    Attributes:
        output: The name of the parameter.
        index: The index of the element that differs most.
        got: Its value.
        expected: Its expected value.
        error: The difference, as a share of the output's largest magnitude.
        tolerance: The share that is allowed.
        count: The number of elements that differ by more than that.
    """

    def __init__(
        self,
        output: str,
        index: tuple[int, ...],
        *,
        got: float,
        expected: float,
        error: float,
        tolerance: float,
        count: int,
    ) -> None:
        shown = ", ".join(map(str, index))
        super().__init__(
            f"{output}[{shown}] is {got}, expected {expected}: {count} element(s) are off by more "
            f"than {tolerance:.2g} of the largest magnitude, the worst by {error:.2g}"
        )
        self.output = output
        self.index = index
        self.got = got
        self.expected = expected
        self.error = error
        self.tolerance = tolerance
        self.count = count

    def at(self, index: tuple[int, ...]) -> Mismatch:
        """Return the same mismatch with another index of its element."""
        return Mismatch(
            self.output,
            index,
            got=self.got,
            expected=self.expected,
            error=self.error,
            tolerance=self.tolerance,
            count=self.count,
        )


def tolerance(func: PrimFunc) -> float:
    """Return the error that rounding explains, as a share of an output's largest magnitude."""
    types = _float_types(func)
    conversions = _coarsest(types.stored) + _coarsest(types.converted)
    single = max(_coarsest(types.computed) * _ROUNDINGS, conversions * _ROUNDINGS_OF_CONVERSIONS)
    per_root = _coarsest(types.summed or types.stored) * _ROUNDINGS_PER_ROOT
    return min(single + per_root * math.sqrt(_reduction_length(func)), _LARGEST_TOLERANCE)


def computed_epsilon(func: PrimFunc) -> float:
    """Return the epsilon of the coarsest type in which a program computes; 0 if it has none."""
    return _coarsest(_float_types(func).computed)


def conversion_nudges(func: PrimFunc) -> dict[Buffer, float]:
    """Return the shares by which to move converted values that are loaded again.

    Their growth then allows one rounding of each: a conversion happens once. That of an output only
    rounds it: no later operation amplifies its error.
    """
    return {b: epsilon(b.dtype) / _GROWTHS for b in _converted_buffers(func)}


def _coarsest(dtypes: set[DType]) -> float:
    """Return the largest epsilon of some types; 0 for none."""
    return max(map(epsilon, dtypes), default=0.0)


def compare(
    func: PrimFunc,
    got: Mapping[str, NDArray[Any]],
    expected: Mapping[str, NDArray[Any]],
    growth: Mapping[str, float] = MappingProxyType({}),
) -> float:
    """Compare results with those of the oracle, output by output.

    Args:
        func: The program, which determines the expected rounding.
        got: At least the outputs, by name.
        expected: The result of `interpret`.
        growth: The growth of errors from `error_growth`, by output.

    Returns:
        The largest difference as a share of its output's largest magnitude.

    Raises:
        Mismatch: If a difference is beyond rounding, or a value is a NaN.
        ValueError: If an output is missing or has another shape.
    """
    allowed = allowed_errors(func, growth)
    outputs = [p for p in func.buffers if p.name in expected]
    return max(_compare(p, got, expected[p.name], allowed[p.name]) for p in outputs)


def allowed_errors(func: PrimFunc, growth: Mapping[str, float]) -> dict[str, float]:
    """Return the error that is allowed for each parameter, if the program writes it.

    It is a share of the largest magnitude of the parameter; 0 if that is no floating-point array.

    Args:
        growth: The growth of errors from `error_growth`, by output.
    """
    rounding = tolerance(func)
    types = _float_types(func)
    most = max(rounding, math.sqrt(_coarsest(types.computed | types.converted)))
    shares = {p: max(rounding, _GROWTHS * growth.get(p.name, 0.0)) for p in func.buffers}
    return {p.name: min(share, most) if is_float(p.dtype) else 0.0 for p, share in shares.items()}


def _compare(
    param: Buffer, got: Mapping[str, NDArray[Any]], expected: NDArray[Any], allowed: float
) -> float:
    result = got.get(param.name)
    if result is None or result.shape != expected.shape:
        shape = None if result is None else result.shape
        raise ValueError(f"output {param.name} has shape {shape}: expected {expected.shape}")
    quick = _quick_error(result, expected)
    if quick is not None and quick <= allowed:
        return quick
    expected_values, actual = expected.astype(np.float64), result.astype(np.float64)
    with np.errstate(all="ignore"):
        # Equal infinities have no difference; a NaN on either side has an infinite one.
        off = np.where(expected_values == actual, 0.0, np.abs(expected_values - actual))
        off[np.isnan(off)] = np.inf
        finite = np.abs(expected_values[np.isfinite(expected_values)])
        scale = float(finite.max(initial=0.0)) or 1.0
        errors = off / scale
    worst = float(errors.max(initial=0.0))
    if worst > allowed:
        index = np.unravel_index(int(errors.argmax()), errors.shape)
        raise Mismatch(
            param.name,
            tuple(int(i) for i in index),
            got=result[index].item(),
            expected=expected[index].item(),
            error=worst,
            tolerance=allowed,
            count=int((errors > allowed).sum()),
        )
    return worst


def _quick_error(result: NDArray[Any], expected: NDArray[Any]) -> float | None:
    """Return the largest error, computed in the type of the arrays; None if it may be inexact.

    Most results are correct, and this takes a tenth of the time. The difference of close numbers is
    exact. A value that is not finite makes the sum of the extremes not finite.
    """
    if result.dtype != expected.dtype or not expected.size:
        return None
    if result.dtype.kind in "biu":
        return 0.0 if np.array_equal(result, expected) else None
    if result.dtype not in (np.float32, np.float64):
        return None
    with np.errstate(all="ignore"):
        off = result - expected
        worst = max(float(off.max()), -float(off.min()))
        scale = max(float(expected.max()), -float(expected.min())) or 1.0
    return worst / scale if math.isfinite(worst + scale) else None


class _FloatTypes(NamedTuple):
    """The floating-point types of a program, whatever the types of its inputs.

    Attributes:
        computed: Those of arithmetic. Narrow floats are computed in float32, but a value that is
            loaded again or converted may be rounded between: the schedule decides.
        converted: Those to which values are converted that are stored and loaded again. Each
            kernel has these conversions.
        stored: Those of stored values.
        summed: Those of stored values to which terms are added.
    """

    computed: set[DType]
    converted: set[DType]
    stored: set[DType]
    summed: set[DType]


def _float_types(func: PrimFunc) -> _FloatTypes:
    converted = {buffer.dtype for buffer in _converted_buffers(func)}
    types = _FloatTypes(set(), converted, set(), set())
    loaded = _loaded_buffers(func)
    for stmt in walk_stmts(func.body):
        is_result = isinstance(stmt, Store) and stmt.buffer not in loaded
        for part in children(stmt):
            if not isinstance(part, Block) and not is_stmt(part):
                arithmetic = _types_of_arithmetic(part, is_result=is_result)  # type: ignore[arg-type]
                types.computed.update(arithmetic)
        if isinstance(stmt, Store) and is_float(stmt.buffer.dtype):
            types.stored.add(stmt.buffer.dtype)
            if Load(stmt.buffer, stmt.indices) in walk(stmt.value):
                types.summed.add(stmt.buffer.dtype)
    return types


def _loaded_buffers(func: PrimFunc) -> set[Buffer]:
    return {node.buffer for node in walk(func.body) if isinstance(node, Load)}


def _converted_buffers(func: PrimFunc) -> set[Buffer]:
    """Return the buffers of converted floats that are loaded again."""
    return {
        stmt.buffer
        for stmt in walk_stmts(func.body)
        if isinstance(stmt, Store)
        and is_float(stmt.buffer.dtype)
        and any(isinstance(part, Cast) for part in walk(stmt.value))
    } & _loaded_buffers(func)


def _types_of_arithmetic(expr: Expr, *, is_result: bool) -> Iterator[DType]:
    """Yield the types in which floats are computed.

    Args:
        expr: An expression.
        is_result: Whether its value is stored, and not loaded again.
    """
    stack = [(expr, is_result)]
    while stack:
        node, is_stored_only = stack.pop()
        if isinstance(node, BinOp | Call) and is_float(dtype_of(node)):
            yield sum_dtype(dtype_of(node)) if is_stored_only else dtype_of(node)
        below = is_stored_only and not isinstance(node, Cast)
        stack.extend((operand, below) for operand in operands_of(node))


def _reduction_length(func: PrimFunc) -> int:
    """Return the number of terms of all reductions together: one may feed another."""
    ranges: dict[Var, Interval] = {}
    total = sum(_terms_of_loops(func.body, ()))
    for node in walk(func.body):
        if isinstance(node, For):
            ranges[node.var] = 0, max(reach(node.extent, ranges)[1] - 1, 0)
        if isinstance(node, Block):
            extents = {iv: max(reach(iv.extent, ranges)[1], 1) for iv in node.iter_vars}
            ranges.update((iv.var, (0, extent - 1)) for iv, extent in extents.items())
            reduced = [extent for iv, extent in extents.items() if iv.kind == "reduce"]
            if running_sum(node) is not None:
                reduced = [extent for iv, extent in extents.items() if iv.kind == "scan"]
            total += math.prod(reduced) if reduced else 0
    return total


def _terms_of_loops(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[int]:
    """Yield the number of terms that each plain loop nest adds to an element it also loads.

    Args:
        stmt: Part of a program.
        loops: The loops around it, up to the next block.
    """
    match stmt:
        case Store(buffer, indices, value):
            if Load(buffer, indices) in walk(value):
                summed = list(_summed(stmt, loops))
                yield math.prod(summed) if summed else 0
        case For():
            yield from _terms_of_loops(stmt.body, (*loops, stmt))
        case While(_, body):
            yield from (_WHILE_TERMS * max(terms, 1) for terms in _terms_of_loops(body, loops))
        case BlockRealize(_, _, block):
            yield from _terms_of_loops(block.body, ())
        case _:
            for child in statements_in(stmt):
                yield from _terms_of_loops(child, loops)


def _summed(store: Store, loops: tuple[For, ...]) -> Iterator[int]:
    """Yield the extents of the summation loops, up to the loop in which the sum begins."""
    used = {node for index in store.indices for node in walk(index)}
    for loop in reversed(loops):
        if any(_begins(inner, store.buffer) for inner in walk_stmts(loop.body)):
            return
        if loop.var not in used and isinstance(loop.extent, IntImm):
            yield loop.extent.value


def _begins(stmt: Stmt, buffer: Buffer) -> bool:
    if not isinstance(stmt, Store) or stmt.buffer != buffer:
        return False
    return Load(buffer, stmt.indices) not in walk(stmt.value)
