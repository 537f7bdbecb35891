"""Random primitives that make blocks of blocks, tensor intrinsics and other reductions."""

from __future__ import annotations

from compiler.ir.nodes import Block
from tests.property.random_choice import (
    Draw,
    NotApplicableError,
    divisors,
    is_leaf,
    is_reduction,
    iter_extents,
    kinds_of,
    perfect_chain,
    step,
)
from tests.property.random_intrinsics import intrinsic_for


@step
def decompose_reduction(draw: Draw) -> None:
    realize = draw.realize(lambda block: block.init is not None)
    block = draw.handle(realize)
    places = draw.loops(block)
    over = [n for n, p in enumerate(places) if "reduce" in kinds_of(realize, p.loop.var)]
    first = over[0] if over else len(places) - 1
    draw.schedule.decompose_reduction(block, draw.pick(places[: first + 1]).handle)


@step
def rfactor(draw: Draw) -> None:
    realize = draw.realize(lambda block: is_reduction(block) and is_leaf(block))
    places = draw.loops(draw.handle(realize))
    loop = draw.pick(p.handle for p in places if kinds_of(realize, p.loop.var) == {"reduce"})
    rank = len(realize.block.writes[0].buffer.shape) if realize.block.writes else 0
    draw.schedule.rfactor(loop, draw.choose(range(rank + 1)))


@step
def blockize(draw: Draw) -> None:
    """Make a block of the inner loops of a nest, or of several blocks."""
    if draw.chance(4):
        loop = draw.pick(draw.loops(draw.block())).handle
        draw.schedule.blockize(draw.schedule.get_child_blocks(loop))
        return
    place = draw.pick(draw.loops(draw.block()))
    if draw.chance(4):
        draw.schedule.blockize(place.handle, preserve_unit_iters=False)
    else:
        draw.schedule.blockize(place.handle)


@step
def reorder_block_iter_var(draw: Draw) -> None:
    realize = draw.realize(lambda block: is_leaf(block) and len(block.iter_vars) > 1)
    count = len(realize.block.iter_vars)
    order = draw.some(range(count), count)
    order += [n for n in range(count) if n not in order]
    draw.schedule.reorder_block_iter_var(draw.handle(realize), order)


@step
def decompose_padding(draw: Draw) -> None:
    realize = draw.realize(_is_padding)
    block = draw.handle(realize)
    places = [p for p in draw.loops(block) if draw.schedule.can_decompose_padding(block, p.handle)]
    draw.schedule.decompose_padding(block, draw.pick(places).handle)


def _is_padding(block: Block) -> bool:
    return "pad" in block.name.lower() and is_leaf(block) and not is_reduction(block)


@step
def pad_einsum(draw: Draw) -> None:
    realize = draw.realize(lambda block: is_leaf(block) and is_reduction(block))
    padding = [draw.choose((1, 2, 4)) for _ in iter_extents(realize.block)]
    draw.schedule.pad_einsum(draw.handle(realize), padding)


@step
def fuse_reduction_epilogue(draw: Draw) -> None:
    reduction = draw.handle(draw.realize(lambda block: block.init is not None))
    consumers = draw.schedule.get_consumers(reduction)
    draw.schedule.fuse_reduction_epilogue(reduction, draw.pick(consumers))


@step
def rolling_buffer(draw: Draw) -> None:
    """Keep of a window what the next one needs, once the window's producer is next to it."""
    candidates = []
    for realize in draw.realizes(is_leaf):
        block = draw.handle(realize)
        consumers = draw.schedule.get_consumers(block)
        if not consumers:
            continue
        shared = {p.loop.var for p in draw.loops(consumers[0])}
        if any(p.loop.var in shared for p in draw.loops(block)):
            candidates.append(block)
    draw.schedule.rolling_buffer(draw.pick(candidates), 0)


@step
def tensorize(draw: Draw) -> None:
    """Let an intrinsic do the innermost loop of a block, a few iterations of it at once."""
    realize = draw.realize(lambda block: intrinsic_for(block, 1) is not None)
    place = draw.pick(perfect_chain(draw.loops(draw.handle(realize)))[-1:])
    if not place.is_serial or kinds_of(realize, place.loop.var) != {"spatial"}:
        raise NotApplicableError
    size = draw.pick(d for d in divisors(place.extent) if 1 < d <= 6)
    name = intrinsic_for(realize.block, size)
    assert name is not None
    _, inner = draw.schedule.split(place.handle, [None, size])
    draw.schedule.tensorize(inner, name)
