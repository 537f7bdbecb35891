"""Make the rows of windows whole groups of steps, for dot products of images with few channels."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler import te
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import OperandRoles
from tuner.space.rules.cpu.packed.packed_operands import (
    Layout,
    lengthen_operand,
    packed_operand,
)
from tuner.space.rules.cpu.step_groups import inline_producer, step_group
from tuner.space.rules.sketch_builder import SketchBuilder


def window_groups(draft: SketchBuilder, name: str, roles: OperandRoles) -> OperandRoles | None:
    """Pad the contiguous rows of windows to groups of steps, four or two; return the new roles.

    An image of three channels has no groups of channels, but the bytes of a window's row are
    neighbours: 7 pixels of 3 channels are 21 steps, which are padded to 24. Weights are padded with
    zeros, and the image is read a few bytes further. If it ends before, its copy has
    longer rows.

        for y, x, f, ry, rx, c in ...:                  for y, x, f, ry, r in ...:  # r < 24
            C[y, x, f] += A[y + ry, x + rx, c] *   ->       C[y, x, f] += A[y + ry, x * 3 + r] *
                          W[ry, rx, c, f]                                 W[ry, r, f]

    Returns:
        The roles, with the row in place of the channel; None if the CPU has no such instructions,
        or channels have groups of their own. The draft is then unchanged.

    Raises:
        ScheduleError: If the sum can't be padded.
    """
    facts = draft.block_facts()[name]
    group = step_group(draft, facts, roles.image, roles.weights).size
    if group == 1 or roles.channel_tile % group == 0:
        return None
    axes = _row(facts, roles)
    if axes is None:
        return None
    row = axes[0]
    missing = _missing(facts, roles.image, axes, group)
    if missing:
        lengthen_operand(draft, name, roles.image, _dimension(roles.image, row), missing)
        facts = draft.block_facts()[name]
        roles = replace(roles, image=_image(draft, name, roles))
    if len(axes) > 1:
        _join(draft, facts, roles, axes)
    sizes = [group if axis == row else 1 for axis in range(len(draft.block_facts()[name].axes))]
    weights = _weights(draft, name, roles)
    draft.schedule.pad_einsum(draft.schedule.get_block(name), sizes)
    inline_producer(draft, weights.buffer)
    weights, image = _weights(draft, name, roles), _image(draft, name, roles)
    tile = draft.block_facts()[name].axes[row].extent
    return replace(roles, image=image, weights=weights, channel=row, channel_tile=tile)


def _row(facts: BlockFacts, roles: OperandRoles) -> tuple[int, ...] | None:
    """Return the axes of the contiguous row of a window, if it can be padded: one, or two."""
    summed = {i: a.extent for i, a in enumerate(facts.axes) if a.is_reduction and a.extent > 1}
    strides = roles.image.strides
    inner = next((i for i in summed if strides[i] == 1), None)
    if inner is None or inner < roles.vector:
        return None
    outer = next((i for i, extent in summed.items() if strides[i] == summed[inner]), None)
    axes = (inner,) if outer is None else (outer, inner)
    return axes if outer is None or _are_neighbours(roles, axes) else None


def _missing(facts: BlockFacts, image: TensorAccess, axes: tuple[int, ...], group: int) -> int:
    """Return by how many elements an image is too short, along the dimension of the first axis.

    Its rows end with the last window, or a few elements after it.
    """
    dim = _dimension(image, axes[0])
    pairs = zip(image.coefficients[dim], facts.axes, strict=True)
    room = image.shape[dim] - 1 - sum(scale * (axis.extent - 1) for scale, axis in pairs)
    extra = -prod(facts.axes[axis].extent for axis in axes) % group
    pixel = prod(facts.axes[axis].extent for axis in axes[1:])
    return max(0, -(-extra // pixel) - room)


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


def _image(draft: SketchBuilder, name: str, roles: OperandRoles) -> TensorAccess:
    """Return the operand that does not."""
    weights = _weights(draft, name, roles)
    return next(read for read in draft.block_facts()[name].reads if read.buffer != weights.buffer)


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
