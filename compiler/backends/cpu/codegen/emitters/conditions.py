"""Conditions, simplified by the current bindings of loop variables.

A padding's condition holds in all lanes of most vectors; those at the borders need a mask. With `i`
bound to the lanes 0-7 of `1 <= i and i < 33`, `1 <= i` remains; bound to 8-15, nothing does.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.backends.cpu.codegen.emitters.scope import Binding, LaneRange
from compiler.identity_cache import IdentityCache
from compiler.ir.arith.bounds import Interval
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import Expr, Load, Var
from compiler.ir.core.visit import walk

_Range = int | Interval | None


class Conditions:
    """Simplifies conditions, and caches the results by the bindings of their variables."""

    def __init__(self) -> None:
        self._variables: IdentityCache[Expr, tuple[Var, ...] | None] = IdentityCache()
        self._simplified: IdentityCache[Expr, dict[tuple[_Range, ...], Expr]] = IdentityCache()

    def simplified(
        self, condition: Expr, env: Mapping[Var, Binding], extents: Mapping[Var, int]
    ) -> Expr:
        """Return a condition without the parts that hold in all lanes, possibly a constant."""
        variables = self._variables.find(condition, _variables)
        if variables is None:
            return condition
        ranges = tuple(_range(env.get(var), extents.get(var)) for var in variables)
        by_ranges = self._simplified.find(condition, lambda _: {})
        if ranges not in by_ranges:
            pairs = zip(variables, ranges, strict=True)
            bounded = {var: bounds for var, bounds in pairs if bounds is not None}
            by_ranges[ranges] = simplify(condition, bounded)
        return by_ranges[ranges]


def _variables(condition: Expr) -> tuple[Var, ...] | None:
    """Return the variables of a condition, None if it depends on memory."""
    nodes = list(walk(condition))
    if any(isinstance(node, Load) for node in nodes):
        return None
    return tuple(dict.fromkeys(node for node in nodes if isinstance(node, Var)))


def _range(binding: Binding | None, extent: int | None) -> _Range:
    match binding:
        case int():
            return (binding, binding)
        case LaneRange(offset, width):
            return (offset, offset + width - 1)
        case _:
            return extent
