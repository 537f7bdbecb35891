"""Groups of steps of a sum, as the CPU's instructions for dot products take them."""

from __future__ import annotations

from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup, dot_group
from compiler.ir.analysis.small_integers import small_buffers
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.product_roles import Product, find_product
from tuner.space.rules.sketch_builder import SketchBuilder


def step_group(
    draft: SketchBuilder, facts: BlockFacts, left: TensorAccess, right: TensorAccess
) -> DotGroup:
    """Return the steps of a sum of products that the CPU multiplies and adds at once."""
    dtypes, func = draft.dtypes(), draft.schedule.func
    small = {buffer.name for buffer in small_buffers(func.body, func.buffers)}
    are_small = left.buffer in small, right.buffer in small
    types = (dtypes[left.buffer], dtypes[right.buffer], dtypes[facts.write.buffer])
    return dot_group(draft.cpu, *types, are_small)


def pad_steps(
    draft: SketchBuilder, facts: BlockFacts, product: Product, group: int
) -> tuple[BlockFacts, Product]:
    """Pad the sum of a product with zeros to whole groups; return the facts of what it is then.

    The operands are padded in blocks of their own: `inline_producer` moves that into their panels.
    """
    if facts.axes[product.step].extent % group == 0:
        return facts, product
    sizes = [group if axis == product.step else 1 for axis in range(len(facts.axes))]
    draft.schedule.pad_einsum(draft.schedule.get_block(facts.name), sizes)
    padded_facts = draft.block_facts()[facts.name]
    padded = find_product(padded_facts)
    assert padded is not None, "padding keeps the indices of a product"
    return padded_facts, padded


def inline_producer(draft: SketchBuilder, buffer: str) -> None:
    """Compute an operand, such as a padded one, in the copy that reads it."""
    for maker, facts in draft.block_facts().items():
        if facts.write.buffer == buffer:
            draft.schedule.compute_inline(draft.schedule.get_block(maker))
