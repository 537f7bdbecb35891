"""Convolutions as products of matrices by threads (implicit GEMM).

    C[n, f, y, x] += X[n, c, y + r, x + q] * W[f, c, r, q]    ->    C[f, p] += W[f, k] * X[k, p]

Pixels `p = (n, y, x)` are columns and windows `k = (c, r, q)` steps. So small maps of 7 x 7 fill
the lanes of a warp, and few channels fill chunks. No matrix is written to memory: the copies to
shared memory gather its elements, with zeros for the padding of images and for that to whole parts
of a thread, and the epilogue stores the pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.operand_copies import VECTOR, WIDE
from tuner.space.rules.cuda.product_tiles import ProductTile, find_tile
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.matrix_products import (
    find_matrix_product,
    fuse_axes,
    inline_copies,
    inline_results,
    make_plain,
    pad,
)
from tuner.space.rules.sketch_builder import SketchBuilder

MULTIPLES = (WIDE, WIDE, WIDE)
"""Rows, columns and steps are padded to whole parts of a thread, and to whole unrolled steps."""


@dataclass(frozen=True)
class WindowProduct:
    """A convolution that has become a product of matrices.

    Attributes:
        tile: The axes of the product.
        epilogue: The block that stores the sums.
        vector_lengths: By operand, how many elements lie together in memory.
        has_vectors: Whether vectors of sums lie together in memory.
        source_bytes: The bytes of the arrays of the convolution: the output, then the operands in
            the order of the product's reads.
    """

    tile: ProductTile
    epilogue: str
    vector_lengths: Mapping[str, int]
    has_vectors: bool
    source_bytes: tuple[int, ...]


def form_windows(draft: SketchBuilder, facts: BlockFacts) -> WindowProduct | None:
    """Make a sum of products in other layouts a product of matrices, if it is one.

    Raises:
        ScheduleError: If its arrays can't be gathered so.
    """
    product = find_matrix_product(facts)
    if product is None or product.is_plain:
        return None
    groups = (product.rows, product.columns, product.steps)
    if any(product.extent(group) < WIDE for group in groups):
        return None
    left, right, written = (
        product.vector_length(access, layout, VECTOR) for access, layout in product.layouts
    )
    name, before = facts.name, set(draft.block_facts())
    epilogue = elementwise_consumer(draft, facts)
    if epilogue is not None:
        fuse_axes(draft, epilogue, product)
    plain = pad(draft, make_plain(draft, product), MULTIPLES)
    epilogue = inline_results(draft, name, before, epilogue)
    inline_copies(draft, plain)
    tile = find_tile(draft.block_facts()[name])
    if tile is None or epilogue is None:
        return None
    lengths = {plain.left.buffer: left, plain.right.buffer: right}
    sizes = {
        plain.left.buffer: product.left.size_bytes,
        plain.right.buffer: product.right.size_bytes,
    }
    read_bytes = (sizes[read.buffer] for read in tile.facts.reads)
    source_bytes = (facts.write.size_bytes, *read_bytes)
    return WindowProduct(tile, epilogue, lengths, written == VECTOR, source_bytes)
