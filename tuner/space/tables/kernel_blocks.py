"""The kernels of a sketch for a GPU: its blocks by launch."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.nodes import Block, BlockRealize, Seq
from compiler.ir.core.visit import walk
from tuner.space.tables.block_names import later_names
from tuner.space.tables.loop_slots import SketchProgram


@dataclass(frozen=True)
class KernelBlocks:
    """The blocks under one outermost loop, which become one kernel.

    Attributes:
        blocks: Their names.
        shared: The names of those that write shared memory.
    """

    blocks: tuple[str, ...]
    shared: tuple[str, ...] = ()

    def has(self, block: str) -> bool:
        """Return whether a block is one of them, perhaps under a later name."""
        return any(name in self.blocks for name in later_names(block))

    def keeps(self, block: str) -> bool:
        """Return whether the output of a block stays in shared memory."""
        return any(name in self.shared for name in later_names(block))


def kernel_blocks(program: SketchProgram) -> tuple[KernelBlocks, ...]:
    """Return the kernels of a sketch in the order of its program."""
    body = program.func.root.body
    kernels = []
    for stmt in body.stmts if isinstance(body, Seq) else (body,):
        blocks = [node.block for node in walk(stmt) if isinstance(node, BlockRealize)]
        shared = [block.name for block in blocks if _writes_shared(block)]
        kernels.append(KernelBlocks(tuple(block.name for block in blocks), tuple(shared)))
    return tuple(kernels)


def _writes_shared(block: Block) -> bool:
    return any(region.buffer.scope.startswith("shared") for region in block.writes)
