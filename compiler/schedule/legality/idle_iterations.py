"""Prove that an iteration changes nothing if a mask excludes all of its elements.

    for t in 4:
        for i, j: S[i, j] = X[i, j] if t * 32 + j <= i else least     # excluded: least
        for i: F[i] = exp2(M[i] - max(M[i], max(S[i, :])))            # 1
        for i: M[i] = max(M[i], max(S[i, :]))                         # unchanged
        for i, j: P[i, j] = exp2(S[i, j] - M[i])                      # 0
        for i: L[i] = L[i] * F[i] + sum(P[i, :])                      # unchanged

A buffer that the iteration stores to is carried, if something is read of it that the same iteration
did not compute before; such a buffer has to be unchanged. The values of the others follow from each
other until none changes (constant propagation). Numbers count as finite, and as far above the least
one that differences to it have no exponential.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.ir.core.nodes import (
    BinOp,
    Block,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Select,
    Store,
)
from compiler.ir.core.visit import walk
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import starts_anew
from compiler.schedule.legality.scope import BlockScope

Known: TypeAlias = float | Load | Literal["unknown", "pending"]
"""The value of an element: a number, that of an element before the iteration, or not known yet."""

_LEAST = -3.4028234663852886e38
"""The least number of float32, which masks take for what they exclude."""
_SAME_IF_CONVERTED = (0.0, 1.0, math.inf, -math.inf)


def changed_buffers(
    scope: BlockScope, sites: Sequence[PlacedBlock], masked: PlacedBlock, mask: Compare
) -> list[Buffer]:
    """Return the carried buffers that an iteration may change though a mask is false throughout.

    Args:
        scope: The scope of the blocks.
        sites: The blocks of the iteration.
        masked: The one of them that selects by the mask.
        mask: The comparison.
    """
    written = {buffer for site in sites for buffer in site.facts.written_buffers()}
    carried = {buffer for buffer in written if _is_carried(scope, sites, buffer)}
    values: dict[Buffer, Known] = {}
    is_stable = False
    while not is_stable:
        before = dict(values)
        for site in sites:
            of_site = mask if site is masked else None
            _Computation(site.block, of_site, written, carried, values).run()
        is_stable = before == values
    return sorted((b for b in carried if values.get(b) != _same(b)), key=lambda b: b.name)


def _is_carried(scope: BlockScope, sites: Sequence[PlacedBlock], buffer: Buffer) -> bool:
    """Return whether something is read of a buffer that its iteration did not compute."""
    if not scope.is_local(buffer):
        return True
    writers = [site for site in sites if site.writes(buffer)]

    def is_computed(reader: PlacedBlock) -> bool:
        position = scope.position(reader)
        return (reader in writers and starts_anew(reader)) or any(
            scope.position(writer) < position
            and covers_reads(writer, reader, buffer, is_certain=True)
            for writer in writers
        )

    readers = scope.readers(buffer)
    return any(reader not in sites or not is_computed(reader) for reader in readers)


def _same(buffer: Buffer) -> Load:
    """Return what stands for the elements that a buffer had before."""
    return Load(buffer, ())


@dataclass(frozen=True)
class _Computation:
    """What one block stores.

    Attributes:
        block: The block.
        mask: The comparison that is false, if the block has it.
        written: The buffers that the iteration stores to.
        carried: Those of them that it begins with.
        values: The values of both; a load without indices stands for unchanged elements.
    """

    block: Block
    mask: Compare | None
    written: set[Buffer]
    carried: set[Buffer]
    values: dict[Buffer, Known]

    def run(self) -> None:
        """Add the values that the block stores to those of the buffers."""
        views = self._views()
        for stmt in walk(self.block):
            if not isinstance(stmt, Store):
                continue
            buffer = views.get(stmt.buffer, stmt.buffer)
            value = self._of(stmt.value, views)
            if isinstance(value, Load):
                is_same = value == Load(stmt.buffer, stmt.indices)
                value = _same(buffer) if is_same else "unknown"
            if value != "pending":
                old = self.values.get(buffer, value)
                self.values[buffer] = value if value == old else "unknown"

    def _views(self) -> Mapping[Buffer, Buffer]:
        """Return the buffers of which others are views."""
        blocks = [node for node in walk(self.block) if isinstance(node, Block)]
        return {v.buffer: v.source.buffer for block in blocks for v in block.match_buffers}

    def _of(self, expr: Expr, views: Mapping[Buffer, Buffer]) -> Known:
        match expr:
            case FloatImm() | IntImm():
                return float(expr.value)
            case Load(buffer):
                source = views.get(buffer, buffer)
                start: Known = _same(source) if source in self.carried else "pending"
                value = self.values.get(source, start) if source in self.written else expr
                return expr if isinstance(value, Load) else value
            case Cast(_, inner):
                value = self._of(inner, views)
                return value if value in (*_SAME_IF_CONVERTED, "pending") else "unknown"
            case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
                other = self._of(otherwise, views)
                if condition == self.mask:
                    return other
                first = self._of(then, views)
                return first if first == other else "unknown"
            case BinOp(op, lhs, rhs):
                return _combined(op, self._of(lhs, views), self._of(rhs, views))
            case Call("exp" | "exp2", (inner,), _):
                exponent = self._of(inner, views)
                powers: dict[Known, Known] = {0.0: 1.0, -math.inf: 0.0, "pending": "pending"}
                return powers.get(exponent, "unknown")
            case _:
                return "unknown"


def _combined(op: str, lhs: Known, rhs: Known) -> Known:
    """Return the result of an operation."""
    if "pending" in (lhs, rhs):
        return "pending"
    pairs = ((lhs, rhs), (rhs, lhs))
    if op == "max":
        return next((b for a, b in pairs if isinstance(a, float) and a <= _LEAST), "unknown")
    if op == "-" and lhs == rhs and lhs not in ("unknown", math.inf, -math.inf):
        return 0.0
    if op == "-" and isinstance(lhs, float) and lhs <= _LEAST and isinstance(rhs, Load):
        return -math.inf
    if op == "*":
        for one, other in pairs:
            if one in (0.0, 1.0):
                return other if one else 0.0
        if isinstance(lhs, float) and isinstance(rhs, float) and lhs * rhs == -math.inf:
            return -math.inf
    if op == "+":
        return next((b for a, b in pairs if a == 0.0), "unknown")
    return "unknown"
