"""The kernel of a chain of products on tensor cores, such as attention, for a batch of candidates.

A block of threads computes a tile of rows through all blocks of the chain. Operands are copied to
shared memory, where the results between products stay.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.passes.device.shared_memory import LiveInterval, place_intervals, whole_vectors
from compiler.target.gpus import WARP_SIZE
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.features.cuda.access import KernelAccess
from tuner.space.features.cuda.tensor_kernel import (
    BASE_REGISTERS,
    CHUNK_BYTES,
    MAX_MATRICES,
    SumsAccess,
    TensorKernel,
)
from tuner.space.features.cuda.warps import SECTOR_BYTES, by_distinct_rows, num_wavefronts
from tuner.space.tables.chain_tile import ChainOperand, ChainTile
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats

LOAD_COLUMNS = 16
"""The columns of an operand that one `ldmatrix` loads: two tiles of an instruction."""
LEFT_REGISTERS, RIGHT_REGISTERS = 4, 2
"""Registers of a lane for the operands of one instruction."""
ONLINE_BARRIERS = 1
"""Barriers for each piece of keys, as lowered: after the copies of keys and values have arrived."""
SHARED_WEIGHTS_BARRIERS = 2
"""Further ones if weights pass through shared memory: before and after they are stored."""


class ChainKernel(TensorKernel):
    """The kernel of a chain; its nest is that of the last product."""

    @property
    def chain(self) -> ChainTile:
        """Return the tile of rows."""
        tile = self.tables.nest.tensor_tile
        assert isinstance(tile, ChainTile), "the nest is that of a chain"
        return tile

    @property
    def values(self) -> Ints:
        """Return the table of the sketch."""
        return self._values

    @cached_property
    def rows(self) -> Floats:
        """Return the rows of a block."""
        return self.chain.rows.extents(self._values).astype(np.float64)

    @cached_property
    def passes(self) -> Floats:
        """Return how often the blocks of the chain run, each time for a piece of the keys."""
        return self._whole_passes * self.computed

    @cached_property
    def _whole_passes(self) -> Floats:
        """Return the pieces of the keys."""
        if self.chain.keys is None:
            return np.ones_like(self.threads)
        return self.chain.products[0].axes[-2].extent / self.chain.keys.extents(self._values)

    @cached_property
    def computed(self) -> Floats:
        """Return the share of the pieces that a block computes, on average over all blocks."""
        if not self.chain.is_causal or self.chain.keys is None:
            return np.ones_like(self.threads)
        rows, keys = self.rows.astype(np.int64), self.chain.keys.extents(self._values)
        pieces = by_distinct_rows([rows, keys], self._causal_pieces)
        share: Floats = pieces / (self._whole_passes * self.chain.extents[0] / self.rows)
        return share

    def _causal_pieces(self, columns: list[Ints]) -> Ints:
        """Return the pieces that all blocks of a head compute, by rows and keys of a block."""
        num_rows, num_keys = self.chain.extents[0], self.chain.products[0].axes[-2].extent
        return np.array(
            [
                np.minimum(np.arange(rows - 1, num_rows, rows) // keys + 1, num_keys // keys).sum()
                for rows, keys in np.stack(columns, axis=1).tolist()
            ],
            np.int64,
        )

    @cached_property
    def _warp_tiles(self) -> Floats:
        return self.chain.warp_rows.extents(self._values) / self.tile.instruction.shape[0]

    @cached_property
    def matrix_products(self) -> Floats:
        """Return the instructions of tensor cores of a block."""
        m, n, k = self.tile.instruction.shape
        points = sum(b.axes[-2].extent * b.axes[-1].extent for b in self.chain.products)
        products: Floats = self.rows * points / (m * n * k) * self.computed
        return products

    @cached_property
    def matrix_loads(self) -> Floats:
        """Return the loads of operands from shared memory by the warps of a block.

        A warp loads the operands of its rows again for each group of columns.
        """
        loads = np.zeros_like(self.threads)
        for steps, tiles, columns in self._operand_steps:
            loads = loads + steps * (tiles + np.ceil(columns / LOAD_COLUMNS))
        return loads

    @cached_property
    def load_wavefronts(self) -> Floats:
        """Return the wavefronts of these loads: padded rows hit all banks."""
        wavefronts = np.zeros_like(self.threads)
        for steps, tiles, columns in self._operand_steps:
            of_step = MAX_MATRICES * (tiles + columns / LOAD_COLUMNS)
            wavefronts = wavefronts + steps * of_step
        return wavefronts

    @property
    def _operand_steps(self) -> list[tuple[Floats, Floats, Floats]]:
        """Return, by product, what all warps of a block load from shared memory.

        Returns:
            The steps of the warps, and the tiles of rows and the columns of each.
        """
        m, _, k = self.tile.instruction.shape
        warps_down = self.rows / m / self._warp_tiles * self.computed
        shared = {operand.access.buffer for operand in self.chain.operands} | self.chain.held
        return [
            (
                warps_down * block.axes[-1].extent / k * (block.axes[-2].extent / columns),
                # Weights that stay in registers are not loaded.
                self._warp_tiles * all(read.buffer in shared for read in block.reads),
                columns,
            )
            for block, columns in self._products
        ]

    @property
    def _products(self) -> list[tuple[BlockFacts, Floats]]:
        """Return the products, and the columns of which a warp computes the sums at once."""
        chain = self.chain
        return [
            (block, columns.extents(self._values).astype(np.float64))
            for block, columns in zip(chain.products, chain.warp_columns, strict=True)
        ]

    @property
    def shared_loads(self) -> Floats:
        """Return a lane's loads of operands from shared memory for one step of the last sum."""
        loads: Floats = self.matrix_loads / self.warps / self.steps
        return loads

    @cached_property
    def unrolled(self) -> Floats:
        """Return the instructions of unrolled code: those of one step of the longest product."""
        n = self.tile.instruction.shape[1]
        steps = [
            self._warp_tiles * (1 + columns / n) + columns / LOAD_COLUMNS
            for _, columns in self._products
        ]
        unrolled: Floats = np.maximum.reduce(steps)
        return unrolled

    @cached_property
    def registers(self) -> Floats:
        """Return an estimate of the registers of a thread, without any limit.

        A chain that runs piece by piece holds the sums of the last product in all blocks; in the
        others it holds scores, weights and operands. On twelve such kernels of 96 to 255 registers
        that NVRTC 13.0 compiled for sm_90a, the error was -28 to 5 registers; the only one beyond
        255 spilled. On nine others of 48 to 255, it was -55 to 20; none of them had large spills.
        """
        n = self.tile.instruction.shape[1]
        tiles = self._warp_tiles
        sums, held = [], []
        for _, columns in self._products:
            loaded = LEFT_REGISTERS * tiles + RIGHT_REGISTERS * columns / n
            sums.append(tiles * self.tile.instruction.shape[0] * columns / WARP_SIZE)
            held.append(sums[-1] + loaded)
        if self.chain.keys is not None:
            # Two weights of 16 bits share a register; scores are needed until they are computed.
            weights = sums[0] * (not self.chain.held) / 2
            held[:-1] = [most + sums[-1] + weights for most in held[:-1]]
        registers: Floats = BASE_REGISTERS + np.maximum.reduce(held)
        return registers

    @cached_property
    def shared_bytes(self) -> Floats:
        """Return the shared memory of a block: arrays that are not alive at once may overlap."""
        chain, values = self.chain, self._values
        num_pieces = np.stack([operand.num_pieces(values) for operand in chain.operands])
        # The operands of a product are alive in its loop over pieces, with the sums that it stores.
        of_product = [operand.piece.first for operand in chain.operands]
        loops = [num_pieces[np.equal(of_product, n)].max(axis=0).clip(max=2) for n in of_product]
        sizes = [operand.size_bytes(values) for operand in chain.operands]
        sizes += [array.size_bytes(values) for array in chain.results]
        return by_distinct_rows([*loops, *sizes], self._placed_bytes).astype(np.float64)

    def _placed_bytes(self, columns: list[Ints]) -> Ints:
        chain, count = self.chain, len(self.chain.operands)
        totals = []
        for numbers in np.stack(columns, axis=1).tolist():
            loops, sizes = numbers[:count], numbers[count:]
            alive = [
                LiveInterval(operand.piece.first, operand.piece.last + (pieces > 1))
                for operand, pieces in zip(chain.operands, loops, strict=True)
            ]
            alive += [LiveInterval(array.first, array.last) for array in chain.results]
            offsets = place_intervals(sizes, alive)
            totals.append(whole_vectors(map(sum, zip(offsets, sizes, strict=True))))
        return np.array(totals, np.int64)

    @cached_property
    def accesses(self) -> list[KernelAccess]:
        """Return the stores of the results, and the copies of the operands."""
        write = SumsAccess(self, self.tables.nest.facts.write)
        return [write, *(PieceAccess(self, operand) for operand in self.chain.operands)]

    @property
    def copies(self) -> list[PieceAccess]:
        """Return the copies of the operands."""
        return [access for access in self.accesses if isinstance(access, PieceAccess)]

    @cached_property
    def pieces(self) -> Floats:
        """Return the pieces that a block copies one after another."""
        pieces = [access.num_pieces for access in self.copies if access.stages > 1]
        if self.chain.keys is not None:
            return self.passes  # keys and values arrive together
        return sum(pieces, np.zeros_like(self.threads))

    @cached_property
    def stages(self) -> Ints:
        """Return the pieces of an operand in shared memory at once."""
        return np.full(len(self.threads), max(access.stages for access in self.copies))

    @cached_property
    def barriers(self) -> Floats:
        """Return the barriers that a thread meets."""
        if self.chain.keys is not None:
            of_weights = SHARED_WEIGHTS_BARRIERS if self.chain.held else 0
            return (ONLINE_BARRIERS + of_weights) * self.passes
        return self.pieces + len(self.chain.row_blocks)


