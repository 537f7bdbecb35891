"""The facts of a program that recognizers use: shapes, blocks, calls and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from compiler.ir.core.dtypes import is_narrow_float
from compiler.ir.core.nodes import Block, Call, FloatImm, IntImm, Load
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ops.spec import Spec

Shape = tuple[int, ...]


class ProgramFacts:
    """The shapes of a program's parameters, its blocks, its calls and its numbers.

    Args:
        func: A program of one type, without symbolic extents.
        shapes: The shapes of its parameters; the last one is the output.
    """

    def __init__(self, func: PrimFunc, shapes: Sequence[Shape]) -> None:
        *inputs, self.output = shapes
        self.inputs: list[Shape] = list(inputs)
        self.dtype = func.buffers[0].dtype
        self._func = func
        self._nodes = list(walk(func.body))

    @cached_property
    def blocks(self) -> list[Block]:
        """Return the blocks without the root."""
        blocks = [node for node in self._nodes if isinstance(node, Block)]
        return [block for block in blocks if block is not self._func.root]

    @property
    def has_conversion(self) -> bool:
        """Return whether a last block converts sums, by default, to the type of the program."""
        return is_narrow_float(self.dtype)

    @cached_property
    def calls(self) -> set[str]:
        """Return the functions that are called."""
        return {node.name for node in self._nodes if isinstance(node, Call)}

    @cached_property
    def floats(self) -> list[float]:
        """Return the floating-point constants."""
        return sorted({float(node.value) for node in self._nodes if isinstance(node, FloatImm)})

    @cached_property
    def reduction(self) -> Block | None:
        """Return the first block that reduces."""
        return next((b for b in self.blocks if self.steps(b)), None)

    def steps_of_reduction(self) -> Shape:
        """Return the extents of the first reduction; empty if the program has none."""
        return () if self.reduction is None else self.steps(self.reduction)

    def steps(self, block: Block) -> Shape:
        """Return the extents of the iterators that a block reduces over; 0 for one that varies."""
        extents = [iterator.extent for iterator in block.iter_vars if iterator.kind == "reduce"]
        return tuple(extent.value if isinstance(extent, IntImm) else 0 for extent in extents)

    def integers(self, block: Block) -> set[int]:
        """Return the integers in a block."""
        return {node.value for node in walk(block.body) if isinstance(node, IntImm)}

    def source(self, block: Block) -> Load | None:
        """Return the load of an image by a block that slides windows over it.

        That is the first load of a buffer that the block does not write, in the order of the text.
        """
        written = {region.buffer.data for region in block.writes}
        loads = (node for node in walk(block.body) if isinstance(node, Load))
        return next((load for load in loads if load.buffer.data not in written), None)

    def spec(self, name: str, *args: Any, **options: Any) -> Spec:
        """Return an operator with its arguments, without defaults."""
        if self.dtype != "float32":
            options["dtype"] = self.dtype
        return Spec(name, args, options).shortened()
