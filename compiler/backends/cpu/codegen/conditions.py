"""What is known of a condition under the current bindings of loop variables.

A padding's condition holds for most vectors of a row, and is worth a mask at the borders only.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.backends.cpu.codegen.scope import Binding, LaneRange
from compiler.ir.arith.bounds import Interval
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import Expr, Load, Var
from compiler.ir.core.visit import walk

_Range = int | Interval | None


class Conditions:
    """Conditions simplified, remembered by what their variables are bound to."""

    def __init__(self) -> None:
        # By identity, which holding the condition keeps its own.
        self._vars: dict[int, tuple[Expr, tuple[Var, ...] | None]] = {}
        self._known: dict[tuple[int, tuple[_Range, ...]], Expr] = {}

    def simplified(
        self, condition: Expr, env: Mapping[Var, Binding], extents: Mapping[Var, int]
    ) -> Expr:
        """Return a condition without the parts that hold in all lanes; a constant if it can be."""
        names = self._names(condition)
        if names is None:
            return condition
        ranges = tuple(_range(env.get(var), extents.get(var)) for var in names)
        key = (id(condition), ranges)
        if key not in self._known:
            pairs = zip(names, ranges, strict=True)
            known = {var: found for var, found in pairs if found is not None}
            self._known[key] = simplify(condition, known)
        return self._known[key]

    def _names(self, condition: Expr) -> tuple[Var, ...] | None:
        """Return the variables of a condition, None if it depends on memory."""
        if id(condition) not in self._vars:
            nodes = list(walk(condition))
            names = dict.fromkeys(node for node in nodes if isinstance(node, Var))
            is_fixed = not any(isinstance(node, Load) for node in nodes)
            self._vars[id(condition)] = (condition, tuple(names) if is_fixed else None)
        return self._vars[id(condition)][1]


def _range(bound: Binding | None, extent: int | None) -> _Range:
    match bound:
        case int():
            return (bound, bound)
        case LaneRange(offset, width):
            return (offset, offset + width - 1)
        case _:
            return extent
