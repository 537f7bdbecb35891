"""Random primitives on buffers: copies, layouts, scopes; and annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import Block, Buffer, IntImm, Seq, static_shape
from compiler.ir.core.visit import substitute
from compiler.schedule.trace.handle import BlockRV
from compiler.te.value import Value
from tests.property.generators.choice import (
    Draw,
    NotApplicableError,
    divisors,
    is_leaf,
    is_reduction,
    iter_extents,
    kinds_of,
    perfect_chain,
    step,
    uses,
)

SCOPES = ("global", "local", "shared")
IndexMap = Callable[..., Sequence[Any]]


def _buffer(draw: Draw, kind: str) -> tuple[BlockRV, int, Buffer]:
    """Choose a block and one of its reads or writes."""
    realize = draw.realize(lambda block: is_leaf(block) and bool(_regions(block, kind)))
    regions = _regions(realize.block, kind)
    number = draw.choose(range(len(regions)))
    return draw.handle(realize), number, regions[number].buffer


def _regions(block: Block, kind: str) -> tuple[Any, ...]:
    return block.reads if kind == "read" else block.writes


def _shape(buffer: Buffer) -> tuple[int, ...]:
    if not all(isinstance(extent, IntImm) for extent in buffer.shape):
        raise NotApplicableError
    return static_shape(buffer)


def _is_allocated(draw: Draw, buffer: Buffer) -> bool:
    return buffer not in draw.schedule.func.params


def _index_map(draw: Draw, shape: tuple[int, ...]) -> IndexMap:
    """Draw an index map: reorder, split or fuse dimensions."""
    rank = len(shape)
    form = draw.choose(("order", "tile", "join"))
    if form == "join" and rank >= 2:
        at = draw.choose(range(rank - 1))
        size = shape[at + 1]
        return lambda *i: (*i[:at], i[at] * size + i[at + 1], *i[at + 2 :])
    if form == "tile" and rank:
        at = draw.choose(range(rank))
        factor = draw.choose((*divisors(shape[at]), 2))
        return lambda *i: (*i[:at], i[at] // factor, *i[at + 1 :], i[at] % factor)
    order = draw.some(range(rank), rank) if rank else []
    order += [axis for axis in range(rank) if axis not in order]
    return lambda *i: tuple(i[axis] for axis in order)


@step
def cache_read(draw: Draw) -> None:
    block, number, _ = _buffer(draw, "read")
    consumers = [block] if draw.chance(3) else None
    draw.schedule.cache_read(block, number, draw.choose(SCOPES), consumers)


@step
def cache_write(draw: Draw) -> None:
    block, number, _ = _buffer(draw, "write")
    draw.schedule.cache_write(block, number, draw.choose(SCOPES))


@step
def cache_inplace(draw: Draw) -> None:
    def is_in_place(block: Block) -> bool:
        written = {region.buffer for region in block.writes}
        return is_leaf(block) and any(region.buffer in written for region in block.reads)

    realize = draw.realize(is_in_place)
    written = {region.buffer for region in realize.block.writes}
    numbers = [n for n, region in enumerate(realize.block.reads) if region.buffer in written]
    draw.schedule.cache_inplace(draw.handle(realize), draw.pick(numbers), draw.choose(SCOPES))


@step
def reindex(draw: Draw) -> None:
    kind = draw.choose(("read", "write"))
    block, number, _ = _buffer(draw, kind)
    draw.schedule.reindex(block, (kind, number))


@step
def reindex_cache_read(draw: Draw) -> None:
    """Cache a read at its iterators, in any order."""
    realize = draw.realize(lambda block: is_leaf(block) and bool(block.reads))
    block = realize.block
    number = draw.choose(range(len(block.reads)))
    places = [r.minimum for r in block.reads[number].region]
    extents = iter_extents(block)
    used = [n for n, i in enumerate(block.iter_vars) if any(uses(p, i.var) for p in places)]
    chosen = _index_map(draw, tuple(extents[n] for n in used))
    draw.schedule.reindex_cache_read(
        draw.handle(realize), number, draw.choose(SCOPES), lambda *i: chosen(*(i[n] for n in used))
    )


@step
def reindex_cache_write(draw: Draw) -> None:
    realize = draw.realize(lambda block: is_leaf(block) and bool(block.writes))
    spatial = [n for n, iter_var in enumerate(realize.block.iter_vars) if iter_var.kind != "reduce"]
    order = draw.some(spatial, len(spatial)) if spatial else []
    order += [n for n in spatial if n not in order]
    draw.schedule.reindex_cache_write(
        draw.handle(realize), 0, draw.choose(SCOPES), lambda *i: tuple(i[n] for n in order)
    )


@step
def read_at(draw: Draw) -> None:
    block, number, _ = _buffer(draw, "read")
    loop = draw.pick(draw.loops(block)).handle
    draw.schedule.read_at(loop, block, number, draw.choose(SCOPES))


@step
def write_at(draw: Draw) -> None:
    block, number, _ = _buffer(draw, "write")
    loop = draw.pick(draw.loops(block)).handle
    draw.schedule.write_at(loop, block, number, draw.choose(SCOPES))


@step
def transform_layout(draw: Draw) -> None:
    """Transform the layout of an allocated buffer; that of a parameter would change its shape."""
    kind = draw.choose(("read", "write"))
    block, number, buffer = _buffer(draw, kind)
    if not _is_allocated(draw, buffer):
        raise NotApplicableError
    index_map = _index_map(draw, _shape(buffer))
    pad_value = draw.choose((None, 0.0 if is_float(buffer.dtype) else 0))
    draw.schedule.transform_layout(block, (kind, number), index_map, pad_value=pad_value)


@step
def transform_block_layout(draw: Draw) -> None:
    """Transform the iterators of a block that is alone in its loops."""
    candidates = []
    for realize in draw.realizes(lambda block: is_leaf(block) and bool(block.iter_vars)):
        chain = perfect_chain(draw.loops(draw.handle(realize)))
        bound = tuple(place.loop.var for place in chain)
        if bound == realize.iter_values and chain[-1].loop.body is realize:
            candidates.append(realize)
    realize = draw.pick(candidates)
    index_map = _index_map(draw, tuple(iter_extents(realize.block)))
    draw.schedule.transform_block_layout(draw.handle(realize), index_map)


@step
def set_scope(draw: Draw) -> None:
    block, number, buffer = _buffer(draw, "write")
    if not _is_allocated(draw, buffer):
        raise NotApplicableError
    draw.schedule.set_scope(block, number, draw.choose(SCOPES))


@step
def cache_index(draw: Draw) -> None:
    block = draw.block(is_leaf)
    draw.schedule.cache_index(block, draw.choose(SCOPES), draw.choose((0, 1, 2)))


@step
def annotate_buffer_access(draw: Draw) -> None:
    realize = draw.realize(lambda block: is_leaf(block) and bool(block.reads))
    kind = draw.choose(("read", "write"))
    regions = _regions(realize.block, kind)
    if not regions:
        raise NotApplicableError
    number = draw.choose(range(len(regions)))
    before, after = draw.choose((0, 0, 1)), draw.choose((0, 1, 2))

    def ranges(*iterators: Value) -> list[tuple[Value, Value]]:
        at = dict(zip((i.var for i in realize.block.iter_vars), iterators, strict=True))
        mapping = {var: value.expr for var, value in at.items()}
        box = regions[number].region
        lows = [Value(substitute(r.minimum, mapping)) for r in box]
        sizes = [Value(substitute(r.extent, mapping)) for r in box]
        return [(low - before, low + n + after) for low, n in zip(lows, sizes, strict=True)]

    draw.schedule.annotate_buffer_access(draw.handle(realize), number, kind, ranges)


@step
def unsafe_hide_buffer_access(draw: Draw) -> None:
    block, number, _ = _buffer(draw, "read")
    draw.schedule.unsafe_hide_buffer_access(block, "read", draw.choose(([], [number])))


@step
def unsafe_set_dtype(draw: Draw) -> None:
    block, number, buffer = _buffer(draw, "write")
    wider = {"int8": "int16", "int16": "int32", "int32": "int64", "float32": "float64"}
    if not _is_allocated(draw, buffer) or buffer.dtype not in wider:
        raise NotApplicableError
    draw.schedule.unsafe_set_dtype(block, number, wider[buffer.dtype])


@step
def storage_align(draw: Draw) -> None:
    block, number, buffer = _buffer(draw, "write")
    if not _is_allocated(draw, buffer) or not buffer.shape:
        raise NotApplicableError
    axis = draw.choose(range(len(buffer.shape)))
    draw.schedule.storage_align(block, number, axis, draw.choose((4, 8)), draw.choose((0, 1)))


@step
def annotate(draw: Draw) -> None:
    key, value = draw.choose(
        (
            ("note", 1),
            ("note", [1, 2]),
            ("pragma_auto_unroll_max_step", 4),
            ("pragma_unroll_explicit", 1),
        )
    )
    draw.schedule.annotate(draw.block() if draw.chance() else draw.loop(), key, value)


@step
def annotate_buffer_tile(draw: Draw) -> None:
    """Keep a buffer in panels."""
    block, number, buffer = _buffer(draw, "write")
    if not _is_allocated(draw, buffer) or not buffer.shape:
        raise NotApplicableError
    tile = [number, draw.choose(range(len(buffer.shape))), draw.choose((2, 3, 4))]
    draw.schedule.annotate(block, "buffer_tile", tile)


@step
def annotate_reduce_in_lanes(draw: Draw) -> None:
    """Reduce along a loop in lanes."""
    realize = draw.realize(is_reduction)
    places = draw.loops(draw.handle(realize))
    reducing = [p for p in places if p.is_serial and "reduce" in kinds_of(realize, p.loop.var)]
    lanes = draw.choose((1, 2, 4, 16))
    draw.schedule.annotate(draw.pick(reducing).handle, "reduce_in_lanes", lanes)


@step
def annotate_interleave(draw: Draw) -> None:
    """Run a loop in the iterations of the loop after it."""
    loop = draw.loop(lambda place: place.loop.kind in ("serial", "vectorized"))
    draw.schedule.annotate(loop, "interleave", 1)


@step
def annotate_dynamic_partition(draw: Draw) -> None:
    """Let the threads of a parallel loop fetch a few iterations at a time."""
    loop = draw.loop(lambda place: place.loop.kind == "parallel")
    draw.schedule.annotate(loop, "dynamic_partition", draw.choose((1, 2, 5)))


@step
def annotate_double_buffer(draw: Draw) -> None:
    block, number, buffer = _buffer(draw, "write")
    if not _is_allocated(draw, buffer):
        raise NotApplicableError
    draw.schedule.annotate(block, "double_buffer_scope", number)


@step
def annotate_software_pipeline(draw: Draw) -> None:
    """Overlap the parts of a loop that has several."""
    places = draw.loops(draw.block())
    place = draw.pick(p for p in places if p.is_serial and isinstance(p.loop.body, Seq))
    assert isinstance(place.loop.body, Seq)
    parts = len(place.loop.body.stmts)
    stages = sorted(draw.choose((0, 1, 1)) for _ in range(parts))
    draw.schedule.annotate(place.handle, "software_pipeline_stage", stages)
    draw.schedule.annotate(place.handle, "software_pipeline_order", list(range(parts)))


@step
def unannotate(draw: Draw) -> None:
    realize = draw.realize(lambda block: bool(block.annotations))
    key = draw.pick(key for key, _ in realize.block.annotations)
    draw.schedule.unannotate(draw.handle(realize), key)
