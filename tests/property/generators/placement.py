"""Random primitives that move or inline blocks."""

from __future__ import annotations

from compiler.ir.core.nodes import Block, BlockRealize, Store
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tests.property.generators.choice import Draw, is_reduction, step


def _has_consumers(draw: Draw, realize: BlockRealize) -> bool:
    return bool(draw.schedule.get_consumers(draw.handle(realize)))


def _has_producers(draw: Draw, realize: BlockRealize) -> bool:
    return bool(draw.schedule.get_producers(draw.handle(realize)))


def _producer(draw: Draw) -> BlockRV:
    return draw.handle(draw.pick(r for r in draw.realizes() if _has_consumers(draw, r)))


def _loop_of(draw: Draw, blocks: list[BlockRV], block: BlockRV) -> LoopRV:
    """Choose a loop around all given blocks, but not around another one."""
    shared = draw.loops(blocks[0])
    for other in blocks[1:]:
        around = {p.loop.var for p in draw.loops(other)}
        shared = [p for p in shared if p.loop.var in around]
    own = {p.loop.var for p in draw.loops(block)}
    return draw.pick(p for p in shared if p.loop.var not in own).handle


@step
def compute_at(draw: Draw) -> None:
    block = _producer(draw)
    loop = _loop_of(draw, draw.schedule.get_consumers(block), block)
    index = draw.choose((-1, -1, -2, 0))
    draw.schedule.compute_at(block, loop, preserve_unit_loops=draw.chance(3), index=index)


@step
def reverse_compute_at(draw: Draw) -> None:
    realize = draw.pick(r for r in draw.realizes() if _has_producers(draw, r))
    block = draw.handle(realize)
    loop = _loop_of(draw, draw.schedule.get_producers(block), block)
    index = draw.choose((-1, -1, -2))
    draw.schedule.reverse_compute_at(block, loop, preserve_unit_loops=draw.chance(3), index=index)


@step
def compute_anywhere(draw: Draw) -> None:
    """Compute any block under any loop: most must be refused."""
    block, loop = draw.block(), draw.loop()
    if draw.chance():
        draw.schedule.compute_at(block, loop)
    else:
        draw.schedule.reverse_compute_at(block, loop)


@step
def sample_compute_location(draw: Draw) -> None:
    block = _producer(draw)
    loop = draw.schedule.sample_compute_location(block)
    draw.schedule.compute_at(block, loop)


def _is_plain(block: Block) -> bool:
    return isinstance(block.body, Store) and not is_reduction(block) and block.init is None


@step
def compute_inline(draw: Draw) -> None:
    realize = draw.pick(r for r in draw.realizes(_is_plain) if _has_consumers(draw, r))
    draw.schedule.compute_inline(draw.handle(realize))


@step
def reverse_compute_inline(draw: Draw) -> None:
    """Inline the only consumer of a spatial block into that block."""

    def follows(realize: BlockRealize) -> bool:
        producers = draw.schedule.get_producers(draw.handle(realize))
        if len(producers) != 1 or len(draw.schedule.get_consumers(producers[0])) != 1:
            return False
        producer = draw.schedule.get(producers[0])
        return isinstance(producer, BlockRealize) and _is_plain(producer.block)

    realize = draw.pick(r for r in draw.realizes(_is_plain) if follows(r))
    draw.schedule.reverse_compute_inline(draw.handle(realize))
