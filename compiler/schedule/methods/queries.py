"""The methods of `Schedule` that find blocks and loops."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.core.nodes import (
    BlockRealize,
    For,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.methods.primitive import primitive, undone_if_refused
from compiler.schedule.state import State
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS
from compiler.schedule.tree.tree import (
    block_path,
    blocks,
    child_blocks,
    loop_path,
    loops_on,
    realize_at,
    scope_path,
)


class Queries(State):
    """Queries leave the program unchanged; traces record them, because they return handles."""

    @primitive("GetSBlock", is_pure=True)
    def get_sblock(self, name: str, func_name: str | None = None) -> BlockRV:
        """Return the block with a name.

        Args:
            func_name: The function to look in; None for the current one.

        Raises:
            ScheduleError: If the block or function does not exist.
            ValueError: If no function is named, and none is the current one.
        """
        func = self._function("get_sblock", func_name)
        block_path(func, name, refusal("get_sblock", func))
        block = self._new_block(func, name)
        arguments = {"name": name}
        # The name of a single function is not recorded, so that the trace fits any equal program.
        if func.name != self._default_function:
            arguments["func_name"] = func.name
        self._record("get_sblock", arguments, [block])
        return block

    @undone_if_refused(INSTRUCTION_KINDS["get_sblock"])
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """Return the block with a name; TVM's older name of `get_sblock`."""
        return self.get_sblock(name, func_name)

    @primitive(is_pure=True)
    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """Return the loops around a block within its scope, the outermost first.

        Raises:
            ScheduleError: If the block does not exist.
        """
        handle, func, name = self._find("get_loops", block)
        loops = [self._new_loop(func, loop.var) for loop in _loops_around(func, name)]
        self._record("get_loops", {"block": handle}, loops)
        return loops

    def get_loop(self, name: str, block: BlockRV | str | None = None) -> LoopRV:
        """Return the loop with a name; a trace records it as one of the loops around a block.

        Args:
            name: The name of the loop's variable.
            block: A block in the loop, if several loops have the name.

        Raises:
            ScheduleError: If no loop has the name, or several have.
        """
        if block is None:
            func, within = self._function("get_loop", None), None
        else:
            block, func, within = self._find("get_loop", block)
        matches: dict[Var, tuple[str, int]] = {}
        loop_names: list[str] = []
        for realize in blocks(func):
            title = realize.block.name
            for depth, loop in enumerate(_loops_around(func, title)):
                loop_names.append(loop.var.name)
                if loop.var.name == name and within in (None, title):
                    matches.setdefault(loop.var, (title, depth))
        if not matches:
            names = ", ".join(dict.fromkeys(loop_names)) or "none"
            raise self._fail(
                "get_loop", f"there is no loop {name!r}; the loops are: {names}", func, "not_found"
            )
        if len(matches) > 1:
            titles = [title for title, _ in matches.values()]
            raise self._fail(
                "get_loop",
                f"{len(matches)} loops are called {name!r}, around the blocks {', '.join(titles)}: "
                f'say which, get_loop("{name}", "{titles[0]}")',
                func,
            )
        ((title, depth),) = matches.values()
        handle = self.get_sblock(title, func.name) if block is None else block
        return self.get_loops(handle)[depth]

    @primitive(is_pure=True, positional=("block_or_loop",))
    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """Return the blocks directly below a block or a loop, in program order.

        Raises:
            ScheduleError: If the block or loop does not exist.
        """
        name = "get_child_blocks"
        if isinstance(block_or_loop, LoopRV):
            handle: BlockRV | LoopRV = block_or_loop
            func, var = self._loop(name, block_or_loop)
            stmt = loop_path(func, var, refusal(name, func))[-1]
        else:
            handle, func, block = self._find(name, block_or_loop)
            stmt = block_path(func, block, refusal(name, func))[-1]
        handles = [self._new_block(func, child.block.name) for child in child_blocks(stmt)]
        self._record(name, {"block_or_loop": handle}, handles)
        return handles

    @primitive(is_pure=True)
    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks of the same scope that write a block's inputs, in program order.

        Raises:
            ScheduleError: If the block does not exist.
        """
        return self._related("get_producers", block)

    @primitive(is_pure=True)
    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks of the same scope that read a block's output, in program order.

        Raises:
            ScheduleError: If the block does not exist.
        """
        return self._related("get_consumers", block)

    @primitive(is_pure=True)
    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """Return the blocks in a block that write buffers from outside of their scope.

        Raises:
            ScheduleError: If the block does not exist.
        """
        handle, func, name = self._find("get_output_blocks", scope_block)
        scope = realize_at(block_path(func, name, refusal("get_output_blocks", func)))
        handles = [self._new_block(func, output) for output in _outputs(scope)]
        self._record("get_output_blocks", {"scope_block": handle}, handles)
        return handles

    def _related(self, primitive: str, block: BlockRV | str) -> list[BlockRV]:
        handle, func, name = self._find(primitive, block)
        scope, site = scope_of_block(func, name, refusal(primitive, func))
        related = scope.producers(site) if primitive == "get_producers" else scope.consumers(site)
        handles = [self._new_block(func, other.name) for other in related]
        self._record(primitive, {"block": handle}, handles)
        return handles

    def _loop_in(self, primitive: str, func: PrimFunc, loop: LoopRV) -> Var:
        owner, var = self._loop(primitive, loop)
        if owner is not func:
            raise self._fail(primitive, f"loop {var.name} is in another function than the block")
        return var

    def _block_or_loop(
        self, primitive: str, at: BlockRV | LoopRV | str
    ) -> tuple[BlockRV | LoopRV, PrimFunc, Var | str]:
        if isinstance(at, LoopRV):
            return (at, *self._loop(primitive, at))
        return self._find(primitive, at)

    def _find(self, primitive: str, block: BlockRV | str) -> tuple[BlockRV, PrimFunc, str]:
        """Return the handle, the function and the name of a block, given by handle or name."""
        if isinstance(block, str):
            block_names = {realize.block.name for realize in blocks(self.func)}
            if block not in block_names:
                names = ", ".join(sorted(block_names))
                raise self._fail(
                    primitive, f'there is no block "{block}"; there are: {names}', code="not_found"
                )
            block = self.get_sblock(block)
        func, name = self._block(primitive, block)
        return block, func, name


def _loops_around(func: PrimFunc, name: str) -> list[For]:
    path = block_path(func, name, refusal("get_loops", func))
    scope = scope_path(path) if len(path) > 1 else path
    return list(loops_on(path[len(scope) :]))


def _outputs(scope: BlockRealize) -> Iterator[str]:
    """Yield the names of the blocks in a scope, at any depth, that write buffers from outside."""
    local_buffers = scope.block.alloc_buffers
    for child in child_blocks(scope):
        if any(region.buffer not in local_buffers for region in child.block.writes):
            yield child.block.name
        yield from _outputs(child)
