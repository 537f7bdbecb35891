"""The methods of `Schedule` that fit blocks to tensor intrinsics, and layouts to loops.

They only ask, or apply other primitives, which the trace records.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import TRUE, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute
from compiler.schedule.error import refusal
from compiler.schedule.index.access import facts_of
from compiler.schedule.index.index_map import IndexMap
from compiler.schedule.index.suggest_index_map import suggest_index_map
from compiler.schedule.intrinsics.iterator_mapping import map_iterators
from compiler.schedule.intrinsics.loop_mapping import MappedLoops, described_block, map_loops
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
from compiler.schedule.methods.block_methods import BlockMethods
from compiler.schedule.methods.loop_methods import LoopMethods
from compiler.schedule.methods.storage_arguments import BufferLike, region_of_buffer
from compiler.schedule.methods.tensor_methods import TensorMethods
from compiler.schedule.rewrite.cache import region_buffer
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.schedule.tree.tree import block_path, loops_on, realize_at, scope_path


@dataclass(frozen=True, slots=True)
class TensorizeInfo:
    """The loops that run what the loops of an intrinsic's description run.

    Attributes:
        loops: For each loop of the description, the outermost first, the one of the program.
        block_iter_paddings: What `pad_einsum` takes so that the description's extents divide those
            of the block; None if they do.
    """

    loops: tuple[LoopRV, ...]
    block_iter_paddings: tuple[int, ...] | None


class IntrinsicMethods(LoopMethods, BlockMethods, TensorMethods):
    """Questions before `tensorize`, and the tiling that it needs."""

    def get_tensorize_loop_mapping(
        self, block: BlockRV | str, tensor_intrin: str | PrimFunc, allow_padding: bool = False
    ) -> TensorizeInfo | None:
        """Return the loops that fit those of an intrinsic; see `intrinsics.loop_mapping`.

        Args:
            tensor_intrin: The name of the intrinsic, or its description.
            allow_padding: Whether extents may be padded to multiples of the description's.

        Returns:
            The loops; None if the block has none that fit.

        Raises:
            ScheduleError: If the block or the intrinsic does not exist.
        """
        name = "get_tensorize_loop_mapping"
        handle, mapped = self._mapped_loops(name, block, tensor_intrin, allow_padding)
        if mapped is None:
            return None
        return TensorizeInfo(self._loops_called(handle, mapped.loops), mapped.paddings)

    def get_auto_tensorize_mapping_info(
        self, block: BlockRV | str, tensor_intrin: str | PrimFunc
    ) -> IndexMap | None:
        """Return the map that gives a block an intrinsic's iterators; None if there is none.

        `transform_block_layout` takes it; see `intrinsics.iterator_mapping`.

        Args:
            tensor_intrin: The name of the intrinsic, or its description.

        Raises:
            ScheduleError: If the block or the intrinsic does not exist.
        """
        name = "get_auto_tensorize_mapping_info"
        _, func, block_name = self._find(name, block)
        described, _ = described_block(self._description(name, func, tensor_intrin))
        path = block_path(func, block_name, refusal(name, func))
        return map_iterators(realize_at(path).block, described.block)

    def tile_with_tensor_intrin(
        self, block: BlockRV | str, tensor_intrin: str, allow_padding: bool = False
    ) -> LoopRV | None:
        """Split the loops that fit an intrinsic by its extents, and move the parts inside.

        `tensorize` takes the loop that is returned. What was padded is inlined where it can be.

        Args:
            tensor_intrin: The name of the intrinsic.
            allow_padding: Whether extents may be padded to multiples of the description's.

        Returns:
            The outermost of the inner loops; None, and nothing is changed, if no loops fit.

        Raises:
            ScheduleError: If the block or the intrinsic does not exist, or a primitive is refused.
        """
        trial = self.copy()
        tiled = trial._tile("tile_with_tensor_intrin", block, tensor_intrin, allow_padding)
        if tiled is not None:
            self._adopt(trial)
        return tiled

    def _tile(
        self, primitive: str, block: BlockRV | str, tensor_intrin: str, allow_padding: bool
    ) -> LoopRV | None:
        handle, mapped = self._mapped_loops(primitive, block, tensor_intrin, allow_padding)
        if mapped is None:
            return None
        if mapped.paddings is not None:
            self._pad_inlined(handle, mapped.paddings)
        loops = self._loops_called(handle, mapped.loops)
        inner = [
            self.split(loop, [None, extent])[1]
            for loop, extent in zip(loops, mapped.extents, strict=True)
        ]
        inner_vars = {self._loops[loop] for loop in inner}
        around = self.get_loops(handle)
        first = min(n for n, loop in enumerate(around) if self._loops[loop] in inner_vars)
        outer = [loop for loop in around[first:] if self._loops[loop] not in inner_vars]
        self.reorder(*outer, *inner)
        return inner[0]

    def _pad_inlined(self, block: BlockRV, paddings: tuple[int, ...]) -> None:
        """Pad a block; compute padded inputs from their sources, and results without copies."""
        producers, consumers = self._neighbour_names(block)
        self.pad_einsum(block, paddings)
        for copy in self.get_producers(block):
            sources = self.get_producers(copy)
            if self._blocks[copy] not in producers and sources:
                self.compute_inline(sources[0])
        for copy in self.get_consumers(block):
            if self._blocks[copy] not in consumers and self.get_consumers(copy):
                self.compute_inline(copy)

    def _neighbour_names(self, block: BlockRV) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        producers = {self._blocks[other] for other in self.get_producers(block)}
        return producers, {self._blocks[other] for other in self.get_consumers(block)}

    def is_output_block(self, block: BlockRV | str) -> bool:
        """Return whether a block writes a buffer from outside of its scope.

        Raises:
            ScheduleError: If the block does not exist.
        """
        _, func, name = self._find("is_output_block", block)
        path = block_path(func, name, refusal("is_output_block", func))
        local_buffers = realize_at(scope_path(path)).block.alloc_buffers
        return any(r.buffer not in local_buffers for r in realize_at(path).block.writes)

    def suggest_layout(self, block: BlockRV | str, buffer: BufferLike) -> IndexMap | None:
        """Return the layout in which a block reads a buffer one element after the other.

        `transform_layout` takes it; see `index.suggest_index_map`.

        Args:
            buffer: The buffer: `("read", 0)`, its name, or the buffer.

        Returns:
            The map; None if the loops around the block do not read the buffer exactly once.

        Raises:
            ScheduleError: If the block does not exist, or does not access the buffer.
        """
        _, func, name = self._find("suggest_layout", block)
        path = block_path(func, name, refusal("suggest_layout", func))
        realize, loops = realize_at(path), loops_on(path)
        mode, number = region_of_buffer("suggest_layout", func, name, buffer)
        regions = realize.block.reads if mode == "read" else realize.block.writes
        accessed = region_buffer(regions, number, mode, realize, refusal("suggest_layout", func))
        shape = [size.value for size in accessed.shape if isinstance(size, IntImm)]
        indices = {access.indices for access in facts_of(realize.block).accesses(accessed)}
        is_guarded = realize.predicate != TRUE
        if len(indices) != 1 or len(shape) != len(accessed.shape) or is_guarded:
            return None
        values = {
            iterator.var: value
            for iterator, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        }
        extents = {loop.var: extent_or_unknown(loop.extent) for loop in loops}
        at = [substitute(index, values) for index in indices.pop()]
        return suggest_index_map(shape, at, extents)

    def _mapped_loops(
        self,
        primitive: str,
        block: BlockRV | str,
        tensor_intrin: str | PrimFunc,
        allow_padding: bool,
    ) -> tuple[BlockRV, MappedLoops | None]:
        handle, func, name = self._find(primitive, block)
        desc = self._description(primitive, func, tensor_intrin)
        return handle, map_loops(func, name, desc, allow_padding=allow_padding)

    def _description(
        self, primitive: str, func: PrimFunc, tensor_intrin: str | PrimFunc
    ) -> PrimFunc:
        if isinstance(tensor_intrin, PrimFunc):
            return tensor_intrin
        try:
            return TensorIntrin.get(tensor_intrin).desc
        except TensorIntrinError as error:
            raise self._fail(primitive, str(error), func, "not_found") from None

    def _loops_called(self, block: BlockRV, variables: tuple[Var, ...]) -> tuple[LoopRV, ...]:
        """Return handles of loops around a block."""
        handles = {self._loops[loop][1]: loop for loop in self.get_loops(block)}
        return tuple(handles[var] for var in variables)
