"""An access that several iterations or threads may make, and the loops around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.ir.core.nodes import (
    Buffer,
    Expr,
    For,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
)

LANE = Var("lane")
"""The number of an element in a vector."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around an access.

    Attributes:
        var: Its variable; that of its axis if it is bound to one.
        extent: The maximum number of its iterations.
        kind: Its kind.
        axis: The axis it is bound to.
        number: The position of the loop in the program.
    """

    var: Var
    extent: int
    kind: LoopKind
    axis: str | None
    number: int


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """A load or store.

    Attributes:
        node: The node in the program.
        buffer: The accessed buffer; for a view, the buffer that it views.
        indices: Its indices in terms of loops.
        store: The number of the statement in the program.
        value: The stored value, in terms of loops.
        conditions: The conditions under which it runs, in terms of loops.
        loops: The loops around it, the outermost first.
        homes: For each buffer that is allocated around it, the number of loops around the
            allocation.
        reduced: The loops that the block around it reduces over, if it reduces into the buffer.
        epoch: The number of barriers between the threads of a block before it.
        time: A number that grows in the order of the program.
    """

    node: Load | Store
    buffer: Buffer
    indices: tuple[Expr, ...]
    store: int
    value: Expr | None
    conditions: tuple[Expr, ...]
    loops: tuple[Loop, ...]
    homes: Mapping[Buffer, int]
    reduced: frozenset[Var]
    epoch: Expr
    time: Expr

    @property
    def is_store(self) -> bool:
        """Return whether it stores."""
        return isinstance(self.node, Store)


def is_concurrent(stmt: Stmt) -> bool:
    """Return whether a statement is a loop whose iterations have no order."""
    return isinstance(stmt, For) and (
        stmt.kind in ("parallel", "vectorized") or stmt.thread is not None
    )
