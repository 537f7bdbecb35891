"""Derive blocks, which schedules need, from a program of plain loops.

    for i in range(n):                            for i, k in T.grid(n, m):
        Y[i] = 0                                      with T.sblock("Y_sum"):
        for k in range(m):                  ->            vi, vk = T.axis.remap("SR", [i, k])
            Y[i] = Y[i] + A[i, k]                         with T.init():
        Y[i] = T.max(Y[i], 0)                                 Y_sum[vi] = 0
                                                          Y_sum[vi] = Y_sum[vi] + A[vi, vk]
                                                  for i in range(n):
                                                      with T.sblock("Y"):
                                                          vi = T.axis.spatial(n, i)
                                                          Y[vi] = T.max(Y_sum[vi], 0)

Each statement becomes a block with an iterator for each loop around it (`iterators.py`). Loops are
distributed over their statements where dependences allow it. The start of a sum becomes its init.
An element that is overwritten in place gets a buffer for each value but the last, a small buffer
that each iteration reuses gets room for all of them. Conditions become predicates. A `while` stays
whole (`while_nests.py`).

The submitted program and its hash do not change: each schedule derives the same blocks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from compiler.ir.analysis.regions import with_regions
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.analysis.while_loops import has_while
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    IterKind,
    IterVar,
    Load,
    Stmt,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import substitute, transform, walk, walk_stmts
from compiler.ir.text.names import unique
from compiler.ir.verify.verify import VerifyError, verify_but_for_races
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.rewrite.plain_loops.dependences import Dependences
from compiler.schedule.rewrite.plain_loops.distribute import distribute
from compiler.schedule.rewrite.plain_loops.iterators import iterator_kinds
from compiler.schedule.rewrite.plain_loops.join_inits import join_inits
from compiler.schedule.rewrite.plain_loops.separate_values import separate_values
from compiler.schedule.rewrite.plain_loops.statements import (
    Part,
    Statement,
    UnderivableError,
    read_loops,
    statements_of,
)
from compiler.schedule.rewrite.plain_loops.while_nests import blocks_around_while
from compiler.schedule.rewrite.plain_loops.widen_private import widen_private

# A limit, because each statement is compared with each earlier one.
_MOST_STATEMENTS = 64


def derive_blocks(func: PrimFunc) -> PrimFunc:
    """Return a program with blocks; the program itself if it has some.

    Raises:
        UnderivableError: If no blocks can be derived, or they are not proved to be legal.
    """
    if any(isinstance(stmt, BlockRealize) for stmt in walk_stmts(func.root.body)):
        return func
    if has_while(func.body):
        return _verified(blocks_around_while(func), func)
    plain = _with_allocations_outside(func)
    # Refuse what the analysis of private buffers can't read.
    read_loops(plain.root.body, stored_buffers(plain.body))
    wide = plain if symbolic_vars(plain) else widen_private(plain)
    dependences = Dependences()
    parts = join_inits(read_loops(wide.root.body, stored_buffers(wide.body)))
    parts = distribute(parts, dependences)
    num_statements = sum(1 for part in parts for _ in statements_of(part))
    if not 0 < num_statements <= _MOST_STATEMENTS:
        reason = f"it has {num_statements} statements: expected 1 to {_MOST_STATEMENTS}"
        raise UnderivableError(reason, func)
    used_names = {buffer.name for buffer in (*func.buffers, *wide.root.alloc_buffers)}
    parts, new_buffers = separate_values(join_inits(parts), used_names)
    kinds = {
        statement: iterator_kinds(statement, dependences)
        for part in parts
        for statement in statements_of(part)
    }
    root = replace(wide.root, alloc_buffers=(*wide.root.alloc_buffers, *new_buffers))
    problem: VerifyError | None = None
    for facts in get_args(_Facts):
        body = _Emitter(facts, kinds).parts(parts, {})
        derived = replace(func, body=replace(func.body, block=replace(root, body=body)))
        try:
            verify_but_for_races(derived)
        except VerifyError as error:
            problem = problem or error
        else:
            return derived
    raise UnderivableError(f"the blocks are not proved to be legal: {problem}", func) from problem


def _verified(derived: PrimFunc, func: PrimFunc) -> PrimFunc:
    try:
        verify_but_for_races(derived)
    except VerifyError as error:
        raise UnderivableError(f"the blocks are not proved to be legal: {error}", func) from error
    return derived


def _with_allocations_outside(func: PrimFunc) -> PrimFunc:
    """Return a program that allocates all buffers at its start.

    An iteration that allocates a buffer reads none of what another one left there.
    """
    used_names = {buffer.name for buffer in (*func.buffers, *func.root.alloc_buffers)}
    moved: dict[Buffer, Buffer] = {}
    for stmt in walk_stmts(func.root.body):
        if isinstance(stmt, Allocate):
            name = unique(stmt.buffer.name, used_names)
            used_names.add(name)
            moved[stmt.buffer] = replace(stmt.buffer, data=Var(name, "handle"))
    if not moved:
        return func
    body = transform(
        func.root.body, on_stmt=lambda stmt: stmt.body if isinstance(stmt, Allocate) else None
    )
    allocated = (*func.root.alloc_buffers, *moved.values())
    root = replace(func.root, body=replace_buffers(body, moved), alloc_buffers=allocated)
    return replace(func, body=replace(func.body, block=root))


_Facts: TypeAlias = Literal["predicates", "extents", "conditions"]
"""What a block says of its iterators; what suffices for the verifier is tried first.

