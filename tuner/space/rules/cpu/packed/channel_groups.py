"""Make the groups of a grouped convolution an axis of its own, so that all indices are linear."""

from __future__ import annotations

from dataclasses import dataclass

from compiler import te
from compiler.ir.arith.affine import affine
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Load, Var
from compiler.ir.core.visit import walk
from compiler.schedule.trace.handle import BlockRV
from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cpu.packed.packed_operands import Layout, packed_operand
from tuner.space.rules.sketch_builder import SketchBuilder


@dataclass(frozen=True)
class ChannelGroups:
    """Groups of output channels, each of which reads its own input channels.

    Attributes:
        axis: The output channels.
        num_outputs: The output channels of a group.
        image: The buffer with the input channels.
        dimension: The dimension of the image that has them.
        num_inputs: The input channels of a group.
    """

    axis: int
    num_outputs: int
    image: str
    dimension: int
    num_inputs: int


def find_groups(draft: SketchBuilder, facts: BlockFacts) -> ChannelGroups | None:
    """Return the groups of a block whose only index that is not linear is of an input channel."""
    site = next(site for site in sites(draft.schedule.func) if site.block.name == facts.name)
    extents: dict[Expr, Expr] = {i.var: i.extent for i in site.block.iter_vars}
    candidates = []
    for load in walk(site.block.body):
        if not isinstance(load, Load):
            continue
        for dim, index in enumerate(load.indices):
            match affine(index).terms:
                case ((BinOp("//", channel, IntImm(size)), step), (Var() as inner, 1)) | (
                    (Var() as inner, 1),
                    (BinOp("//", channel, IntImm(size)), step),
                ) if channel in extents and extents.get(inner) == IntImm(step):
                    axis = list(extents).index(channel)
                    candidates.append(ChannelGroups(axis, size, load.buffer.name, dim, step))
                case _:
                    pass
    if len(candidates) != 1 or len(facts.reads) != 2 or not facts.is_multiply_add:
        return None
    (groups,) = candidates
    operands = [facts.write, *(read for read in facts.reads if read.buffer != groups.image)]
    is_alone = all(dimension(access, groups.axis) is not None for access in operands)
    return groups if is_alone else None


def split_groups(
    draft: SketchBuilder, facts: BlockFacts, groups: ChannelGroups, epilogue: BlockRV
) -> None:
    """Give a block, its operands and its output an axis of groups.

    Args:
        epilogue: The block that reads the output.
    """
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    output = dimension(facts.write, groups.axis)
    assert output is not None, "`find_groups` checked it"
    schedule.transform_block_layout(block, split_dimension(groups.axis, groups.num_outputs))
    layout = split_dimension(output, groups.num_outputs)
    schedule.transform_layout(block, ("write", 0), layout)
    schedule.transform_block_layout(epilogue, layout)
    for read in facts.reads:
        if read.buffer == groups.image:
            layout = split_dimension(groups.dimension, groups.num_inputs)
        else:
            dim = dimension(read, groups.axis)
            assert dim is not None, "weights have a dimension of output channels"
            layout = split_dimension(dim, groups.num_outputs)
        packed_operand(draft, facts.name, read, layout)


def split_dimension(dim: int, size: int) -> Layout:
    """Return the layout that makes a dimension two: the groups, and the elements of a group."""

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return (*i[:dim], i[dim] // size, i[dim] % size, *i[dim + 1 :])

    return layout
