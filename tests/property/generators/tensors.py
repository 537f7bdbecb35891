"""Random primitives that nest blocks, insert tensor intrinsics, or change reductions."""

from __future__ import annotations

from compiler.ir.core.nodes import BinOp, Block, BlockRealize, Buffer, Load, Store, Var
from compiler.ir.core.visit import walk
from compiler.schedule.rewrite.window_convolution import window_convolution
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
)
from tests.property.generators.intrinsics import intrinsic_for


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
    realize = draw.realize(lambda block: block.init is not None and is_leaf(block))
    places = [p for p in draw.loops(draw.handle(realize)) if p.is_serial]
    loop = draw.pick(p.handle for p in places if kinds_of(realize, p.loop.var) == {"reduce"})
    rank = len(realize.block.writes[0].buffer.shape) if realize.block.writes else 0
    draw.schedule.rfactor(loop, draw.choose(range(rank + 1)))


@step
def blockize(draw: Draw) -> None:
    """Make a block of the inner loops of a nest, or of several blocks."""
    place = draw.pick(draw.loops(draw.block()))
    siblings = draw.schedule.get_child_blocks(place.handle)
    if len(siblings) > 1:
        draw.schedule.blockize(siblings)
        return
    draw.schedule.blockize(place.handle, preserve_unit_iters=not draw.chance(4))


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
    realize = draw.realize(lambda block: block.init is not None and _is_einsum(block))
    padding = [draw.choose((1, 2, 4)) for _ in iter_extents(realize.block)]
    draw.schedule.pad_einsum(draw.handle(realize), padding)


def _is_einsum(block: Block) -> bool:
    """Return whether all indices of a block are iterators."""
    loads = [node for node in walk(block.body) if isinstance(node, Load)]
    return is_leaf(block) and all(isinstance(i, Var) for load in loads for i in load.indices)


@step
def fuse_reduction_epilogue(draw: Draw) -> None:
    """Fuse the addition after a sum into the sum."""
    pairs = []
    for realize in draw.realizes(lambda block: block.init is not None):
        reduction = draw.handle(realize)
        for consumer in draw.schedule.get_consumers(reduction):
            found = draw.schedule.get(consumer)
            if isinstance(found, BlockRealize) and _adds(found.block, realize.block):
                pairs.append((reduction, consumer))
    draw.schedule.fuse_reduction_epilogue(*draw.pick(pairs))


def _adds(block: Block, reduction: Block) -> bool:
    match block.body:
        case Store(_, _, BinOp("+", Load(buffer), _) | BinOp("+", _, Load(buffer))):
            return buffer == reduction.writes[0].buffer
        case _:
            return False


@step
def online_softmax(draw: Draw) -> None:
    """Cut a weighted sum into blocks, and compute its softmax with it."""
    parameters = set(draw.schedule.func.buffers)
    realize = draw.realize(lambda block: _weights_values(block, parameters))
    block = draw.handle(realize)
    kinds = [(p, kinds_of(realize, p.loop.var)) for p in draw.loops(block) if p.is_serial]
    over = next((p.handle for p, kind in kinds if kind == {"reduce"}), None)
    if over is None:
        raise NotApplicableError
    outer, inner = draw.schedule.split(over, [None, draw.choose((1, 2, 3))])
    if not draw.chance(4):
        spatial = [p.handle for p, kind in kinds if kind == {"spatial"}]
        draw.schedule.reorder(outer, *spatial[-1:], inner)
    draw.schedule.online_softmax(block, outer)


def _weights_values(block: Block, parameters: set[Buffer]) -> bool:
    """Return whether a block adds up products of which a factor is an intermediate result."""
    match block.body:
        case Store(_, _, BinOp("+", Load(), BinOp("*", Load(weights), Load()))):
            return block.init is not None and weights not in parameters
        case _:
            return False


@step
def winograd(draw: Draw) -> None:
    """Convolve windows by tiles."""
    realize = draw.realize(lambda block: window_convolution(block) is not None)
    # Tiles of 2 halve their sums, so whole numbers stay exact. Tiles of 4 divide by 6.
    draw.schedule.winograd(draw.handle(realize), 2)


@step
def rolling_buffer(draw: Draw) -> None:
    """Compute the input of windows under their loop, and keep the overlap in a rolling buffer."""
    pairs = []
    for realize in draw.realizes(lambda block: isinstance(block.body, Store)):
        block = draw.handle(realize)
        consumers = draw.schedule.get_consumers(block)
        found = draw.schedule.get(consumers[0]) if len(consumers) == 1 else None
        if isinstance(found, BlockRealize) and _has_windows(found.block, realize.block):
            spatial = [
                p.handle
                for p in draw.loops(consumers[0])
                if p.is_serial and kinds_of(found, p.loop.var) == {"spatial"}
            ]
            pairs.append((block, spatial[-1:]))
    block, loops = draw.pick(pairs)
    draw.schedule.compute_at(block, draw.pick(loops))
    draw.schedule.rolling_buffer(block, 0)


def _has_windows(block: Block, producer: Block) -> bool:
    """Return whether a block reads overlapping regions of the output of another one."""
    buffers = {region.buffer for region in producer.writes}
    loads = [n for n in walk(block.body) if isinstance(n, Load) and n.buffer in buffers]
    return any(isinstance(i, BinOp) and i.op == "+" for load in loads for i in load.indices)


@step
def tensorize(draw: Draw) -> None:
    """Tensorize the innermost loop of a block, or a part of it."""
    realize = draw.realize(lambda block: intrinsic_for(block, 1) is not None)
    place = draw.pick(perfect_chain(draw.loops(draw.handle(realize)))[-1:])
    if not place.is_serial or kinds_of(realize, place.loop.var) != {"spatial"}:
        raise NotApplicableError
    size = draw.pick(d for d in divisors(place.extent) if 1 < d <= 6)
    name = intrinsic_for(realize.block, size)
    assert name is not None
    _, inner = draw.schedule.split(place.handle, [None, size])
    draw.schedule.tensorize(inner, name)
