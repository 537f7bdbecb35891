"""Which loops around a block run what the loops of a tensor intrinsic's description run.

Iterators are matched from the last to the first: an iterator of the description goes with the last
iterator of the block that has the same kind and is not taken. The loops of both are those whose
variables the iterators are, apart from parts in which no loop occurs. Statements are not compared:
`tensorize` does that when the loops are tiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, variables_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import BlockRealize, Expr, For, IntImm, IterVar, Var
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.tree.tree import block_path, blocks, loops_on, realize_at, scope_path


@dataclass(frozen=True, slots=True)
class MappedLoops:
    """The loops of a program for the loops of a description.

    Attributes:
        loops: For each loop of the description, the outermost first, the one of the program.
        extents: How often the loops of the description run.
        paddings: For each iterator of the block, the number that divides its extent after padding;
            None if no extent needs padding.
    """

    loops: tuple[Var, ...]
    extents: tuple[int, ...]
    paddings: tuple[int, ...] | None


def described_block(desc: PrimFunc) -> tuple[BlockRealize, tuple[For, ...]]:
    """Return the innermost block of a description, and the loops around it."""
    realize = list(blocks(desc))[-1]
    path = block_path(desc, realize.block.name, refusal("tensorize", desc))
    return realize, tuple(loops_on(path))


def map_loops(
    func: PrimFunc, block: str, desc: PrimFunc, *, allow_padding: bool
) -> MappedLoops | None:
    """Return the loops around a block that run what a description's loops run, None if none do.

    Args:
        allow_padding: Whether extents need not be multiples of the description's, if the iterators
            of the block are loops.
    """
    path = block_path(func, block, refusal("get_tensorize_loop_mapping", func))
    ours = _LoopsOfBlock(realize_at(path), tuple(loops_on(path[len(scope_path(path)) :])))
    theirs = _LoopsOfBlock(*described_block(desc))
    pairs = _pairs(ours.realize.block.iter_vars, theirs.realize.block.iter_vars)
    mapped: dict[Var, tuple[Var, int]] = {}
    paddings = [1] * len(ours.realize.iter_values)
    for at, described_at in pairs or ():
        loop, size = ours.loop_of(at), theirs.loop_of(described_at)
        if loop is None or size is None or loop.var in {var for var, _ in mapped.values()}:
            return None
        if not (isinstance(loop.extent, IntImm) and isinstance(size.extent, IntImm)):
            return None
        if loop.extent.value % size.extent.value:
            paddings[at] = size.extent.value
        mapped[size.var] = loop.var, size.extent.value
    needs_padding = max(paddings, default=1) > 1
    if len(mapped) != len(theirs.loops) or (
        needs_padding and not (allow_padding and ours.is_plain)
    ):
        return None
    described = [mapped[loop.var] for loop in theirs.loops]
    return MappedLoops(
        tuple(var for var, _ in described),
        tuple(extent for _, extent in described),
        tuple(paddings) if needs_padding else None,
    )


class _LoopsOfBlock:
    """A block and the loops around it."""

    def __init__(self, realize: BlockRealize, loops: tuple[For, ...]) -> None:
        self.realize = realize
        self.loops = loops
        self._extents: Extents = {loop.var: extent_or_unknown(loop.extent) for loop in loops}

    @property
    def is_plain(self) -> bool:
        """Whether each iterator is a loop."""
        return all(isinstance(value, Var) for value in self.realize.iter_values)

    def loop_of(self, at: int) -> For | None:
        """Return the loop that an iterator is, apart from parts without loops."""
        form = self._form(self.realize.iter_values[at])
        used = variables_of(form) & self._extents.keys()
        return next((e for e in self.loops if used == {e.var} and (e.var, 1) in form.terms), None)

    def _form(self, value: Expr) -> Affine:
        return normal(value, self._extents)


def _pairs(ours: Sequence[IterVar], theirs: Sequence[IterVar]) -> list[tuple[int, int]] | None:
    """Return the positions of iterators that go together; None if one has no partner."""
    pairs: list[tuple[int, int]] = []
    rest = list(enumerate(ours))
    for described_at, described in reversed(list(enumerate(theirs))):
        while rest and rest[-1][1].kind != described.kind:
            rest.pop()
        if not rest:
            return None
        pairs.append((rest.pop()[0], described_at))
    return pairs
