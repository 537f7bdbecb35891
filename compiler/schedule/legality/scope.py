"""A scope: the blocks directly below one block, with their producers and consumers."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse
from compiler.schedule.legality.coverage import is_finished_for
from compiler.schedule.legality.placed_block import PlacedBlock, sites
from compiler.schedule.tree.tree import Path, block_path, realize_at, scope_path


@dataclass(frozen=True)
class BlockScope:
    """The scope at the end of `path` in `func`; `refuse` makes the errors of one primitive."""

    func: PrimFunc
    path: Path
    refuse: Refuse

    @classmethod
    def around(cls, func: PrimFunc, path: Path, refuse: Refuse) -> BlockScope:
        """Return the scope around the end of a path."""
        return cls(func, scope_path(path), refuse)

    @property
    def realize(self) -> BlockRealize:
        """Return the block of the scope."""
        return realize_at(self.path)

    @cached_property
    def sites(self) -> list[PlacedBlock]:
        """Return the blocks of the scope in program order."""
        return sites(self.realize, self.refuse)

    def site(self, realize: BlockRealize) -> PlacedBlock:
        """Return a block of the scope with its position."""
        return next(site for site in self.sites if site.realize is realize)

    def whole_path(self, site: PlacedBlock) -> Path:
        """Return the path to a block from the root of the program."""
        return (*self.path[:-1], *site.path)

    def position(self, site: PlacedBlock) -> int:
        """Return the position of a block in program order."""
        return next(n for n, other in enumerate(self.sites) if other is site)

    def writers(self, buffer: Buffer) -> list[PlacedBlock]:
        """Return the blocks that write to a buffer."""
        return [site for site in self.sites if site.writes(buffer)]

    def readers(self, buffer: Buffer) -> list[PlacedBlock]:
        """Return the blocks that read from a buffer."""
        return [site for site in self.sites if site.reads(buffer)]

    def producers(self, site: PlacedBlock) -> list[PlacedBlock]:
        """Return the other blocks that write the inputs of a block."""
        read = site.facts.read_buffers()
        return [s for s in self.sites if s is not site and s.facts.written_buffers() & read]

    def consumers(self, site: PlacedBlock) -> list[PlacedBlock]:
        """Return the other blocks that read the output of a block."""
        written = site.facts.written_buffers()
        return [s for s in self.sites if s is not site and s.facts.read_buffers() & written]

    def is_local(self, buffer: Buffer) -> bool:
        """Return whether a buffer belongs to the scope, so that no outer block can see it."""
        return any(allocated == buffer for allocated in self.realize.block.alloc_buffers)

    def require_only_writer(self, site: PlacedBlock) -> None:
        """Refuse if another block writes to the output of a block."""
        for buffer in site.facts.written_buffers():
            for other in self.writers(buffer):
                if other is not site:
                    raise self.refuse(
                        f"block {site.name} is not a complete block: block {other.name} writes "
                        f"{buffer.name}, too",
                        other.realize,
                        "dependence",
                    )

    def require_local(self, site: PlacedBlock) -> None:
        """Refuse if the output of a block is visible outside of the scope."""
        for buffer in site.facts.written_buffers():
            if not self.is_local(buffer):
                raise self.refuse(
                    f"block {site.name} is an output block, as it writes {buffer.name}: "
                    "it must stay",
                    site.realize,
                    "fixed_buffer",
                )

    def require_inputs_settled(
        self, site: PlacedBlock, again: AbstractSet[Var] = frozenset()
    ) -> None:
        """Refuse if a block would read other input values later, or at another position.

        That is the case if an input is written after the block, or is not finished when the block
        runs.

        Args:
            again: Loops in whose last iteration the block repeats all of its work.
        """
        position = self.position(site)
        for other in self.producers(site):
            names = ", ".join(
                b.name for b in other.facts.written_buffers() & site.facts.read_buffers()
            )
            if self.position(other) > position:
                reason = f"block {other.name} writes {names} after block {site.name} reads it"
                raise self.refuse(reason, other.realize, "dependence")
            if not is_finished_for(other, site, again):
                reason = f"block {other.name} is not proved to have finished what block {site.name}"
                raise self.refuse(f"{reason} reads of {names}", other.realize, "dependence")

    def require_outputs_finished(self, site: PlacedBlock) -> None:
        """Refuse if a consumer may read partial results of a reduction."""
        if site.kind == "complete":
            return
        for other in self.consumers(site):
            if not is_finished_for(site, other):
                reason = f"block {other.name} may read partial results of block {site.name}"
                raise self.refuse(reason, other.realize, "dependence")


def scope_of_block(func: PrimFunc, name: str, refuse: Refuse) -> tuple[BlockScope, PlacedBlock]:
    """Return a block and its scope, or refuse."""
    path = block_path(func, name, refuse)
    if len(path) == 1:
        raise refuse(f'"{name}" is the root block: it holds the program', func, "structure")
    scope = BlockScope.around(func, path, refuse)
    return scope, scope.site(realize_at(path))
