"""`IndexMap`: the new position of each element when a buffer or a block gets another layout.

A map is built from a Python function of indices, or read from the text of a lambda, which is parsed
and never run. `compiler.schedule.index.index_map_inverse` inverts maps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Expr,
    IntImm,
    Load,
    Var,
)
from compiler.ir.core.visit import map_expr, substitute, transform_expr, walk
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import print_expr
from compiler.schedule.index.lambda_text import LambdaError, read_lambda
from compiler.te.value import Value, as_value

MAX_RESULTS = 32


class IndexMapError(ValueError):
    """An index map that is invalid, or lacks a required property."""


@dataclass(frozen=True)
class IndexMap:
    """A function of indices: element `params` of the old layout is element `results` of the new.

    Args:
        params: One variable for each dimension of the old layout.
        results: Integer expressions of the variables.
        inverse_index_map: The inverse, if the caller gave it. It is not trusted.
    """

    params: tuple[Var, ...]
    results: tuple[Expr, ...]
    inverse_index_map: IndexMap | None = None

    @classmethod
    def from_func(
        cls,
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: Callable[..., object] | IndexMap | None = None,
        *,
        index_dtype: DType = "int32",
    ) -> IndexMap:
        """Build a map from a Python function.

        Args:
            mapping_function: Takes indices and returns one index or several; `*args` is allowed,
                and parameters after it are the last indices.
            ndim: The number of indices; required if the function takes any number.
            index_dtype: The type of the indices.

        Raises:
            IndexMapError: If the function does not take or return indices.
        """
        names = parameters_of(mapping_function, ndim)
        params = tuple(Var(name, index_dtype) for name in names)
        by_name = _keyword_only(mapping_function)
        by_position = params[: len(params) - len(by_name)]
        named = zip(by_name, params[len(by_position) :], strict=True)
        try:
            returned = mapping_function(
                *map(Value, by_position), **{name: Value(param) for name, param in named}
            )
        except TypeError as error:
            raise IndexMapError(f"the function of the index map failed: {error}") from None
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = cls.from_func(inverse, index_dtype=index_dtype)
        return cls(params, index_results(returned, index_dtype), inverse)

    @classmethod
    def parse(
        cls,
        text: str,
        ndim: int | None = None,
        *,
        index_dtype: DType = "int32",
        symbols: Sequence[Var] = (),
    ) -> IndexMap:
        """Read a map from the text of a lambda, such as `lambda i: (i // 4, i % 4)`.

        Args:
            symbols: Variables that the lambda may name, beside its indices.

        Raises:
            IndexMapError: If the text is not such a lambda.
        """
        try:
            names, function = read_lambda(text, ndim, symbols)
        except LambdaError as error:
            raise IndexMapError(str(error)) from None
        params = tuple(Var(name, index_dtype) for name in names)
        try:
            return cls(params, index_results(function([Value(p) for p in params]), index_dtype))
        except (LambdaError, TypeError) as error:
            raise IndexMapError(f"the index map is not understood: {error}") from None

    def with_dtype(self, dtype: DType) -> IndexMap:
        """Return the map on indices of another integer type."""
        if all(param.dtype == dtype for param in self.params) and all(
            dtype_of(result) == dtype for result in self.results
        ):
            return self
        params = tuple(Var(param.name, dtype) for param in self.params)
        mapping = dict(zip(self.params, params, strict=True))
        return IndexMap(params, tuple(_retyped(r, mapping, dtype) for r in self.results))

    def map_indices(
        self, indices: Sequence[Expr], ranges: Mapping[Var, int] | None = None
    ) -> tuple[Expr, ...]:
        """Return the new indices of an element.

        Args:
            ranges: The extents of the variables of the indices, to simplify by.

        Raises:
            IndexMapError: If the number of indices is wrong.
        """
        self._require_rank(len(indices))
        mapping = dict(zip(self.params, indices, strict=True))
        return tuple(
            simplify(substitute(result, mapping), {} if ranges is None else ranges)
            for result in self.results
        )

    def map_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the smallest shape, from zero, that holds all elements of a shape.

        Raises:
            IndexMapError: If an index may be negative, or is not known to be bounded.
        """
        self._require_rank(len(shape))
        ranges = dict(zip(self.params, shape, strict=True))
        sizes: list[int] = []
        for result in self.results:
            interval = bounds(*_without_modulus(result, ranges))
            if interval is None or interval[0] != 0:
                where = "has no known bounds" if interval is None else f"starts at {interval[0]}"
                raise IndexMapError(f"the index {show(self.params, result)} {where}, not at 0")
            sizes.append(interval[1] + 1)
        return tuple(sizes)

    def _require_rank(self, rank: int) -> None:
        if rank != len(self.params):
            raise IndexMapError(f"the map {self} takes {len(self.params)} indices, not {rank}")

    def __str__(self) -> str:
        names = Names()
        params = ", ".join(names.bind(param) for param in self.params)
        results = "".join(f"{print_expr(result, names)}, " for result in self.results)
        return f"lambda{' ' if params else ''}{params}: ({results.removesuffix(' ')})"


