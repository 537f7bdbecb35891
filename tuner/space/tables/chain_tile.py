"""Chains of products on tensor cores, each in one kernel: what a block of threads holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.tables.knob import Ints
from tuner.space.tables.tensor_tile import TensorTile

_BANK_BYTES = 128


@dataclass(frozen=True)
class TableExtent:
    """A number: a constant, times and divided by the numbers in some columns of a table."""

    factor: int
    columns: tuple[int, ...] = ()
    divisors: tuple[int, ...] = ()

    def extents(self, values: Ints) -> Ints:
        """Return the number in each row of a table."""
        numerator = self.factor * np.prod(values[:, list(self.columns)], axis=1)
        extents: Ints = numerator // np.prod(values[:, list(self.divisors)], axis=1)
        return extents


@dataclass(frozen=True)
class ChainArray:
    """An array in the shared memory of a block of threads.

    Attributes:
        rows: Its rows.
        length: The elements of a row.
        item_bytes: The bytes of an element.
        padding_bytes: What a row has beyond a multiple of the banks; None if rows are not padded.
        first: The first step of the chain at which it is alive. A product has two steps: it
            computes, and stores its sums.
        last: The last one.
    """

    rows: TableExtent
    length: TableExtent
    item_bytes: int
    padding_bytes: int | None = None
    first: int = 0
    last: int = 0

    def row_bytes(self, values: Ints) -> Ints:
        """Return the distance between rows."""
        size = self.length.extents(values) * self.item_bytes
        if self.padding_bytes is None:
            return size
        padded: Ints = size + (self.padding_bytes - size) % _BANK_BYTES
        return padded

    def size_bytes(self, values: Ints) -> Ints:
        """Return its size."""
        size: Ints = self.rows.extents(values) * self.row_bytes(values)
        return size


@dataclass(frozen=True)
class ChainOperand:
    """An operand in global memory, which a block copies piece by piece.

    Attributes:
        access: Its access by a product.
        piece: A piece in shared memory.
        elements: The elements of all pieces of a block.
        stages: The pieces in shared memory at once, if there are as many.
    """

    access: TensorAccess
    piece: ChainArray
    elements: TableExtent
    stages: int

    def num_pieces(self, values: Ints) -> Ints:
        """Return the pieces that a block copies."""
        of_piece = self.piece.rows.extents(values) * self.piece.length.extents(values)
        pieces: Ints = self.elements.extents(values) // of_piece
        return pieces

    def size_bytes(self, values: Ints) -> Ints:
        """Return the bytes of the pieces in shared memory at once."""
        stages = np.minimum(self.stages, self.num_pieces(values))
        size: Ints = stages * self.piece.size_bytes(values)
        return size


@dataclass(frozen=True)
class ChainTile(TensorTile):
    """The tile of rows of a chain that a block of threads computes; the base is the last product.

    Attributes:
        rows: The rows of a block.
        warp_rows: The rows of a warp.
        products: The products.
        warp_columns: By product, the columns of which a warp computes the sums at once.
        row_blocks: The blocks between the products.
        held: The buffers of results that stay in shared memory.
        operands: The operands in global memory, in the order of the products.
        results: The results in shared memory.
        keys: The columns of the first product in a piece, if the blocks of the chain compute piece
            by piece; None if each computes whole rows.
        is_causal: Whether pieces of keys later than all rows of a block of threads are skipped.
    """

    rows: TableExtent
    warp_rows: TableExtent
    products: tuple[BlockFacts, ...]
    warp_columns: tuple[TableExtent, ...]
    row_blocks: tuple[BlockFacts, ...]
    held: frozenset[str]
    operands: tuple[ChainOperand, ...]
    results: tuple[ChainArray, ...]
    keys: TableExtent | None
    is_causal: bool
