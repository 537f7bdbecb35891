"""Convolutions as products of matrices in the tile registers of a CPU: pixels are gathered."""

from __future__ import annotations

from math import prod

from compiler.backends.cpu.codegen.emitters.matrix_tiles import ROW_BYTES
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.product_roles import Product, SlidingProduct, find_product
from tuner.space.rules.cpu.copy_tiles import schedule_copy
from tuner.space.rules.cpu.step_groups import pad_steps
from tuner.space.rules.cpu.tile_registers.matrix_tiles import tile_forks
from tuner.space.rules.cpu.tile_registers.tile_product import GATHERED
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.matrix_products import (
    Axes,
    MatrixProduct,
    find_matrix_product,
    fuse_axes,
    group_axes,
    inline_copies,
    inline_results,
    make_plain,
)
from tuner.space.rules.sketch_builder import SketchBuilder


def pixel_forks(
    draft: SketchBuilder, facts: BlockFacts, window: SlidingProduct
) -> list[SketchBuilder]:
    """Return drafts of a convolution whose windows are pixels: its matrix of pixels is multiplied.

    Raises:
        ScheduleError: If it can't be.
    """
    fork = _fork(draft, window)
    matrices = find_matrix_product(facts)
    product = None if matrices is None else _as_matrices(fork, matrices)
    return [] if product is None else tile_forks(fork, *product)


def gathered_forks(
    draft: SketchBuilder, facts: BlockFacts, window: SlidingProduct
) -> list[SketchBuilder]:
    """Return drafts of a convolution of few channels: the elements of its windows are gathered.

    Contiguous rows of windows are padded with zeros to `2 ** n` elements, which are copied at once:
    those of 7 to 8. Each window of 3 x 7 x 7 then has 168 elements.

    Raises:
        ScheduleError: If it can't be.
    """
    fork, name, image = _fork(draft, window), facts.name, window.product.left.read
    run = _contiguous_steps(facts, image)
    if not run:
        return []
    axes = [(axis,) for axis in range(len(facts.axes)) if axis not in run]
    layouts = [
        (read, [*((axis,) for (axis,) in axes if read.strides[axis]), run]) for read in facts.reads
    ]
    group_axes(fork, facts, layouts, [*axes, run])
    length = prod(facts.axes[axis].extent for axis in run)
    size = 1 << (length - 1).bit_length()
    fork.schedule.pad_einsum(fork.schedule.get_block(name), [*(1 for _ in axes), size])
    matrices = find_matrix_product(fork.block_facts()[name])
    product = None if matrices is None else _as_matrices(fork, matrices)
    if matrices is None or product is None:
        return []
    plain, roles = pad_steps(fork, *product, ROW_BYTES // image.item_bytes)
    padded = find_matrix_product(plain)
    assert padded is not None, "a padded product is a product"
    inline_copies(fork, padded)
    if matrices.right.strides[axes.index((window.product.row,))]:
        roles = Product(roles.column, roles.row, roles.step, roles.right, roles.left)
    return tile_forks(fork, plain, roles, run=size)


def _contiguous_steps(facts: BlockFacts, image: TensorAccess) -> Axes:
    """Return the axes of the sum along which an image is contiguous, the last one innermost."""
    run: Axes = ()
    length = 1
    steps = [i for i, axis in enumerate(facts.axes) if axis.is_reduction and axis.extent > 1]
    while (inner := next((i for i in steps if image.strides[i] == length), None)) is not None:
        run = (inner, *run)
        steps.remove(inner)
        length *= facts.axes[inner].extent
    return run


def _fork(draft: SketchBuilder, window: SlidingProduct) -> SketchBuilder:
    fork = draft.fork(GATHERED, GATHERED)
    for maker in fork.block_facts().values():
        if maker.write.buffer == window.product.left.read.buffer and maker.is_conditional:
            schedule_copy(fork, maker)
    return fork


def _as_matrices(
    draft: SketchBuilder, matrices: MatrixProduct
) -> tuple[BlockFacts, Product] | None:
    """Make a convolution a product of matrices in memory; return its facts and its roles."""
    facts, before = matrices.facts, set(draft.block_facts())
    epilogue = elementwise_consumer(draft, facts)
    if epilogue is not None:
        fuse_axes(draft, epilogue, matrices)
    plain = make_plain(draft, matrices)
    inline_results(draft, facts.name, before, epilogue)
    inline_copies(draft, plain)
    facts = draft.block_facts()[facts.name]
    product = find_product(facts)
    return None if product is None else (facts, product)