class PieceAccess(KernelAccess):
    """An operand that all lanes of a block copy to shared memory, 16 bytes each."""

    def __init__(self, kernel: ChainKernel, operand: ChainOperand) -> None:
        super().__init__(kernel.tables, operand.access, kernel.thread_tile)
        self._operand = operand
        self._values = kernel.values
        self._kernel = kernel
        self.threads = kernel.threads

    @property
    def stages(self) -> int:
        """Return the pieces in shared memory at once."""
        return self._operand.stages

    @cached_property
    def num_pieces(self) -> Floats:
        """Return the pieces that a block copies."""
        return self._operand.num_pieces(self._values) * self._computed

    @property
    def _computed(self) -> Floats:
        """Return the share of the elements that a block computes with: pieces may be skipped."""
        return self._kernel.computed if self.stages > 1 else np.ones_like(self.threads)

    @property
    def piece_bytes(self) -> Floats:
        """Return the bytes of a piece, without padding."""
        return self.block_bytes / self.num_pieces

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the operand in global memory."""
        return self.access.size_bytes

    @cached_property
    def width(self) -> Ints:
        """Return the bytes that a lane copies at once."""
        return np.full(len(self.threads), CHUNK_BYTES, np.int64)

    @cached_property
    def block_bytes(self) -> Floats:
        """Return the bytes that a block copies."""
        elements = self._operand.elements.extents(self._values)
        return elements * self.access.item_bytes * self._computed

    @cached_property
    def requests(self) -> Floats:
        """Return the requests of all warps of a block to global memory."""
        return self.block_bytes / (WARP_SIZE * CHUNK_BYTES)

    @cached_property
    def sectors_per_request(self) -> Ints:
        """Return the sectors that a request touches: rows are multiples of them."""
        return np.full(len(self.threads), WARP_SIZE * CHUNK_BYTES // SECTOR_BYTES, np.int64)

    @cached_property
    def inside(self) -> Floats:
        """Return the share of the copied elements that are no padding: all of them."""
        return np.ones(len(self.threads))

    @cached_property
    def write_wavefronts(self) -> Ints:
        """Return the wavefronts of a request of the first warp that stores a part of a piece."""
        piece = self._operand.piece
        length = piece.length.extents(self._values) * piece.item_bytes
        return by_distinct_rows([length, piece.row_bytes(self._values)], _store_wavefronts)


def _store_wavefronts(columns: list[Ints]) -> Ints:
    length, row_bytes = columns
    offsets = np.arange(WARP_SIZE)[:, None] * CHUNK_BYTES
    addresses = offsets // length * row_bytes + offsets % length
    return num_wavefronts(addresses, np.full(len(length), CHUNK_BYTES))
