"""Parts of an offset that are a known number in each lane, such as `(x % 2 + 1) % 2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from compiler.backends.cpu.codegen.emitters.scope import LaneRange
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.nodes import Expr, IntImm, Var
from compiler.ir.core.visit import substitute

Numbers: TypeAlias = tuple[int, ...]
"""One number for each lane."""


class LaneNumbers:
    """Evaluates expressions for each lane, once for all copies of a statement."""

    def __init__(self) -> None:
        # Expressions are kept, because Python reuses the identity of a dead object.
        self._known: dict[tuple[int, LaneRange, Numbers], tuple[Expr, Numbers | None]] = {}

    def evaluate(
        self, expr: Expr, var: Var, lanes: LaneRange, constants: Mapping[Var, IntImm]
    ) -> Numbers | None:
        """Return the numbers of an expression; None if one is not known before the program runs.

        Args:
            expr: The expression.
            var: Its variable that differs between lanes.
            lanes: The lanes.
            constants: Its other variables.
        """
        key = (id(expr), lanes, tuple(number.value for number in constants.values()))
        if key not in self._known:
            self._known[key] = expr, _evaluated(expr, var, lanes, constants)
        return self._known[key][1]


def _evaluated(
    expr: Expr, var: Var, lanes: LaneRange, constants: Mapping[Var, IntImm]
) -> Numbers | None:
    numbers = []
    for lane in range(lanes.offset, lanes.offset + lanes.width):
        interval = bounds(substitute(expr, {**constants, var: IntImm(lane)}), {})
        if interval is None or interval[0] != interval[1]:
            return None
        numbers.append(interval[0])
    return tuple(numbers)


def distances(
    stride: int, terms: Sequence[tuple[int, Numbers]]
) -> tuple[int, int | None, Numbers | None]:
    """Return where lanes lie that are a stride apart plus a sum of coefficients times numbers.

    Returns:
        The offset of the first lane, the stride if there is one, and otherwise the distances of all
        lanes from the first.
    """
    if not terms:
        return 0, stride, None
    offsets = [
        lane * stride + sum(coefficient * numbers[lane] for coefficient, numbers in terms)
        for lane in range(len(terms[0][1]))
    ]
    steps = {b - a for a, b in pairwise(offsets)}
    if len(steps) <= 1:
        return offsets[0], steps.pop() if steps else 0, None
    return offsets[0], None, tuple(offset - offsets[0] for offset in offsets)
