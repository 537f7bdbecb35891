"""Compute the transpose of a product, if vectors of its columns would be mostly empty."""

from __future__ import annotations

from compiler import te
from compiler.target.cpu import CpuTarget
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.product_roles import Product, find_product
from tuner.space.rules.cpu.padded_tiles import MAX_WASTE, vector_sizes
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder

TRANSPOSED = "transposed"
"""The name of sketches of transposed products."""


def is_narrow(facts: BlockFacts, product: Product, cpu: CpuTarget) -> bool:
    """Return whether vectors fit the rows of a product better than its columns.

    So they do if only tiles of one vector fit the columns, such as 49 of them: with one vector, a
    tile has two instructions for each multiply-add, the load of a row's element included.

    Cores that split vectors multiply halves at twice the rate, so that few columns cost little:
    333 x 12 x 96 takes 0.7 of the time of its transpose (one core of a Zen 4).
    """
    if cpu.pipelines.parts > 1:
        return False
    lanes = max(1, cpu.vector_bits // (8 * facts.write.item_bytes))
    rows, columns = (facts.axes[axis].extent for axis in (product.row, product.column))
    size, *others = vector_sizes(columns, lanes)
    waste = -(-columns // size) * size / columns
    is_single = size == lanes < columns and not others
    return (waste > MAX_WASTE or is_single) and -(-rows // lanes) * lanes / rows < waste


def transpose_product(
    draft: SketchBuilder, facts: BlockFacts, product: Product
) -> tuple[BlockFacts, Product, str] | None:
    """Let a block write its transposed output, which a later block transposes.

        C[i, j] += A[i, k] * B[k, j]    ->    T[j, i] += A[i, k] * B[k, j]
                                              C[i, j] = T[j, i]

    Returns:
        The facts of the block, its product with rows and columns exchanged, and the name of the
        block that reads its output; None if its axes are not the dimensions of its output.
    """
    spatial = [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]
    rows = facts.write.coefficients
    if len(rows) != len(spatial) or not all(
        facts.axes[axis].extent == 1 or row == tuple(int(a == axis) for a in range(len(row)))
        for axis, row in zip(spatial, rows, strict=True)
    ):
        return None
    schedule = draft.schedule
    epilogue = epilogue_of(draft, facts, "global")
    block = schedule.get_block(facts.name)
    dims = [spatial.index(axis) for axis in (product.row, product.column)]

    def exchange(pair: tuple[int, ...], *i: te.Value) -> tuple[te.Value, ...]:
        order = list(range(len(i)))
        order[pair[0]], order[pair[1]] = pair[1], pair[0]
        return tuple(i[index] for index in order)

    schedule.transform_layout(block, ("write", 0), lambda *i: exchange(tuple(dims), *i))
    schedule.transform_block_layout(epilogue, lambda *i: exchange(tuple(dims), *i))
    schedule.transform_block_layout(block, lambda *i: exchange((product.row, product.column), *i))
    new_facts = draft.block_facts()[facts.name]
    new_product = find_product(new_facts)
    if new_product is None:
        return None
    return new_facts, new_product, draft.block_name(epilogue)
