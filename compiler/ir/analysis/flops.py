"""Count the arithmetic operations of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from compiler.executor.named_type import named_type
from compiler.ir.analysis.products import added_product
from compiler.ir.analysis.symbols import symbolic_problem
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import is_float, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.function_calls import call_problem
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Call,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import children, substitute, walk, walk_stmts

# Iterations of a loop that are counted one by one, since extents inside depend on it.
_MAX_STEPS = 1024


def flops(func: PrimFunc) -> int:
    """Return the number of arithmetic operations of one run.

    On floats, an arithmetic operation, a minimum or maximum, and a call of a function count as one
    each. On integers, a product that is added to a sum counts as two. Comparisons, conversions,
    other arithmetic on integers, such as indices, and initialisations count as none. For a choice,
    the more expensive side counts; predicates are assumed to hold. An extent that depends on outer
    loops is counted for each of their iterations, or for the middle one if there are many. A loop
    whose extent is known only at run time counts as one iteration.

    Raises:
        TypeError: If the argument is not a function.
        ValueError: If a shape of the function is symbolic, or the function calls another.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"expected a PrimFunc, got {named_type(func)}")
    problem = symbolic_problem(func)
    if problem is not None:
        raise ValueError(f"{func.name}: {problem}")
    problem = call_problem(func)
    if problem is not None:
        raise ValueError(problem)
    return _Counter({}, _MAX_STEPS).stmt(func.body)


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts the operations of statements.

    Args:
        var_values: The values of the variables that extents depend on.
        steps: The number of iterations that may still be counted one by one.
    """

    var_values: Mapping[Var, Expr]
    steps: int

    def stmt(self, stmt: Stmt) -> int:  # noqa: C901 - one case a node
        match stmt:
            case Store():
                return _expr(stmt.value) + _integer_operations(stmt)
            case Evaluate(value):
                return _expr(value)
            case Let(var, value, body):
                return _expr(value) + self._knowing(var, value, body).stmt(body)
            case Seq(stmts):
                return sum(self.stmt(s) for s in stmts)
            case If(condition, then, otherwise):
                sides = (self.stmt(then), 0 if otherwise is None else self.stmt(otherwise))
                return _expr(condition) + max(sides)
            case While(condition, body):
                return _expr(condition) + self.stmt(body)  # at least one iteration, for all we know
            case For():
                return self._loop(stmt)
            case BlockRealize(values, _, block):
                inner = self
                for iterator, value in zip(block.iter_vars, values, strict=True):
                    inner = inner._knowing(iterator.var, value, block.body)
                return inner.stmt(block.body)
            case Allocate(_, body):
                return self.stmt(body)
            case _:
                assert_never(stmt)

    def _loop(self, loop: For) -> int:
        extent = simplify(substitute(loop.extent, self.var_values))
        times = max(extent.value, 0) if isinstance(extent, IntImm) else 1
        if times == 0 or not _decides(loop.var, loop.body):
            return times * self.stmt(loop.body)
        extent_dtype = dtype_of(loop.extent)
        if times > self.steps:
            middle = IntImm((times - 1) // 2, extent_dtype)
            return times * _Counter({**self.var_values, loop.var: middle}, self.steps).stmt(
                loop.body
            )
        left = self.steps // times
        iterations = (
            _Counter({**self.var_values, loop.var: IntImm(i, extent_dtype)}, left).stmt(loop.body)
            for i in range(times)
        )
        return sum(iterations)

    def _knowing(self, var: Var, value: Expr, body: Stmt) -> _Counter:
        if not _decides(var, body):
            return self
        return _Counter({**self.var_values, var: substitute(value, self.var_values)}, self.steps)


def _decides(var: Var, body: Stmt) -> bool:
    """Return whether the extent of a loop in `body` may depend on a variable."""
    decisive = {var}
    for stmt in walk_stmts(body):
        match stmt:
            case For(_, extent) if _mentions(extent, decisive):
                return True
            case Let(name, value) if _mentions(value, decisive):
                decisive.add(name)
            case BlockRealize(values, _, block):
                for iterator, bound in zip(block.iter_vars, values, strict=True):
                    if _mentions(bound, decisive):
                        decisive.add(iterator.var)
            case _:
                pass
    return False


def _mentions(expr: Expr, variables: set[Var]) -> bool:
    return any(isinstance(node, Var) and node in variables for node in walk(expr))


def _integer_operations(store: Store) -> int:
    product = added_product(store)
    return 2 if product is not None and is_integer(store.buffer.dtype) else 0


def _expr(expr: Expr) -> int:
    if isinstance(expr, Conditional):
        return _expr(expr.condition) + max(_expr(expr.then), _expr(expr.otherwise))
    is_counted = isinstance(expr, BinOp | Call) and is_float(dtype_of(expr))
    inner = [_expr(child) for child in children(expr)]  # type: ignore[arg-type]
    return int(is_counted) + sum(inner)
