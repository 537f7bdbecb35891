"""Products of matrices: sums of products in the form that tensor cores compute.

A convolution is one, too: its pixels are rows or columns, and its windows are a part of the sum
(implicit GEMM).

    C[n, f, y, x] += X[n, c, y + r, x + q] * W[f, c, r, q]

    rows        f               A[f, (c, r, q)] = W[f, c, r, q]
    columns     (n, y, x)       B[(c, r, q), (n, y, x)] = X[n, c, y + r, x + q]
    steps       (c, r, q)       C[f, (n, y, x)] += A[f, (c, r, q)] * B[(c, r, q), (n, y, x)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from compiler.ir.core.nodes import Block, BlockRealize
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.sketch_builder import SketchBuilder

Axes = tuple[int, ...]


@dataclass(frozen=True)
class MatrixProduct:
    """A sum of products of two operands, and its axes by their part.

    Attributes:
        left: The operand with the rows of the output.
        right: The operand with the columns of the output.
        batch: The axes that both operands and the output have.
        rows: The axes of the left operand alone.
        columns: The axes of the right operand alone; the output is contiguous along one of them.
        steps: The axes that are summed over.
    """

    facts: BlockFacts
    left: TensorAccess
    right: TensorAccess
    batch: Axes
    rows: Axes
    columns: Axes
    steps: Axes

    @property
    def left_groups(self) -> tuple[Axes, Axes]:
        """Return the rows and the steps in the order of the left operand."""
        is_by_rows = _contiguous_axis(self.left, self.facts) in self.rows
        return (self.steps, self.rows) if is_by_rows else (self.rows, self.steps)

    @property
    def right_groups(self) -> tuple[Axes, Axes]:
        """Return the steps and the columns in the order of the right operand."""
        is_by_steps = _contiguous_axis(self.right, self.facts) in self.steps
        return (self.columns, self.steps) if is_by_steps else (self.steps, self.columns)

    @property
    def layouts(self) -> tuple[tuple[TensorAccess, tuple[Axes, ...]], ...]:
        """Return the groups of axes of the operands and the output, as matrices in memory."""
        batch = tuple((axis,) for axis in self.batch)
        return (
            (self.left, (*batch, *self.left_groups)),
            (self.right, (*batch, *self.right_groups)),
            (self.facts.write, (*batch, self.rows, self.columns)),
        )

    @property
    def is_plain(self) -> bool:
        """Return whether each batch axis, rows, columns and steps are dimensions of arrays."""
        return all(_dimensions(access) == groups for access, groups in self.layouts)

    def vector_length(self, access: TensorAccess, groups: Sequence[Axes], most: int) -> int:
        """Return how many elements of the last group lie together and aligned, from each multiple.

        Args:
            access: An operand.
            groups: Its groups of axes.
            most: A power of two; the result is one, too.
        """
        length, inside = 1, []
        for axis in reversed(groups[-1]):
            if access.strides[axis] != length:
                break
            length *= self.facts.axes[axis].extent
            inside.append(axis)
        others = (step for axis, step in enumerate(access.strides) if axis not in inside)
        return gcd(most, length, *others)

    def extent(self, axes: Axes) -> int:
        """Return the number of points along some axes."""
        return prod(self.facts.axes[axis].extent for axis in axes)


def find_matrix_product(facts: BlockFacts) -> MatrixProduct | None:
    """Return the product of matrices that a block computes; None for other sums."""
    if not facts.is_affine or not facts.is_reduction or len(facts.reads) != 2:
        return None
    spatial = [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]
    steps = tuple(index for index, axis in enumerate(facts.axes) if axis.is_reduction)
    last = _contiguous_axis(facts.write, facts)
    rights = [read for read in facts.reads if last is not None and read.strides[last]]
    if len(rights) != 1:
        return None
    (right,) = rights
    left = next(read for read in facts.reads if read is not right)
    rows = tuple(index for index in spatial if left.strides[index] and not right.strides[index])
    columns = tuple(index for index in spatial if right.strides[index] and not left.strides[index])
    batch = tuple(index for index in spatial if left.strides[index] and right.strides[index])
    is_complete = len(rows) + len(columns) + len(batch) == len(spatial)
    if not rows or not is_complete or not all(r.strides[s] for r in facts.reads for s in steps):
        return None
    return MatrixProduct(facts, left, right, batch, rows, columns, steps)


def _contiguous_axis(access: TensorAccess, facts: BlockFacts) -> int | None:
    """Return the axis along which an access moves the least; None if it does not move."""
    moving = [
        index for index, axis in enumerate(facts.axes) if access.strides[index] and axis.extent > 1
    ]
    return min(moving, key=lambda index: abs(access.strides[index]), default=None)


def _dimensions(access: TensorAccess) -> tuple[Axes, ...] | None:
    """Return the axis of each dimension; None if some index is not an axis itself."""
    dimensions: list[Axes] = []
    for row in access.coefficients:
        terms = [(axis, factor) for axis, factor in enumerate(row) if factor]
        if len(terms) != 1 or terms[0][1] != 1:
            return None
        dimensions.append((terms[0][0],))
    return tuple(dimensions)


def make_plain(draft: SketchBuilder, product: MatrixProduct) -> MatrixProduct:
    """Let a block read and write matrices, which new blocks copy; return its plain product."""
    batch = [(axis,) for axis in product.batch]
    groups = (*batch, product.rows, product.columns, product.steps)
    group_axes(draft, product.facts, product.layouts, groups)
    plain = find_matrix_product(draft.block_facts()[product.facts.name])
    assert plain is not None, "a product of matrices remains one"
    return plain


def group_axes(
    draft: SketchBuilder,
    facts: BlockFacts,
    layouts: Sequence[tuple[TensorAccess, Sequence[Axes]]],
    groups: Sequence[Axes],
) -> None:
    """Fuse groups of a block's axes, and those of the arrays it accesses, which new blocks copy.

    Args:
        facts: The facts of the block.
        layouts: The arrays to copy, each with the groups that are its dimensions.
        groups: The groups that are the new iterators.
    """
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    iterators = _iterators(draft, facts)
    for access, dimensions in layouts:
        copy = schedule.reindex(block, access.buffer)
        used = [axis for axis in iterators if access.strides[axis]]
        text = _fused(facts, used, dimensions)
        side = "read" if access is facts.write else "write"
        schedule.transform_layout(copy, (side, 0), text)
        schedule.transform_block_layout(copy, text)
    schedule.transform_block_layout(block, _fused(facts, iterators, groups))


def fuse_axes(draft: SketchBuilder, epilogue: str, product: MatrixProduct) -> MatrixProduct:
    """Let an elementwise consumer run over batch, rows and columns of a product in between.

    The product writes a matrix; return it.
    """
    facts, name = draft.block_facts()[epilogue], product.facts.name
    spatial = [axis for axis, of in enumerate(product.facts.axes) if not of.is_reduction]
    by_name = {of.name: axis for of, axis in zip(facts.axes, spatial, strict=True)}
    axes = [by_name[iter_var.var.name] for iter_var in block_of(draft, epilogue).iter_vars]
    groups = (*((axis,) for axis in product.batch), product.rows, product.columns)
    schedule = draft.schedule
    block = schedule.get_block(epilogue)
    schedule.transform_block_layout(block, _fused(product.facts, axes, groups))
    # Second, so that the epilogue reads the matrix by its new iterators alone.
    text = _fused(product.facts, spatial, groups)
    schedule.transform_layout(schedule.get_block(name), ("write", 0), text)
    fused = find_matrix_product(draft.block_facts()[name])
    assert fused is not None, "a product of matrices remains one"
    return fused


def _iterators(draft: SketchBuilder, facts: BlockFacts) -> list[int]:
    """Return the axes of the block's iterators, in their order."""
    by_name = {axis.name: index for index, axis in enumerate(facts.axes)}
    return [by_name[i.var.name] for i in block_of(draft, facts.name).iter_vars]


