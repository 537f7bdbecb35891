"""Make the rows of windows whole groups of steps, for dot products of images with few channels."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler import te
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import OperandRoles
from tuner.space.rules.cpu.packed.packed_operands import Layout, packed_operand
from tuner.space.rules.cpu.step_groups import inline_producer, step_group
from tuner.space.rules.sketch_builder import SketchBuilder


def window_groups(draft: SketchBuilder, name: str, roles: OperandRoles) -> OperandRoles | None:
    """Pad the contiguous rows of windows to groups of steps, four or two; return the new roles.

    An image of three channels has no groups of channels, but the bytes of a window's row are
    neighbours: 7 pixels of 3 channels are 21 steps, which are padded to 24. Weights are padded with
    zeros, and the image is read a few bytes further.

        for y, x, f, ry, rx, c in ...:                  for y, x, f, ry, r in ...:  # r < 24
            C[y, x, f] += A[y + ry, x + rx, c] *   ->       C[y, x, f] += A[y + ry, x * 3 + r] *
                          W[ry, rx, c, f]                                 W[ry, r, f]

    Returns:
        The roles, with the row in place of the channel; None if the CPU has no such instructions,
        channels have groups of their own, or the image ends with its last window. The draft is then
        unchanged.

    Raises:
        ScheduleError: If the sum can't be padded.
    """
    facts = draft.block_facts()[name]
    group = step_group(draft, facts, roles.image, roles.weights).size
    if group == 1 or roles.channel_tile % group == 0:
        return None
    axes = _row(facts, roles, group)
    if axes is None:
        return None
    row = axes[0]
    if len(axes) > 1:
        _join(draft, facts, roles, axes)
    sizes = [group if axis == row else 1 for axis in range(len(draft.block_facts()[name].axes))]
    weights = _weights(draft, name, roles)
    draft.schedule.pad_einsum(draft.schedule.get_block(name), sizes)
    inline_producer(draft, weights.buffer)
    facts, weights = draft.block_facts()[name], _weights(draft, name, roles)
    image = next(read for read in facts.reads if read.buffer != weights.buffer)
    tile = facts.axes[row].extent
    return replace(roles, image=image, weights=weights, channel=row, channel_tile=tile)


def _row(facts: BlockFacts, roles: OperandRoles, group: int) -> tuple[int, ...] | None:
    """Return the axes of the contiguous row of a window, if it can be padded: one, or two."""
    summed = {i: a.extent for i, a in enumerate(facts.axes) if a.is_reduction and a.extent > 1}
    strides = roles.image.strides
    inner = next((i for i in summed if strides[i] == 1), None)
    if inner is None or inner < roles.vector:
        return None
    outer = next((i for i, extent in summed.items() if strides[i] == summed[inner]), None)
    axes = (inner,) if outer is None else (outer, inner)
    length = prod(summed[axis] for axis in axes)
    room = _room(facts, roles.image, axes[0]) * length // summed[axes[0]]
    if room < -length % group or (outer is not None and not _are_neighbours(roles, axes)):
        return None
    return axes


def _room(facts: BlockFacts, image: TensorAccess, axis: int) -> int:
    """Return the elements of an image beyond the last window, along the dimension of an axis."""
    dim = _dimension(image, axis)
    pairs = zip(image.coefficients[dim], facts.axes, strict=True)
    return image.shape[dim] - 1 - sum(scale * (axis.extent - 1) for scale, axis in pairs)


def _dimension(read: TensorAccess, axis: int) -> int:
    """Return the first dimension that depends on an axis."""
    return next(number for number, row in enumerate(read.coefficients) if row[axis])


def _are_neighbours(roles: OperandRoles, axes: tuple[int, ...]) -> bool:
    """Return whether two axes, and their dimensions in both operands, follow each other."""
    numbers = [axes, *([_dimension(r, a) for a in axes] for r in (roles.image, roles.weights))]
    return all(first + 1 == last for first, last in numbers)


def _weights(draft: SketchBuilder, name: str, roles: OperandRoles) -> TensorAccess:
    """Return the operand that depends on the vector axis."""
    reads = draft.block_facts()[name].reads
    return next(read for read in reads if read.strides[roles.vector])


def _join(
    draft: SketchBuilder, facts: BlockFacts, roles: OperandRoles, axes: tuple[int, ...]
) -> None:
    """Make two neighbouring axes and dimensions one."""
    outer, inner = axes
    size = facts.axes[inner].extent
    for read in (roles.image, roles.weights):
        packed_operand(draft, facts.name, read, _joined(_dimension(read, outer), size))
    block = draft.schedule.get_block(facts.name)
    draft.schedule.transform_block_layout(block, _joined(outer, size))


def _joined(first: int, size: int) -> Layout:
    """Return the layout that makes a dimension and the next one, of so many elements, one."""

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return (*i[:first], i[first] * size + i[first + 1], *i[first + 2 :])

    return layout
