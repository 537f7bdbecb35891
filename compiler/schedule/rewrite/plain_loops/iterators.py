"""The kinds of iterators that the loops around a statement become, by dependence analysis.

spatial     iterations write different elements, and none touches what another one writes
reduce      iterations update one element, from what the previous one left there
scan        iterations read elements that earlier ones wrote
opaque      anything else: the iterations run in their order
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.analysis.dependence import Touch
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import Buffer, Expr, For, IterKind, Load, Stmt
from compiler.ir.core.visit import walk
from compiler.schedule.rewrite.plain_loops.dependences import Dependences, iterations_between
from compiler.schedule.rewrite.plain_loops.statements import Statement


def iterator_kinds(statement: Statement, dependences: Dependences) -> list[IterKind]:
    """Return the kind of iterator for each loop around a statement.

    Raises:
        UnderivableError: If there are too many accesses to compare.
    """
    reduced = reduction_loops(statement)
    pairs = [pair for pair in dependences.conflicts(statement, statement, 0) if pair[0].is_store]
    kinds: list[IterKind] = []
    for depth, loop in enumerate(statement.loops):
        if loop in reduced:
            kinds.append("reduce")
        elif is_repeated(loop):
            kinds.append(_kind(loop, statement.loops[:depth], pairs, dependences))
        else:
            kinds.append("spatial")
    return kinds


def _kind(
    loop: For,
    outside: Sequence[For],
    pairs: Sequence[tuple[Touch, Touch]],
    dependences: Dependences,
) -> IterKind:
    kind: IterKind = "spatial"
    for write, other in pairs:
        if any(iterations_between(write, other, outer.var) for outer in outside):
            continue  # a loop outside keeps them in their order
        if dependences.is_same_iteration(write, other, loop):
            continue
        distance = iterations_between(write, other, loop.var)
        if other.is_store or distance is None or distance < 0:
            return "opaque"
        kind = "scan"
    return kind


def reduction_loops(statement: Statement) -> tuple[For, ...]:
    """Return the loops in which a statement updates one element again and again.

    It replaces each element by a value of the old one, and accesses no other element of a buffer
    that it writes.
    """
    stores = statement.stores
    targets = {Load(store.buffer, store.indices) for store in stores}
    if len(targets) != len(stores) or len(statement.written) != len(stores):
        return ()
    read = {node for node in walk(statement.body) if isinstance(node, Load)}
    if not targets <= read or any(
        load.buffer in statement.written and load not in targets for load in read
    ):
        return ()
    used = {node for store in stores for index in store.indices for node in walk(index)}
    return tuple(loop for loop in statement.loops if loop.var not in used)


def is_repeated(loop: For) -> bool:
    """Return whether a loop may have more than one iteration."""
    return extent_or_unknown(loop.extent) > 1


def reads(part: Expr | Stmt, buffer: Buffer) -> bool:
    """Return whether a part of a program reads a buffer."""
    return any(isinstance(node, Load) and node.buffer == buffer for node in walk(part))