def block_of(draft: SketchBuilder, name: str) -> Block:
    """Return a block of the current program."""
    realize = draft.schedule.get(draft.schedule.get_block(name))
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    return realize.block


def _fused(facts: BlockFacts, axes: Sequence[int], groups: Sequence[Axes]) -> str:
    """Return the map from axes to groups of them, each of which is fused in its order."""
    indices = []
    for first, *others in groups:
        index = f"a{first}"
        for axis in others:
            index = f"({index}) * {facts.axes[axis].extent} + a{axis}"
        indices.append(index)
    return f"lambda {', '.join(f'a{axis}' for axis in axes)}: ({', '.join(indices)})"


def pad(
    draft: SketchBuilder, product: MatrixProduct, multiples: tuple[int, int, int]
) -> MatrixProduct:
    """Pad a plain product with zeros; return the padded one.

    New blocks copy the operands, and all but the padding of the result.

    Args:
        multiples: The numbers that divide the new extents of rows, columns and steps.
    """
    axes = (*product.rows, *product.columns, *product.steps)
    by_axis = dict(zip(axes, multiples, strict=True))
    padding = [by_axis.get(axis, 1) for axis in _iterators(draft, product.facts)]
    name = product.facts.name
    draft.schedule.pad_einsum(draft.schedule.get_block(name), padding)
    padded = find_matrix_product(draft.block_facts()[name])
    assert padded is not None, "a padded product is a product"
    return padded


def inline_copies(draft: SketchBuilder, product: MatrixProduct) -> dict[str, str]:
    """Inline the copies before a product, but for the last ones, into one another.

    Returns:
        The blocks that copy operands for the product alone, by the operand's name.
    """
    last_copies = {}
    for read in (product.left, product.right):
        last = _copy_for(draft, product.facts.name, read.buffer)
        if last is None:
            continue
        last_copies[read.buffer] = last
        while (
            source := _copy_for(draft, last, draft.block_facts()[last].reads[0].buffer)
        ) is not None:
            draft.schedule.compute_inline(draft.schedule.get_block(source))
    return last_copies


def inline_results(
    draft: SketchBuilder, name: str, before: set[str], epilogue: str | None
) -> str | None:
    """Inline the copies after a product into one another, or into its epilogue.

    Args:
        name: The block of the product.
        before: The blocks of the program before these copies were added.
        epilogue: The block into which they may be inlined.

    Returns:
        The block that reads the sums: a copy, or the epilogue.
    """
    while (readers := draft.consumers(name)) and readers[0] not in before:
        following = draft.consumers(readers[0])
        if len(following) != 1 or (following[0] in before and following[0] != epilogue):
            return readers[0]
        draft.schedule.compute_inline(draft.schedule.get_block(readers[0]))
    return epilogue


def _copy_for(draft: SketchBuilder, consumer: str, buffer: str) -> str | None:
    """Return the block that copies to a buffer for one consumer alone, perhaps under conditions."""
    for name, facts in draft.block_facts().items():
        if facts.write.buffer == buffer and name not in draft.scheduled:
            is_copy = not facts.is_reduction and not facts.flops_per_point and len(facts.reads) == 1
            is_only = draft.is_intermediate(name) and draft.consumers(name) == [consumer]
            return name if is_copy and is_only else None
    return None
