"""Random primitives on loops, and the samplings that choose their arguments."""

from __future__ import annotations

from compiler.schedule.trace.handle import LoopRV
from tests.property.generators.choice import (
    Draw,
    NotApplicableError,
    Place,
    divisors,
    kinds_of,
    perfect_chain,
    step,
)

THREAD_AXES = ("blockIdx.x", "vthread.x", "threadIdx.y", "threadIdx.x", "threadIdx.x")


def _plain_loop(draw: Draw) -> Place:
    """Choose a serial loop of more than one iteration."""
    return draw.pick(p for p in draw.loops(draw.block()) if p.is_serial and p.extent > 1)


@step
def split(draw: Draw) -> None:
    # Also loops of extents that vary, of which nothing is known.
    place = draw.pick(p for p in draw.loops(draw.block()) if p.is_serial and p.extent != 1)
    inner = draw.choose((*divisors(place.extent), 2, 3, 4, 5))
    middle = draw.choose((1, 2, 3))
    factors: list[int | None] = draw.choose(
        ([None, inner], [None, inner], [inner, None], [None, middle, inner], [inner, None, middle])
    )
    draw.schedule.split(place.handle, factors, preserve_unit_iters=not draw.chance(4))


@step
def fuse(draw: Draw) -> None:
    chain = [p for p in perfect_chain(draw.loops(draw.block())) if p.is_serial]
    if len(chain) < 2:
        raise NotApplicableError
    start = draw.choose(range(len(chain) - 1))
    stop = draw.choose(range(start + 2, len(chain) + 1))
    loops = [p.handle for p in chain[start:stop]]
    draw.schedule.fuse(*loops, preserve_unit_iters=not draw.chance(4))


@step
def reorder(draw: Draw) -> None:
    chain = perfect_chain(draw.loops(draw.block()))
    if len(chain) < 2:
        raise NotApplicableError
    picked = draw.some([p.handle for p in chain], 4)
    if len(picked) < 2:
        raise NotApplicableError
    draw.schedule.reorder(*picked)


@step
def skip_masked(draw: Draw) -> None:
    draw.schedule.skip_masked(draw.pick(draw.loops(draw.block())).handle)


@step
def merge(draw: Draw) -> None:
    """Merge loops of two nests, down to the same depth."""
    first, second = draw.block(), draw.block()
    left = [p for p in draw.loops(first) if p.is_serial]
    right = [p for p in draw.loops(second) if p.is_serial]
    pairs = [
        (a.handle, b.handle)
        for a, b in zip(left, right, strict=False)
        if a.loop is not b.loop and a.extent == b.extent
    ]
    draw.schedule.merge(*draw.pick(pairs[:1]))


@step
def loop_partition(draw: Draw) -> None:
    place = _plain_loop(draw)
    cut = draw.choose(range(1, place.extent))
    factors: list[int | None] = [cut, None] if draw.chance() else [cut]
    if place.extent - cut > 1 and draw.chance():
        factors = [cut, draw.choose(range(1, place.extent - cut)), *factors[1:]]
    draw.schedule.loop_partition(place.handle, factors)


@step
def add_unit_loop(draw: Draw) -> None:
    draw.schedule.add_unit_loop(draw.block() if draw.chance() else draw.loop())


def _loop_of_kind(draw: Draw, kinds: set[str]) -> LoopRV:
    """Choose a serial loop that binds only iterators of these kinds."""
    realize = draw.realize()
    places = draw.loops(draw.handle(realize))
    return draw.pick(
        p.handle for p in places if p.is_serial and kinds_of(realize, p.loop.var) <= kinds
    )


@step
def parallel(draw: Draw) -> None:
    draw.schedule.parallel(_loop_of_kind(draw, {"spatial"}))


@step
def vectorize(draw: Draw) -> None:
    realize = draw.realize()
    places = draw.loops(draw.handle(realize))[-1:]
    draw.schedule.vectorize(
        draw.pick(
            p.handle for p in places if p.is_serial and kinds_of(realize, p.loop.var) <= {"spatial"}
        )
    )


@step
def unroll(draw: Draw) -> None:
    draw.schedule.unroll(draw.pick(p for p in draw.loops(draw.block()) if p.is_serial).handle)


@step
def bind(draw: Draw) -> None:
    """Bind the outermost free loop to the next kind of thread."""
    block = draw.block()
    used = {p.loop.thread for p in draw.loops(block)}
    axes = [a for a in ("blockIdx.x", "vthread.x", "threadIdx.y", "threadIdx.x") if a not in used]
    spatial = _loop_of_kind(draw, {"spatial"})
    draw.schedule.bind(spatial, draw.pick(axes))


@step
def bind_anywhere(draw: Draw) -> None:
    """Bind any loop to any axis: most must be refused."""
    draw.schedule.bind(draw.loop(), draw.choose(THREAD_AXES))


@step
def bind_reduction(draw: Draw) -> None:
    """Bind a reduction loop, so that the threads of a block reduce together."""
    draw.schedule.bind(_loop_of_kind(draw, {"reduce"}), "threadIdx.x")


@step
def sample_perfect_tile(draw: Draw) -> None:
    place = _plain_loop(draw)
    count = draw.choose((2, 2, 3))
    factors = draw.schedule.sample_perfect_tile(place.handle, count, max_innermost_factor=4)
    draw.schedule.split(place.handle, factors)


@step
def sample_partitioned_tile(draw: Draw) -> None:
    place = _plain_loop(draw)
    factors = draw.schedule.sample_partitioned_tile(place.handle, 3, draw.choose((1, 2)), 2)
    draw.schedule.split(place.handle, factors)


@step
def sample_categorical(draw: Draw) -> None:
    place = _plain_loop(draw)
    factor = draw.schedule.sample_categorical([1, 2, 3], [0.25, 0.5, 0.25])
    draw.schedule.split(place.handle, [None, factor])