predicates    conditions on loops become predicates of blocks
extents       so do extents of loops that depend on loops around them
conditions    conditions stay conditions in the blocks
"""


class _Emitter:
    """Makes blocks of statements, in new loops."""

    def __init__(self, facts: _Facts, kinds: Mapping[Statement, Sequence[IterKind]]) -> None:
        self._facts = facts
        self._kinds = kinds
        self._names: set[str] = {"root"}

    def parts(self, parts: Sequence[Part], loops: Mapping[For, For]) -> Stmt:
        """Return the statements of parts in loops that exist already, given by the old ones."""
        return seq(*(self._part(part, loops) for part in parts))

    def _part(self, part: Part, loops: Mapping[For, For]) -> Stmt:
        if isinstance(part, Statement):
            return self._nest(part, loops)
        new = _renewed(part.loop, loops)
        return replace(new, body=self.parts(part.parts, {**loops, part.loop: new}))

    def _nest(self, statement: Statement, loops: Mapping[For, For]) -> Stmt:
        """Return a statement in a block, in loops of its own below those that exist."""
        statement, kinds = self._with_legal_kinds(statement, loops)
        around = dict(loops)
        for loop in statement.loops:
            if loop not in around:
                around[loop] = _renewed(loop, around)
        new = [around[loop] for loop in statement.loops]
        iter_vars = [
            IterVar(Var(f"v_{loop.var.name}", loop.var.dtype), _most(loop, statement.loops), kind)
            for loop, kind in zip(statement.loops, kinds, strict=True)
        ]
        pairs = list(zip(statement.loops, iter_vars, new, strict=True))
        iterators: dict[Var, Expr] = {old.var: iter_var.var for old, iter_var, _ in pairs}
        renamed: dict[Var, Expr] = {old.var: loop.var for old, _, loop in pairs}
        conditions = list(statement.conditions)
        if self._facts == "extents":
            varying = [loop for loop, i, _ in pairs if i.extent != loop.extent]
            conditions += [Compare("<", loop.var, loop.extent) for loop in varying]
        inside = [c for c in conditions if not self._is_predicate(c)]
        predicate = [substitute(c, renamed) for c in conditions if self._is_predicate(c)]
        block = Block(
            self._name(statement),
            tuple(iter_vars),
            (),
            (),
            substitute(_under(inside, statement.body), iterators),
            None
            if statement.init is None
            else substitute(_under(inside, statement.init), iterators),
        )
        nest: Stmt = BlockRealize(
            tuple(loop.var for loop in new), conjunction(tuple(predicate)), with_regions(block)
        )
        for old, _, loop in reversed(pairs):
            if old not in loops:
                nest = replace(loop, body=nest)
        return nest

    def _with_legal_kinds(
        self, statement: Statement, shared: Mapping[For, For]
    ) -> tuple[Statement, Sequence[IterKind]]:
        """Return a statement and the kinds of its iterators, if others are in some of its loops.

        Another one may change what a reduction over such a loop goes on with, so it runs in order.
        """
        kinds = self._kinds[statement]
        reduced = [
            loop for loop, kind in zip(statement.loops, kinds, strict=True) if kind == "reduce"
        ]
        if not any(loop in shared for loop in reduced):
            return statement, kinds
        ordered: list[IterKind] = [
            "opaque" if kind == "reduce" and loop in shared else kind
            for loop, kind in zip(statement.loops, kinds, strict=True)
        ]
        if statement.init is None:
            return statement, ordered
        zeros = [Compare("==", lp.var, IntImm(0, dtype_of(lp.var))) for lp in reduced]
        body = seq(If(conjunction(tuple(zeros)), statement.init), statement.body)
        return replace(statement, body=body, init=None), ordered

    def _is_predicate(self, condition: Expr) -> bool:
        return self._facts != "conditions" and not any(isinstance(n, Load) for n in walk(condition))

    def _name(self, statement: Statement) -> str:
        buffers = [store.buffer.name for store in statement.stores]
        name = unique(buffers[0] if buffers else "block", self._names)
        self._names.add(name)
        return name


def _under(conditions: Sequence[Expr], stmt: Stmt) -> Stmt:
    for condition in reversed(conditions):
        stmt = If(condition, stmt)
    return stmt


def _renewed(loop: For, around: Mapping[For, For]) -> For:
    """Return a loop with a variable of its own, in terms of the new loops around it."""
    mapping: dict[Var, Expr] = {old.var: new.var for old, new in around.items()}
    new = Var(loop.var.name, loop.var.dtype)
    return replace(loop, var=new, extent=substitute(loop.extent, mapping))


def _most(loop: For, loops: Sequence[For]) -> Expr:
    """Return an extent that holds all values of a loop, whatever loops around it it depends on."""
    moving = {other.var for other in loops}
    if not any(isinstance(n, Load) or n in moving for n in walk(loop.extent)):
        return loop.extent
    ranges: dict[Var, tuple[int, int]] = {}
    for other in loops:
        interval = bounds(other.extent, ranges)
        if interval is None:
            reason = f"the extent of loop {other.var.name} has no known bound"
            raise UnderivableError(reason, other)
        ranges[other.var] = (0, max(interval[1], 1) - 1)
        if other is loop:
            break
    return IntImm(ranges[loop.var][1] + 1, dtype_of(loop.var))
