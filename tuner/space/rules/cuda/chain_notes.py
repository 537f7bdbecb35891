"""The tables of chains of products on tensor cores, for the filter and the cost model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.target.tensor_cores import MmaInstruction
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.chain_rows import PADDING_BYTES, operands, row_axis
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, REGISTER, THREAD
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.chain_tile import ChainArray, ChainOperand, ChainTile, TableExtent

ONE = TableExtent(1)


@dataclass(frozen=True)
class ProductPiece:
    """What a block of threads computes of a product at once.

    Attributes:
        warp_columns: The columns of which a warp computes the sums.
        columns: The columns of the right operand in shared memory.
        steps: The steps of the sum of the right operand in shared memory.
        is_transposed: Whether the rows of the right operand run along the sum.
    """

    warp_columns: TableExtent
    columns: TableExtent
    steps: TableExtent
    is_transposed: bool


@dataclass(frozen=True)
class ChainNote:
    """The decisions of a chain, and how its blocks share them.

    Attributes:
        draft: The draft.
        chain: The chain.
        instruction: The instruction that computes tiles of the last product.
        epilogues: The names of the blocks that read sums from registers, by that of the product.
        levels: The columns with the warps and tiles along the rows and the columns of the last
            product, and with the steps of its sum; see `SketchBuilder.note`.
        pieces: What is computed of each product at once, by its name.
        stages: The pieces of a right operand in shared memory.
        output_bytes: The bytes of the output in global memory.
        result_padding: The elements of padding of rows of results.
    """

    draft: SketchBuilder
    chain: ProductChain
    instruction: MmaInstruction
    epilogues: Mapping[str, str]
    levels: Mapping[int, Mapping[int, int]]
    pieces: Mapping[str, ProductPiece]
    stages: int
    output_bytes: int
    result_padding: int

    @property
    def fused(self) -> dict[str, str]:
        """Return those of `epilogues` that are blocks of the chain."""
        names = {block.name for block in self.chain.blocks}
        return {product: name for product, name in self.epilogues.items() if name in names}

    @property
    def _warp_rows(self) -> TableExtent:
        columns = self.levels[row_axis(self.chain)]
        return TableExtent(self.instruction.shape[0], (columns[REGISTER],))

    @property
    def _rows(self) -> TableExtent:
        warp = self._warp_rows
        return replace(warp, columns=(*warp.columns, self.levels[row_axis(self.chain)][THREAD]))

    def whole_rows(self) -> None:
        """Record a chain whose blocks compute whole rows, one after another."""
        chain, numbers = self.chain, self._numbers()
        results: dict[str, ChainArray] = {}
        for block in chain.blocks:
            for read in block.reads:
                if read.buffer in results:
                    results[read.buffer] = replace(
                        results[read.buffer], last=numbers[block.name] + 1
                    )
            if block is not chain.sink and block.name not in self.fused:
                array = self._result(block, None)
                number = numbers[block.name] + 1
                results[block.write.buffer] = replace(array, first=number, last=number)
        row_blocks = tuple(block for block in chain.blocks if block.name not in chain.tiled)
        spans = {block.name: (numbers[block.name],) * 2 for block in chain.products}
        self._note(row_blocks, results, spans, None)

    def online(self, *, keeps_weights: bool, is_causal: bool) -> None:
        """Record a chain with one softmax, whose blocks compute pieces of the keys in registers.

        Args:
            keeps_weights: Whether weights stay in registers, too, and not in shared memory.
            is_causal: Whether pieces later than all rows of a block of threads are skipped.
        """
        chain = self.chain
        keys = self.pieces[chain.products[0].name].columns
        *scaled, maximum, powers, total, weights = chain.blocks[1:-1]
        # Weights are divided by the total after the last piece.
        undivided = replace(
            weights,
            reads=tuple(read for read in weights.reads if read.buffer != total.write.buffer),
            operations=replace(weights.operations, div=0),
        )
        # Both operands arrive first; if one piece has all keys, the first one is not used after the
        # scores. A loop over pieces uses it again.
        results = {}
        if not keeps_weights:
            results[weights.write.buffer] = replace(self._result(weights, keys), first=1, last=2)
        row_blocks = (*scaled, maximum, powers, total, undivided)
        first, sink = chain.products
        spans = {first.name: (0, 0), sink.name: (0, 2)}
        self._note(row_blocks, results, spans, keys, is_causal=is_causal)

    def _numbers(self) -> dict[str, int]:
        """Return the first steps of blocks in program order; a fused one has its product's."""
        products = {block: product for product, block in self.fused.items()}
        numbers: dict[str, int] = {}
        for block in self.chain.blocks:
            product = products.get(block.name)
            numbers[block.name] = 2 * len(numbers) if product is None else numbers[product]
        return numbers

    def _result(self, block: BlockFacts, keys: TableExtent | None) -> ChainArray:
        """Return the results of a block for all rows of a block of threads."""
        items = block.write.item_bytes
        if block.is_reduction and block.name not in self.chain.tiled:
            return ChainArray(ONE, self._rows, items)
        column = block.axes[-2 if block.name in self.chain.tiled else -1]
        length = keys or TableExtent(column.extent)
        return ChainArray(self._rows, length, items, self.result_padding * items)

    def _note(
        self,
        row_blocks: tuple[BlockFacts, ...],
        results: Mapping[str, ChainArray],
        spans: Mapping[str, tuple[int, int]],
        keys: TableExtent | None,
        *,
        is_causal: bool = False,
    ) -> None:
        """Record the chain.

        Args:
            row_blocks: The blocks between the products.
            results: The results in shared memory, by their buffers.
            spans: The first and the last step of each product's operands.
            keys: The columns of the first product in a piece.
            is_causal: Whether pieces later than all rows of a block of threads are skipped.
        """
        draft, chain, sink = self.draft, self.chain, self.chain.sink
        row, column, step = row_axis(chain), len(sink.axes) - 2, len(sink.axes) - 1
        tile = ChainTile(
            self.instruction.name,
            (row, column, step),
            tuple(sink.axes[axis].extent for axis in (row, column, step)),
            (self.output_bytes,),
            self._rows,
            self._warp_rows,
            tuple(chain.products),
            tuple(self.pieces[block.name].warp_columns for block in chain.products),
            row_blocks,
            frozenset(results),
            tuple(
                operand
                for block in chain.products
                for operand in self._operands(block, *spans[block.name])
            ),
            tuple(results.values()),
            keys,
            is_causal,
        )
        rest = {row: BLOCK, column: REGISTER, step: CHUNK}
        draft.note(sink, self.levels, rest, tensor_tile=tile)

    def _operands(self, block: BlockFacts, first: int, last: int) -> list[ChainOperand]:
        """Return the operands of a product that a block of threads copies."""
        copied = []
        piece, row = self.pieces[block.name], row_axis(self.chain)
        columns, steps = (axis.extent for axis in block.axes[-2:])
        for read in operands(self.draft, block):
            if read.strides[row]:
                shape = self._rows, TableExtent(steps)
                elements = replace(self._rows, factor=self._rows.factor * steps)
            else:
                shape = piece.steps, piece.columns
                shape = shape[::-1] if piece.is_transposed else shape
                elements = TableExtent(columns * steps)
            stages = 1 if read.strides[row] else self.stages
            array = ChainArray(*shape, read.item_bytes, PADDING_BYTES, first, last)
            copied.append(ChainOperand(read, array, elements, stages))
        return copied
