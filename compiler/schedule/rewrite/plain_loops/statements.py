"""The statements of plain loops, each with the loops and conditions around it.

    for i in range(n):                       loops i        Y[i] = 0
        Y[i] = 0
        for k in range(m):          ->       loops i, k     if k < i: Y[i] = Y[i] + A[i, k]
            if k < i:
                Y[i] = Y[i] + A[i, k]

A condition, or a named value, around several statements or loops goes to each of them. It is
computed again there, so nothing in it may change in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby

from compiler.ir.arith.guards import conjuncts
from compiler.ir.core.function_calls import called_function
from compiler.ir.core.nodes import (
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    Not,
    Seq,
    Stmt,
    Store,
    seq,
)
from compiler.ir.core.visit import substitute, walk, walk_stmts


class UnderivableError(Exception):
    """No blocks are derived: `reason` says why, and `at` is the node that it is about."""

    def __init__(self, reason: str, at: object) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """What becomes a block.

    Attributes:
        loops: The loops around it, the outermost first.
        body: A store, or statements that need each other, without loops.
        conditions: The conditions under which it runs.
        init: What starts its reduction, in the first iteration of all reduction loops.
    """

    loops: tuple[For, ...]
    body: Stmt
    conditions: tuple[Expr, ...] = ()
    init: Stmt | None = None

    @property
    def stores(self) -> list[Store]:
        """Return the stores, without those of the init."""
        return [stmt for stmt in walk_stmts(self.body) if isinstance(stmt, Store)]

    @property
    def written(self) -> set[Buffer]:
        """Return the buffers that are written."""
        return {store.buffer for store in self.stores}


@dataclass(frozen=True, slots=True, eq=False)
class LoopBody:
    """A loop, and what is in it."""

    loop: For
    parts: tuple[Part, ...]


Part = Statement | LoopBody


def statements_of(part: Part) -> Iterator[Statement]:
    """Yield the statements of a part of a program in their order."""
    if isinstance(part, Statement):
        yield part
    else:
        for inner in part.parts:
            yield from statements_of(inner)


def read_loops(stmt: Stmt, stored: AbstractSet[Buffer]) -> list[Part]:
    """Return the parts of a program without blocks.

    Args:
        stmt: The program.
        stored: The buffers that it stores.

    Raises:
        UnderivableError: If it has what no block can be derived of.
    """
    return list(_Reader(stored).parts(stmt, (), ()))


@dataclass(frozen=True, slots=True)
class _Reader:
    stored: AbstractSet[Buffer]

    def parts(
        self, stmt: Stmt, loops: tuple[For, ...], conditions: tuple[Expr, ...]
    ) -> Iterator[Part]:
        match stmt:
            case Seq(stmts) if not _need_each_other(stmts):
                for child in _joined_stores(stmts):
                    yield from self.parts(child, loops, conditions)
            case For():
                self._check_loop(stmt)
                parts = tuple(self.parts(stmt.body, (*loops, stmt), conditions))
                if parts:
                    yield LoopBody(stmt, parts)
            case If() if self._may_be_repeated(stmt):
                yield from self._branches(stmt, loops, conditions)
            case Let(var, value, body) if _has_loops(stmt):
                self._require_stable(value, f"the value of {var.name}", stmt)
                yield from self.parts(substitute(body, {var: value}), loops, conditions)
            case _:
                for inner in walk_stmts(stmt):
                    if isinstance(inner, Evaluate):
                        _require_no_call(inner)
                if not isinstance(stmt, Evaluate):
                    yield Statement(loops, stmt, conditions)

    def _branches(
        self, branch: If, loops: tuple[For, ...], conditions: tuple[Expr, ...]
    ) -> Iterator[Part]:
        holds = conjuncts(branch.condition)
        yield from self.parts(branch.then, loops, (*conditions, *holds))
        if branch.otherwise is not None:
            yield from self.parts(branch.otherwise, loops, (*conditions, Not(branch.condition)))

    def _may_be_repeated(self, branch: If) -> bool:
        """Return whether each statement under a condition gets the condition for itself."""
        if _has_loops(branch):
            self._require_stable(branch.condition, "a condition around loops", branch)
            return True
        return branch.otherwise is None and not any(self._changing(branch.condition))

    def _check_loop(self, loop: For) -> None:
        name = loop.var.name
        if loop.thread is not None:
            raise UnderivableError(f"loop {name} is bound to {loop.thread}", loop)
        self._require_stable(loop.extent, f"the extent of loop {name}", loop)

    def _require_stable(self, value: Expr, subject: str, at: Stmt) -> None:
        """Refuse a value that may change between the statements that would compute it again."""
        for buffer in self._changing(value):
            reason = f"{subject} reads {buffer.name}, which the program writes"
            raise UnderivableError(reason, at)

    def _changing(self, value: Expr) -> Iterator[Buffer]:
        """Yield the buffers that a value reads and the program writes."""
        for node in walk(value):
            if isinstance(node, Load) and node.buffer in self.stored:
                yield node.buffer


def _require_no_call(stmt: Evaluate) -> None:
    if called_function(stmt) is not None:
        raise UnderivableError("the function calls another one: schedule the module", stmt)
    for node in walk(stmt.value):
        if isinstance(node, Call):
            raise UnderivableError(f"{node.name} may do anything to the buffers", stmt)


def _has_loops(stmt: Stmt) -> bool:
    return any(isinstance(inner, For) for inner in walk_stmts(stmt))


def _joined_stores(stmts: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements, those that need each other as one."""
    for is_store, group in groupby(stmts, lambda stmt: isinstance(stmt, Store)):
        run = tuple(group)
        if is_store and _need_each_other(run):
            yield seq(*run)
        else:
            yield from run


def _need_each_other(stmts: Sequence[Stmt]) -> bool:
    """Return whether stores to one element of several buffers read what the others write.

    That is how positions of extreme values are found: both are replaced together.
    """
    stores = [stmt for stmt in stmts if isinstance(stmt, Store)]
    buffers = {store.buffer for store in stores}
    if len(stores) != len(stmts) or len(buffers) != len(stores):
        return False
    if any(store.indices != stores[0].indices for store in stores):
        return False
    return any(
        isinstance(node, Load) and node.buffer in buffers - {store.buffer}
        for store in stores
        for node in walk(store.value)
    )
