"""Find the operands of a matrix product, in any layout and with any batch axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tuner.space.analysis.block_facts import BlockFacts, TensorAccess

MIN_STEPS = 8
"""A shorter sum ends before a register tile pays for its loads and stores. Chosen."""


@dataclass(frozen=True)
class Operand:
    """An operand of a product: its read, and the dimensions of the axes that a panel has.

    Attributes:
        across: The dimension of the axis that only this operand and the output have.
        along: The dimension of the axis that is summed over.
    """

    read: TensorAccess
    across: int
    along: int


@dataclass(frozen=True)
class Product:
    """A sum `out[..., i, j] += left[..., i, k] * right[..., k, j]`, its axes by their numbers.

    The output is contiguous along `column`. Other axes are the batch, whose loops are outside.
    """

    row: int
    column: int
    step: int
    left: Operand
    right: Operand

    @property
    def tiled(self) -> tuple[int, int, int]:
        """The axes of a panel."""
        return self.row, self.column, self.step


@dataclass(frozen=True)
class SlidingProduct:
    """A convolution: a product of lines of pixels and channels, summed over a window, too.

    Attributes:
        product: The pixels of a line are rows, output channels columns, and input channels steps.
            Indices of the left operand may be sums of a multiple of `row` and another axis.
        axes: The other axes that are summed over.
        pixels: The axes of the pixels, the row of the product last.
    """

    product: Product
    axes: tuple[int, ...]
    pixels: tuple[int, ...]

    @property
    def line(self) -> int | None:
        """Return the axis of the lines of an image; None if there is one."""
        return self.pixels[-2] if len(self.pixels) > 1 else None

    def num_pixels(self, facts: BlockFacts) -> int:
        """Return the number of pixels of the output."""
        return prod(facts.axes[axis].extent for axis in self.pixels)

    def is_pointwise(self, facts: BlockFacts) -> bool:
        """Return whether each window is one pixel of the image."""
        return all(facts.axes[axis].extent == 1 for axis in self.axes)


def find_product(facts: BlockFacts) -> Product | None:
    """Return the roles in a block; None if it is not a product of two matrices."""
    axes = facts.axes
    steps = [i for i, a in enumerate(axes) if a.is_reduction and a.extent > 1]
    columns = [i for i, a in enumerate(axes) if not a.is_reduction and facts.write.strides[i] == 1]
    is_simple = facts.is_affine and not facts.is_conditional and facts.is_multiply_add
    if not is_simple or len(facts.reads) != 2 or len(steps) != 1 or not columns:
        return None
    (step,), column = steps, columns[-1]
    if axes[step].extent < MIN_STEPS or axes[column].extent == 1:
        return None
    for left, right in (facts.reads, facts.reads[::-1]):
        if left.strides[column] or not right.strides[column]:
            continue
        rows = [
            i
            for i, a in enumerate(axes)
            if not a.is_reduction and a.extent > 1 and left.strides[i] and not right.strides[i]
        ]
        if not rows:
            return None
        row = rows[-1]
        operands = _operand(left, row, step), _operand(right, column, step)
        if operands[0] is None or operands[1] is None:
            return None
        return Product(row, column, step, operands[0], operands[1])
    return None


def find_window_product(facts: BlockFacts) -> SlidingProduct | None:
    """Return the roles in a block; None if it is not a convolution of one group."""
    is_simple = facts.is_affine and not facts.is_conditional and facts.is_multiply_add
    if not is_simple or len(facts.reads) != 2:
        return None
    spatial = [i for i, a in enumerate(facts.axes) if not a.is_reduction and a.extent > 1]
    for image, weights in (facts.reads, facts.reads[::-1]):
        columns = [i for i in spatial if weights.strides[i] and not image.strides[i]]
        pixels = [i for i in spatial if image.strides[i] and not weights.strides[i]]
        channel = _channel(facts, image, weights)
        is_complete = len(columns) == 1 and len(columns) + len(pixels) == len(spatial)
        if not is_complete or not pixels or channel is None:
            continue
        slides = any(sum(map(bool, row)) > 1 for row in image.coefficients)
        right = _operand(weights, columns[0], channel)
        across = [dim for dim, row in enumerate(image.coefficients) if row[pixels[-1]]]
        along = _dimension(image, channel)
        if right is None or along is None or len(across) != 1 or not (slides or len(pixels) > 1):
            continue
        left = Operand(image, across[0], along)
        product = Product(pixels[-1], columns[0], channel, left, right)
        axes = tuple(i for i, a in enumerate(facts.axes) if a.is_reduction and i != channel)
        return SlidingProduct(product, axes, tuple(pixels))
    return None


def _channel(facts: BlockFacts, image: TensorAccess, weights: TensorAccess) -> int | None:
    """Return the longest axis summed over that is alone in a dimension of both operands."""
    channels = [
        i
        for i, axis in enumerate(facts.axes)
        if axis.is_reduction
        and axis.extent > 1
        and all(_dimension(read, i) is not None for read in (image, weights))
    ]
    return max(channels, key=lambda i: facts.axes[i].extent, default=None)


def _operand(read: TensorAccess, across: int, along: int) -> Operand | None:
    dims = _dimension(read, across), _dimension(read, along)
    if dims[0] is None or dims[1] is None:
        return None
    return Operand(read, dims[0], dims[1])


def _dimension(read: TensorAccess, axis: int) -> int | None:
    """Return the dimension whose index is an axis, if no other dimension depends on it."""
    dims = [number for number, row in enumerate(read.coefficients) if row[axis]]
    if len(dims) != 1:
        return None
    row = read.coefficients[dims[0]]
    return dims[0] if row[axis] == 1 and sum(map(abs, row)) == 1 else None
