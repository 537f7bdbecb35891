"""The loops of a stage in a program, and the transformations of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.ir.core.nodes import BlockRealize, For, Var
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.te.axis import TensorAxis
from compiler.te.value import ReduceAxis
from compiler.te_schedule.inserted import AnyAxis
from compiler.te_schedule.transformations import Fuse, Reorder, Split, Transformation


@dataclass(slots=True)
class Nest:
    """Loops around the block of a stage, or around several of them.

    Attributes:
        blocks: The blocks.
        iterators: The axis of each iterator of a block.
        leaves: The axes of the loops, the outermost first.
    """

    blocks: list[BlockRV]
    iterators: list[AnyAxis]
    leaves: list[AnyAxis] = field(default_factory=list)
    _loops: dict[TensorAxis | Var, LoopRV] = field(default_factory=dict)

    def loop(self, axis: AnyAxis) -> LoopRV:
        """Return the loop of an axis."""
        return self._loops[_key(axis)]

    def put(self, axis: AnyAxis, loop: LoopRV) -> None:
        """Set the loop of an axis."""
        self._loops[_key(axis)] = loop

    def transform(self, sch: Schedule, step: Transformation) -> None:
        """Split, fuse or reorder loops of a program.

        Raises:
            ScheduleError: If the primitive is refused.
        """
        match step:
            case Split(parent, outer, inner, factor, nparts):
                new = sch.split(self.loop(parent), factors=[nparts, factor])
                self.put(outer, new[0])
                self.put(inner, new[1])
                self._replace([parent], [outer, inner])
            case Fuse((), fused):
                self.put(fused, sch.add_unit_loop(self.blocks[0]))
                self.leaves.append(fused)
            case Fuse(parts, fused):
                self.put(fused, sch.fuse(*map(self.loop, parts)))
                self._replace(parts, [fused])
            case Reorder(order):
                self.reorder(sch, order)

    def reorder(self, sch: Schedule, order: Sequence[AnyAxis]) -> None:
        """Bring all loops into an order.

        Raises:
            ScheduleError: If the primitive is refused.
        """
        moved = [new for old, new in zip(self.leaves, order, strict=True) if old is not new]
        if moved:
            sch.reorder(*map(self.loop, moved))
        self.leaves = list(order)

    def _replace(self, old: Sequence[AnyAxis], new: Sequence[AnyAxis]) -> None:
        first = next(n for n, leaf in enumerate(self.leaves) if leaf is old[0])
        self.leaves[first : first + len(old)] = new


def nests_of(sch: Schedule, blocks: Sequence[BlockRV], iterators: Sequence[AnyAxis]) -> list[Nest]:
    """Return the nests of blocks whose iterators are bound to a loop each.

    Blocks next to each other in the same loops, such as those of an operation with several values,
    have one nest.
    """
    nests: list[Nest] = []
    before: list[Var] = []
    for block in blocks:
        loops = dict(_loops(sch, block))
        if nests and loops and list(loops) == before:
            nests[-1].blocks.append(block)
        else:
            nests.append(_nest(sch, block, iterators, loops))
        before = list(loops)
    return nests


def nest_of(sch: Schedule, block: BlockRV, iterators: Sequence[AnyAxis]) -> Nest:
    """Return the nest of one block whose iterators are bound to a loop each."""
    return _nest(sch, block, iterators, dict(_loops(sch, block)))


def _nest(
    sch: Schedule, block: BlockRV, iterators: Sequence[AnyAxis], loops: Mapping[Var, LoopRV]
) -> Nest:
    nest = Nest([block], list(iterators))
    axis_of = dict(zip(_bindings(sch, block), iterators, strict=True))
    for var, handle in loops.items():
        if var in axis_of:
            nest.put(axis_of[var], handle)
            nest.leaves.append(axis_of[var])
    return nest


def nest_in_order(sch: Schedule, block: BlockRV, leaves: Sequence[AnyAxis]) -> Nest:
    """Return the nest of a block, given the axes of its loops, the outermost first."""
    nest = Nest([block], [], list(leaves))
    axis_of: dict[Var, AnyAxis] = {}
    for axis, (var, handle) in zip(leaves, _loops(sch, block), strict=True):
        nest.put(axis, handle)
        axis_of[var] = axis
    nest.iterators = [axis_of[var] for var in _bindings(sch, block)]
    return nest


def step_loop(sch: Schedule, step: BlockRV, axis: TensorAxis) -> Nest:
    """Return the nest of a scan: the loop over its steps, in which each step has a nest."""
    nest = Nest([], [], [axis])
    nest.put(axis, sch.get_loops(step)[0])
    return nest


def nest_under(sch: Schedule, block: BlockRV, iterators: Sequence[AnyAxis]) -> Nest:
    """Return the nest of a block that was moved under a loop, with a loop for each iterator."""
    nest = Nest([block], list(iterators), list(iterators))
    handles = sch.get_loops(block)
    for axis, handle in zip(iterators, handles[len(handles) - len(iterators) :], strict=True):
        nest.put(axis, handle)
    return nest


def merged(sch: Schedule, nests: list[Nest]) -> list[Nest]:
    """Return one nest of several that have the same loops, next to each other, where that is legal.

    The tensors of one operation have one nest in TVM, and other stages are computed under it.
    """
    iterators = nests[0].iterators if nests else []
    if len(nests) < 2 or not iterators:
        return nests
    try:
        sch.merge(*(nest.loop(iterators[-1]) for nest in nests))
    except ScheduleError:
        return nests
    blocks = [block for nest in nests for block in nest.blocks]
    whole = nest_under(sch, blocks[0], iterators)
    whole.blocks = blocks
    return [whole]


def _loops(sch: Schedule, block: BlockRV) -> Iterator[tuple[Var, LoopRV]]:
    for handle in sch.get_loops(block):
        loop = sch.get(handle)
        assert isinstance(loop, For), "the handle is that of a loop"
        yield loop.var, handle


def _bindings(sch: Schedule, block: BlockRV) -> list[Var]:
    """Return the loop that each iterator of a block takes its values of."""
    realize = sch.get(block)
    assert isinstance(realize, BlockRealize), "the handle is that of a block"
    variables = [value for value in realize.iter_values if isinstance(value, Var)]
    assert len(variables) == len(realize.iter_values), "a new block is bound to loops"
    return variables


def _key(axis: AnyAxis) -> TensorAxis | Var:
    # Axes of reductions are values, whose `==` is an expression.
    return axis.loop if isinstance(axis, ReduceAxis) else axis