IndexMapLike: TypeAlias = IndexMap | Callable[..., object] | str
"""What a primitive takes for a map: the map, a Python function, or the text of a lambda."""


def as_index_map(
    given: IndexMapLike, ndim: int, dtype: DType = "int32", symbols: Sequence[Var] = ()
) -> IndexMap:
    """Return the map of `ndim` indices of a type that an argument describes.

    Args:
        symbols: The symbolic sizes of the program, which the map may name.

    Raises:
        IndexMapError: If the argument is not a map, or takes another number of indices.
    """
    match given:
        case IndexMap():
            index_map = given
        case str():
            index_map = IndexMap.parse(given, ndim, index_dtype=dtype, symbols=symbols)
        case _ if callable(given):
            index_map = IndexMap.from_func(given, ndim, index_dtype=dtype)
        case _:
            raise IndexMapError(f"expected an index map, a function or a lambda's text: {given!r}")
    if len(index_map.params) != ndim:
        raise IndexMapError(
            f"the map {index_map} takes {len(index_map.params)} indices, not {ndim}"
        )
    index_map = index_map.with_dtype(dtype)
    require_readable(index_map.params, index_map.results, symbols)
    return index_map


def require_readable(
    params: Sequence[Var], results: Iterable[Expr], symbols: Sequence[Var] = ()
) -> None:
    """Require that a function can be read again from its text, as traces do.

    Args:
        symbols: The symbolic sizes of the program.

    Raises:
        IndexMapError: If a result names anything else than indices and these sizes.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    for param in params:
        by_name[param.name] = param
    for node in (node for result in results for node in walk(result)):
        if isinstance(node, Load) or (isinstance(node, Var) and by_name.get(node.name) != node):
            named = node.buffer.name if isinstance(node, Load) else node.name
            reason = f"the function names {named}: expected indices"
            sizes = ", ".join(symbol.name for symbol in symbols)
            raise IndexMapError(f"{reason}, and the sizes {sizes}" if sizes else f"{reason} only")


def show(params: Sequence[Var], expr: Expr) -> str:
    """Print an expression of the indices of a map."""
    names = Names()
    for param in params:
        names.bind(param)
    return print_expr(expr, names)


def parameters_of(function: Callable[..., object], ndim: int | None) -> list[str]:
    """Return the names of the indices that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise IndexMapError(f"{function!r} is no function of indices") from None
    names: list[str] = []
    takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    num_last = len(_keyword_only(function))
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if ndim is None:
                raise IndexMapError("ndim is needed: the map takes any number of indices")
            names.extend(f"{parameter.name}_{n}" for n in range(ndim - len(names) - num_last))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD or (
            parameter.kind is inspect.Parameter.KEYWORD_ONLY and not takes_any
        ):
            raise IndexMapError(f"the map takes {parameter.name} by keyword: indices have places")
        else:
            names.append(parameter.name)
    return names


def _keyword_only(function: Callable[..., object]) -> list[str]:
    """Return the parameters after `*indices`, which stand for the last indices."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def index_results(returned: object, dtype: DType) -> tuple[Expr, ...]:
    """Return the result of a function of indices as integer expressions.

    Raises:
        IndexMapError: If it is no index, or no few of them.
    """
    items = returned if isinstance(returned, list | tuple) else (returned,)
    if len(items) > MAX_RESULTS:
        raise IndexMapError(f"the map gives {len(items)} indices: expected {MAX_RESULTS} at most")
    results: list[Expr] = []
    for item in items:
        if not isinstance(item, Value | int) or isinstance(item, bool):
            raise IndexMapError(f"the map gives {item!r}: expected an index")
        value = as_value(item, None if isinstance(item, Value) else dtype)
        if not is_integer(value.dtype) or value.tensors:
            raise IndexMapError("the map gives what is no integer of its indices")
        results.append(value.expr)
    return tuple(results)


def _without_modulus(expr: Expr, ranges: Mapping[Var, int]) -> tuple[Expr, Mapping[Var, int]]:
    """Replace each `x % m` by a variable that takes all values 0, ..., m - 1.

    So the new extent of `i % 8` is 8, even if `i` has 6 values.
    """
    rests: dict[Expr, Var] = {}

    def rest(node: Expr) -> Expr | None:
        match node:
            case BinOp("%", _, IntImm(modulus)) if modulus > 0:
                return rests.setdefault(node, Var(f"r{len(rests)}", dtype_of(node)))
            case _:
                return None

    new = transform_expr(expr, rest)
    extents = {var: _modulus(node) for node, var in rests.items()}
    return new, {**ranges, **extents}


def _retyped(expr: Expr, mapping: Mapping[Var, Var], dtype: DType) -> Expr:
    match expr:
        case Var():
            return mapping.get(expr, expr)
        case IntImm(value):
            return IntImm(value, dtype)
        case _:
            return map_expr(expr, lambda e: _retyped(e, mapping, dtype))


def _modulus(expr: Expr) -> int:
    assert isinstance(expr, BinOp), "only remainders are replaced"
    assert isinstance(expr.rhs, IntImm), "only remainders by numbers are replaced"
    return expr.rhs.value
