"""Find the operands of a matrix product, in any layout and with any batch axes."""

from __future__ import annotations

from dataclasses import dataclass

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
