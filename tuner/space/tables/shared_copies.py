"""Copies of inputs in the shared memory of a GPU's block of threads.

A rule stages an operand by `cache_read` into the scope "shared" and `compute_at`. The copies are
found in the program of a sketch, so that rules need not declare them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compiler.ir.core.nodes import (
    Annotations,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Conditional,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import statements_in, walk
from compiler.passes.common.local_stages import KEY as LOCAL_STAGE
from tuner.space.tables.block_names import later_names
from tuner.space.tables.knob import Ints
from tuner.space.tables.loop_slots import LoopSlot, SketchProgram

ALIGNMENT = "buffer_dim_align"
"""The annotation that `storage_align` writes."""
STAGES = "software_pipeline_stage"
ASYNC = "software_pipeline_async_stages"
_THREADS = ("threadIdx", "vthread")


@dataclass(frozen=True)
class SharedCopy:
    """A buffer that a block of threads copies into its shared memory, piece by piece.

    Attributes:
        source: The name of the copied buffer.
        readers: The names of the blocks that read the copy, directly or from registers.
        outer: The columns of the sketch's table with the extents of the loops around the copy,
            without those bound to threads: a piece is what the other loops touch.
        vector: The vectorized loop of the copy; None if single elements are copied.
        stages: The number of pieces in shared memory at once, if no knob decides it.
        ahead: The decided number of pieces that are copied ahead; one more is in shared memory.
        is_async: Whether threads continue while the piece is copied, if it is copied ahead.
        alignments: The axis of the copy, the factor and the offset of each aligned stride.
        is_conditional: Whether conditions decide the elements, such as those of a padded image.
        layout: For each axis of the copy, the axis of the source, a divisor and a modulus: the
            element `i` is at `i // divisor % modulus`, without the modulus if it is 0.
    """

    source: str
    readers: tuple[str, ...]
    outer: frozenset[int]
    vector: LoopSlot | None
    stages: int = 1
    ahead: LoopSlot | None = None
    is_async: bool = False
    is_conditional: bool = False
    alignments: tuple[tuple[int, int, int], ...] = ()
    layout: tuple[tuple[int, int, int], ...] = ()

    def pieces_in_memory(self, values: Ints) -> Ints:
        """Return the pieces in shared memory at once, in the rows of a table."""
        if self.ahead is None:
            return np.full(len(values), self.stages)
        pieces: Ints = 1 + self.ahead.extents(values)
        return pieces

    def is_read_by(self, block: str) -> bool:
        """Return whether a block reads the copy, perhaps under a later name."""
        return any(name in self.readers for name in later_names(block))


@dataclass(frozen=True)
class _PlacedBlock:
    loops: tuple[For, ...]
    block: Block


def shared_copies(program: SketchProgram) -> tuple[SharedCopy, ...]:
    """Return the copies of a sketch in the order of its program."""
    placed = list(_blocks(program.func.root.body, ()))
    copies = []
    for site in placed:
        body, source = site.block.body, program.copied.get(site.block.name)
        if source and isinstance(body, Store) and body.buffer.scope.startswith("shared"):
            readers = _readers(placed, body.buffer)
            copies.append(_shared_copy(program, site, source, readers, body.indices))
    return tuple(copies)


def _blocks(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[_PlacedBlock]:
    match stmt:
        case For():
            loops = (*loops, stmt)
        case BlockRealize(_, _, block):
            yield _PlacedBlock(loops, block)
        case _:
            pass
    for inner in statements_in(stmt):
        yield from _blocks(inner, loops)


def _copied(block: Block) -> tuple[Buffer | None, Buffer | None]:
    """Return the source and the target of a block that copies elements; None for other blocks."""
    if not isinstance(block.body, Store):
        return None, None
    loads = {node.buffer for node in walk(block.body.value) if isinstance(node, Load)}
    return (loads.pop(), block.body.buffer) if len(loads) == 1 else (None, None)


def _readers(placed: list[_PlacedBlock], buffer: Buffer) -> tuple[str, ...]:
    """Return the blocks that compute from a buffer; copies into registers only pass it on."""
    names: list[str] = []
    for site in placed:
        source, target = _copied(site.block)
        if source == buffer and target is not None and target.scope.startswith(("local", "wmma")):
            names += _readers(placed, target)
        elif any(region.buffer == buffer for region in site.block.reads):
            names.append(site.block.name)
    return tuple(dict.fromkeys(names))


def _shared_copy(
    program: SketchProgram,
    site: _PlacedBlock,
    source: str,
    readers: tuple[str, ...],
    indices: tuple[Expr, ...],
) -> SharedCopy:
    outer = [loop for loop in site.loops if not (loop.thread or "").startswith(_THREADS)]
    slots = [program.slots[loop.var] for loop in outer if loop.var in program.slots]
    vectors = [loop for loop in site.loops if loop.kind == "vectorized"]
    stages = [stage for loop in site.loops for stage in _numbers(loop.annotations, STAGES)]
    ahead = [slot for loop in site.loops for slot in program.notes.get((loop.var, STAGES), ())]
    has_local_stage = LOCAL_STAGE in dict(site.block.annotations)
    return SharedCopy(
        source,
        readers,
        frozenset(slot.column for slot in slots if slot.column is not None),
        _slot(program, vectors[0]) if vectors else None,
        1 + max(stages, default=0),
        ahead[0] if ahead else None,
        not has_local_stage and any(_numbers(loop.annotations, ASYNC) for loop in site.loops),
        any(isinstance(node, Conditional) for node in walk(site.block.body)),
        tuple((axis, factor, offset) for _, axis, factor, offset in _alignments(site.block)),
        _layout(site.block, indices),
    )


def _layout(block: Block, indices: tuple[Expr, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return the layout of a copy; that of its source if it has another form."""
    axes = [iter_var.var for iter_var in block.iter_vars]
    digits = [_digit(index, axes) for index in indices]
    simple = tuple(digit for digit in digits if digit is not None)
    if len(simple) == len(digits):
        return simple
    return tuple((axis, 1, 0) for axis in range(len(axes)))


def _digit(index: Expr, axes: list[Var]) -> tuple[int, int, int] | None:
    match index:
        case Var() if index in axes:
            return axes.index(index), 1, 0
        case BinOp("//" | "%" as op, lhs, IntImm(number)):
            inner = _digit(lhs, axes)
            if inner is None or inner[2] % number:
                return None
            axis, divisor, modulus = inner
            if op == "%":
                return axis, divisor, number
            return axis, divisor * number, modulus // number
        case _:
            return None


def _numbers(annotations: Annotations, key: str) -> list[int]:
    """Return the integers in the list under a key; none without it."""
    value = dict(annotations).get(key)
    return [n for n in value if isinstance(n, int)] if isinstance(value, tuple) else []


def _alignments(block: Block) -> list[list[int]]:
    value = dict(block.annotations).get(ALIGNMENT)
    items = value if isinstance(value, tuple) else ()
    return [[n for n in i if isinstance(n, int)] for i in items if isinstance(i, tuple)]


def _slot(program: SketchProgram, loop: For) -> LoopSlot | None:
    if loop.var in program.slots:
        return program.slots[loop.var]
    return LoopSlot(None, None, loop.extent.value) if isinstance(loop.extent, IntImm) else None
