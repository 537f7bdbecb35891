"""The methods of `Schedule` for reductions, padding and tensor intrinsics.

`primitives.blocks` documents each.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.nodes import (
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.primitives.blocks.blockize import blockize, blockize_blocks
from compiler.schedule.primitives.blocks.call_library import call_library
from compiler.schedule.primitives.blocks.decompose_padding import (
    can_decompose_padding,
    decompose_padding,
)
from compiler.schedule.primitives.blocks.fuse_reduction_epilogue import fuse_reduction_epilogue
from compiler.schedule.primitives.blocks.online_softmax import online_softmax
from compiler.schedule.primitives.blocks.pad_einsum import pad_einsum
from compiler.schedule.primitives.blocks.rfactor import rfactor
from compiler.schedule.primitives.blocks.rolling_buffer import rolling_buffer
from compiler.schedule.primitives.blocks.tensorize import tensorize
from compiler.schedule.primitives.blocks.winograd import winograd
from compiler.schedule.trace.handle import BlockRV, LoopRV


class TensorMethods(Queries):
    """Primitives that divide reductions, paddings and blocks, or replace them by intrinsics."""

    @primitive()
    def blockize(
        self, target: LoopRV | Sequence[BlockRV | str], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """Make a block of a loop, or of several blocks; see `primitives.blocks.blockize`.

        Args:
            target: The loop, or the blocks in program order.
            preserve_unit_iters: Whether iterators still name loops of one iteration.

        Returns:
            The outer block.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle: LoopRV | list[BlockRV]
        if isinstance(target, LoopRV):
            func, var = self._loop("blockize", target)
            handle = target
            func, outer = blockize(func, var, preserve_unit_iters=preserve_unit_iters)
        else:
            handle, func, names = self._neighbours("blockize", target)
            func, outer = blockize_blocks(func, names, preserve_unit_iters=preserve_unit_iters)
        self._commit("blockize", func)
        new = self._new_block(func, outer)
        arguments = {"target": handle, "preserve_unit_iters": preserve_unit_iters}
        self._record("blockize", arguments, [new])
        return new

    def _neighbours(
        self, primitive: str, blocks: Sequence[BlockRV | str]
    ) -> tuple[list[BlockRV], PrimFunc, list[str]]:
        """Return the handles, the function and the names of blocks of one function."""
        located = [self._find(primitive, block) for block in blocks]
        if not located:
            raise self._fail(primitive, "no blocks are given")
        if any(func is not located[0][1] for _, func, _ in located):
            raise self._fail(primitive, "the blocks are in different functions")
        return [handle for handle, _, _ in located], located[0][1], [name for _, _, name in located]

    @primitive()
    def tensorize(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        tensor_intrin: str,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Replace a block or a loop by a tensor intrinsic; see `primitives.blocks.tensorize`.

        Args:
            tensor_intrin: The name under which the intrinsic was registered.
            preserve_unit_iters: Whether iterators still name loops of one iteration.

        Raises:
            ScheduleError: If a requirement does not hold, or the intrinsic does not exist.
        """
        handle: BlockRV | LoopRV
        target: Var | str
        if isinstance(block_or_loop, LoopRV):
            handle = block_or_loop
            func, target = self._loop("tensorize", block_or_loop)
        else:
            handle, func, target = self._find("tensorize", block_or_loop)
        try:
            intrin = TensorIntrin.get(tensor_intrin)
        except TensorIntrinError as error:
            raise self._fail("tensorize", str(error), func, "not_found") from None
        self._commit(
            "tensorize", tensorize(func, target, intrin, preserve_unit_iters=preserve_unit_iters)
        )
        arguments = {
            "block_or_loop": handle,
            "tensor_intrin": tensor_intrin,
            "preserve_unit_iters": preserve_unit_iters,
        }
        self._record("tensorize", arguments)

    @primitive()
    def call_library(self, block: BlockRV | str, function: str) -> None:
        """Replace a product or convolution by a call; see `primitives.blocks.call_library`.

        Args:
            block: The block. Its loops are gone; its handle refers to the block with the call.
            function: `blas.matmul` of NumPy, `torch.matmul` or `torch.conv2d` of PyTorch.

        Raises:
            ScheduleError: If a requirement does not hold, or there is no such function.
        """
        handle, func, name = self._find("call_library", block)
        self._commit("call_library", call_library(func, name, function))
        self._record("call_library", {"block": handle, "function": function})

    @primitive()
    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Fill in the constant of a padding first; see `primitives.blocks.decompose_padding`.

        Returns:
            The block that fills in the constant.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("decompose_padding", block)
        var = self._loop_in("decompose_padding", func, loop)
        func, constant = decompose_padding(func, name, var)
        self._commit("decompose_padding", func)
        new = self._new_block(func, constant)
        self._record("decompose_padding", {"block": handle, "loop": loop}, [new])
        return new

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Return whether `decompose_padding` would be accepted; nothing is changed or recorded."""
        _, func, name = self._find("can_decompose_padding", block)
        var = self._loop_in("can_decompose_padding", func, loop)
        return can_decompose_padding(func, name, var)

    @primitive()
    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Pad iterators to multiples of some sizes; see `primitives.blocks.pad_einsum`.

        Args:
            padding: For each iterator, the number that divides its new extent.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("pad_einsum", block)
        multiples = tuple(self._value("pad_einsum", multiple) for multiple in padding)
        self._commit("pad_einsum", pad_einsum(func, name, multiples))
        self._record("pad_einsum", {"block": handle, "padding": multiples})

    @primitive()
    def fuse_reduction_epilogue(
        self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str
    ) -> None:
        """Start a sum from a later term; see `primitives.blocks.fuse_reduction_epilogue`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        blocks = [reduction_block, epilogue_block]
        handles, func, names = self._neighbours("fuse_reduction_epilogue", blocks)
        self._commit("fuse_reduction_epilogue", fuse_reduction_epilogue(func, *names))
        arguments = {"reduction_block": handles[0], "epilogue_block": handles[1]}
        self._record("fuse_reduction_epilogue", arguments)
        self._kill("fuse_reduction_epilogue", [handles[1]])

    @primitive("RFactor")
    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce for each iteration of a loop, then over it; see `primitives.blocks.rfactor`.

        Args:
            factor_axis: The position of the loop among the dimensions of the partial results.

        Returns:
            The block that computes the partial results.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        func, var = self._loop("rfactor", loop)
        func, partial = rfactor(func, var, factor_axis)
        self._commit("rfactor", func)
        new = self._new_block(func, partial)
        self._record("rfactor", {"loop": loop, "factor_axis": factor_axis}, [new])
        return new

    @primitive(num_outputs=8)
    def online_softmax(self, block: BlockRV | str, loop: LoopRV) -> list[BlockRV]:
        """Compute a softmax with the sum that it weights; see `primitives.blocks.online_softmax`.

        From now on, the block's handle refers to the update.

        Args:
            block: The weighted sum.
            loop: Its loop over blocks of the summed axis.

        Returns:
            The new blocks: the starts of the sum, the maximum and the total; the maximum of a block
            of a row, the factor of earlier sums, the total of a block of a row, the scaling of the
            sum, and its division.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("online_softmax", block)
        var = self._loop_in("online_softmax", func, loop)
        func, update, names = online_softmax(func, name, var)
        self._commit("online_softmax", func)
        self._rename_block(func, name, update)
        new = [self._new_block(func, name) for name in names]
        self._record("online_softmax", {"block": handle, "loop": loop}, new)
        return new

    @primitive(num_outputs=9)
    def winograd(self, block: BlockRV | str, tile: int) -> list[BlockRV]:
        """Convolve windows of 3 x 3 by tiles; see `primitives.blocks.winograd`.

        Args:
            block: The convolution. From now on, its handle refers to the block that writes the
                output.
            tile: The number of outputs of a tile in each dimension: 2 or 4.

        Returns:
            The new blocks: the image and the weights in another layout, the two steps of each
            transform and the products, in program order.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("winograd", block)
        extent = self._value("winograd", tile)
        func, names = winograd(func, name, extent)
        self._commit("winograd", func)
        new = [self._new_block(func, name) for name in names]
        self._record("winograd", {"block": handle, "tile": extent}, new)
        return new

    @primitive()
    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int) -> None:
        """Keep only one tile of a buffer, as a ring; see `primitives.blocks.rolling_buffer`.

        Args:
            write_buffer_index: The number of the write among those of the block.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("rolling_buffer", block)
        index = self._value("rolling_buffer", write_buffer_index)
        self._commit("rolling_buffer", rolling_buffer(func, name, index))
        arguments = {"block": handle, "write_buffer_index": index}
        self._record("rolling_buffer", arguments)
