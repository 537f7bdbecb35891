"""Replace the symbolic variables of a program by values."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from compiler.ir.analysis.constant_params import constant_params, with_constants
from compiler.ir.analysis.symbols import (
    OF_SYMBOLS,
    TIMED,
    declared,
    declaring,
    symbol_ranges,
    symbolic_vars,
)
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import is_float, is_integer, smallest_and_largest
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Expr,
    FloatImm,
    IntImm,
    IterVar,
    Stmt,
    SymbolValues,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt, substitute, transform_expr, walk_stmts


def with_limits(func: PrimFunc) -> PrimFunc:
    """Return a program whose symbolic integers have their ranges as `Var.limits`.

    All arithmetic on intervals knows them then. It is for lowering: the program is not printed.
    Their names are different identifiers, of which formulas of extents consist.
    """
    ranges = {v: limits for v, limits in symbol_ranges(func).items() if v.limits is None}
    used = {"min", "max"}  # which formulas of extents call
    limited: dict[Var, Expr] = {}
    for number, (var, limits) in enumerate(ranges.items()):
        name = var.name
        if name in used or not name.isidentifier() or keyword.iskeyword(name):
            name = f"size_{number}"
        used.add(name)
        limited[var] = Var(name, var.dtype, limits)
    return with_values(func, limited)


def specialize(func: PrimFunc, values: SymbolValues) -> PrimFunc:
    """Return a program with symbolic variables replaced; see `PrimFunc.specialize`."""
    if not isinstance(values, Mapping):
        raise TypeError(f"expected a mapping of variables to integers, got {values!r}")
    symbols = symbolic_vars(func)
    mapping: dict[Var, Expr] = {}
    for given, value in values.items():
        key = given if isinstance(given, Var | str) else getattr(given, "var", None)
        if not isinstance(key, Var | str):
            raise TypeError(f"expected a variable or its name, got {given!r}")
        name = key if isinstance(key, str) else key.name
        var = next((v for v in symbols if key in (v, v.name)), None)
        if var is None:
            names = ", ".join(v.name for v in symbols) or "none"
            raise ValueError(
                f"{name} is no symbolic variable of {func.name}; its variables are: {names}"
            )
        mapping[var] = _literal(value, name, var)
    _check_ranges(func, mapping)
    return _without_bounds(with_values(func, mapping), {var.name for var in mapping})


def _check_ranges(func: PrimFunc, values: Mapping[Var, Expr]) -> None:
    declared = symbol_ranges(func)
    for var, literal in values.items():
        low, high = declared.get(var, (0, -1))
        if isinstance(literal, IntImm) and low <= high and not low <= literal.value <= high:
            raise ValueError(
                f"{var.name} can't be {literal.value}: {func.name} is for {low} to {high}"
            )


def _without_bounds(func: PrimFunc, names: Collection[str]) -> PrimFunc:
    entries = {
        key: {name: number for name, number in declared(func, key).items() if name not in names}
        for key in OF_SYMBOLS
    }
    return declaring(func, entries)


def sized(func: PrimFunc) -> PrimFunc:
    """Return a workload at the sizes that it is timed at; without such sizes, as it is."""
    sizes = declared(func, TIMED)
    return specialize(func, dict(sizes.items())) if sizes else func


def with_values(func: PrimFunc, values: Mapping[Var, Expr]) -> PrimFunc:
    """Return a program with symbolic variables replaced by expressions of their types."""
    return _Specializer(values).func(func) if values else func


def with_symbols(func: PrimFunc, symbols: Mapping[int, Var]) -> PrimFunc:
    """Return a program with literals replaced by symbolic variables, by the values of literals."""

    def symbol(expr: Expr) -> Expr | None:
        return symbols.get(expr.value) if isinstance(expr, IntImm) else None

    return _Specializer({}, lambda expr: transform_expr(expr, symbol)).func(func)


def _literal(value: object, name: str, var: Var) -> IntImm | FloatImm:
    """Return the value of a variable, a number of Python or of NumPy, as a literal."""
    assert var.dtype != "handle"
    expected = f"expected a positive {'number' if is_float(var.dtype) else 'integer'}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        if not (is_float(var.dtype) and isinstance(value, float)):
            raise TypeError(f"{name} can't be {value!r}: {expected}")
        number: float = value
    else:
        number = value.__index__()
    if number < 1:
        raise ValueError(f"{name} can't be {number}: {expected}")
    if is_float(var.dtype):
        return FloatImm(float(number), var.dtype)
    if is_integer(var.dtype) and number > smallest_and_largest(var.dtype)[1]:
        raise ValueError(f"{name} can't be {number}: that does not fit into {var.dtype}")
    return IntImm(int(number), var.dtype)


def replaced_in(stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """Return a statement with symbolic variables replaced; its buffers stay the same."""
    return _Specializer(values).stmt(stmt)


class _Specializer:
    """Replaces variables, and expressions by a function."""

    def __init__(
        self, mapping: Mapping[Var, Expr], replaced: Callable[[Expr], Expr] | None = None
    ) -> None:
        self._mapping = mapping
        self._replaced = replaced or (lambda expr: substitute(expr, mapping))
        self._buffers: dict[Buffer, Buffer] = {}

    def func(self, func: PrimFunc) -> PrimFunc:
        params = tuple(
            self._buffer(param) if isinstance(param, Buffer) else param
            for param in (self._mapping.get(p, p) if isinstance(p, Var) else p for p in func.params)
            if isinstance(param, Buffer | Var)
        )
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, BlockRealize):
                matched = (match.buffer for match in stmt.block.match_buffers)
                for buffer in (*stmt.block.alloc_buffers, *matched):
                    self._buffer(buffer)
        body = replace_buffers(self.stmt(func.body), self._buffers)
        assert isinstance(body, BlockRealize)
        specialized = replace(func, params=params, body=body)
        # Constants are positions of parameters, which move if a scalar before them is replaced.
        constants = [buffer.name for buffer in constant_params(func)]
        return with_constants(specialized, constants) if constants else specialized

    def stmt(self, stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, self.stmt, self._expr)
        if not isinstance(new, BlockRealize):
            return new
        iter_vars = tuple(
            IterVar(iv.var, self._expr(iv.extent), iv.kind) for iv in new.block.iter_vars
        )
        return replace(new, block=replace(new.block, iter_vars=iter_vars))

    def _expr(self, expr: Expr) -> Expr:
        new = self._replaced(expr)
        return expr if new is expr else simplify(new)

    def _buffer(self, old: Buffer) -> Buffer:
        new = replace(
            old,
            shape=tuple(self._expr(e) for e in old.shape),
            strides=tuple(self._expr(e) for e in old.strides),
            elem_offset=None if old.elem_offset is None else self._expr(old.elem_offset),
        )
        if new != old:
            self._buffers[old] = new
        return new
