"""The methods of `Schedule` that change blocks; `primitives.blocks` documents each."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.primitives.blocks.compute_at import compute_at
from compiler.schedule.primitives.blocks.compute_inline import compute_inline
from compiler.schedule.primitives.blocks.decompose_reduction import decompose_reduction
from compiler.schedule.primitives.blocks.reorder_block_iter_var import reorder_block_iter_var
from compiler.schedule.primitives.blocks.reverse_compute_at import reverse_compute_at
from compiler.schedule.primitives.blocks.reverse_compute_inline import reverse_compute_inline
from compiler.schedule.primitives.loops.annotate import annotate, unannotate
from compiler.schedule.rewrite.notes import Note, NoteError, annotation_value, checked_note
from compiler.schedule.trace.handle import BlockRV, LoopRV


class BlockMethods(Queries):
    """Primitives on blocks. A block is given by its handle or by its name."""

    @primitive()
    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a block under a loop of its consumers; see `primitives.blocks.compute_at`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        self._compute_at_location("compute_at", block, loop, preserve_unit_loops, index)

    @primitive()
    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a block under its producers' loop; see `primitives.blocks.reverse_compute_at`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        self._compute_at_location("reverse_compute_at", block, loop, preserve_unit_loops, index)

    def _compute_at_location(
        self, primitive: str, block: BlockRV | str, loop: LoopRV, keep: bool, index: int
    ) -> None:
        handle, func, name = self._find(primitive, block)
        is_reverse = primitive == "reverse_compute_at"
        self._require_alive(primitive, loop)
        at = self._special_locations.get(loop)
        match at:
            case "inline":
                self._commit(
                    primitive,
                    (reverse_compute_inline if is_reverse else compute_inline)(func, name),
                )
            case "root":
                pass
            case None:
                var = self._loop_in(primitive, func, loop)
                apply = reverse_compute_at if is_reverse else compute_at
                self._commit(
                    primitive, apply(func, name, var, preserve_unit_loops=keep, index=index)
                )
        arguments: dict[str, object] = {"block": handle, "loop": loop}
        self._record(primitive, {**arguments, "preserve_unit_loops": keep, "index": index})
        if at == "inline":
            self._kill(primitive, [handle])

    @primitive()
    def compute_inline(self, block: BlockRV | str) -> None:
        """Inline a block into its consumers; see `primitives.blocks.compute_inline`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("compute_inline", block)
        self._commit("compute_inline", compute_inline(func, name))
        self._record("compute_inline", {"block": handle})
        self._kill("compute_inline", [handle])

    @primitive()
    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Inline a block into its producer; see `primitives.blocks.reverse_compute_inline`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("reverse_compute_inline", block)
        self._commit("reverse_compute_inline", reverse_compute_inline(func, name))
        self._record("reverse_compute_inline", {"block": handle})
        self._kill("reverse_compute_inline", [handle])

    @primitive(inputs=("new_order",))
    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """Reorder a block's iterators; see `primitives.blocks.reorder_block_iter_var`.

        Args:
            new_order: The old position of each iterator.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("reorder_block_iter_var", block)
        order = [self._value("reorder_block_iter_var", position) for position in new_order]
        self._commit("reorder_block_iter_var", reorder_block_iter_var(func, name, order))
        self._record("reorder_block_iter_var", {"block": handle, "new_order": tuple(order)})

    @primitive()
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Initialise a reduction before a loop; see `primitives.blocks.decompose_reduction`.

        From now on, the block's handle refers to the update.

        Returns:
            The block that initialises.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, name = self._find("decompose_reduction", block)
        var = self._loop_in("decompose_reduction", func, loop)
        func, init, update = decompose_reduction(func, name, var)
        self._commit("decompose_reduction", func)
        self._rename_block(func, name, update)
        new = self._new_block(func, init)
        self._record("decompose_reduction", {"block": handle, "loop": loop}, [new])
        return new

    @primitive()
    def annotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str, ann_val: Note) -> None:
        """Annotate a block or a loop for passes; see `primitives.loops.annotate`.

        Args:
            ann_val: Numbers, strings and handles of values, in lists and mappings.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, at = self._block_or_loop("annotate", block_or_loop)
        try:
            note = checked_note(ann_val)
        except NoteError as error:
            raise self._fail("annotate", str(error), func) from None
        value = annotation_value(note, lambda handle: self._value("annotate", handle))
        self._commit("annotate", annotate(func, at, ann_key, value))
        arguments = {"block_or_loop": handle, "ann_key": ann_key, "ann_val": note}
        self._record("annotate", arguments)

    @primitive()
    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Remove an annotation from a block or a loop; see `primitives.loops.annotate`.

        Raises:
            ScheduleError: If a requirement does not hold.
        """
        handle, func, at = self._block_or_loop("unannotate", block_or_loop)
        self._commit("unannotate", unannotate(func, at, ann_key))
        self._record("unannotate", {"block_or_loop": handle, "ann_key": ann_key})
