"""Calls of registered functions, as statements of a program.

    with T.sblock("scaled"):
        T.reads(X[0:64])
        T.writes(Y[0:64])
        T.call_packed("my.scale", X.data, Y.data, 2)

The block around a call declares what the call reads and writes. The functions are in
`compiler.executor.functions.registry`; a program only names one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.executor.functions.registry import EXTERN, PACKED
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Call,
    Evaluate,
    Expr,
    IntImm,
    MatchBuffer,
    Range,
    Stmt,
    StringImm,
    Var,
)
from compiler.ir.core.visit import walk_stmts


@dataclass(frozen=True, slots=True)
class RegisteredCall:
    """A call of a registered function.

    Attributes:
        form: `PACKED`, of a Python function or a library, or `EXTERN`, of a function in C.
        function: The name of the function.
        args: What it passes: the storage of buffers, numbers, texts.
    """

    form: str
    function: str
    args: tuple[Expr, ...]

    @property
    def handles(self) -> tuple[Var, ...]:
        """Return the storage of the buffers that it passes."""
        return tuple(arg for arg in self.args if isinstance(arg, Var) and arg.dtype == "handle")


def library_call(stmt: Stmt) -> RegisteredCall | None:
    """Return the call that a statement is; None if it is none."""
    match stmt:
        case Evaluate(Call("call_packed", (StringImm(function), *args), _)):
            return RegisteredCall(PACKED, function, tuple(args))
        case Evaluate(Call("call_extern", (StringImm(_), StringImm(function), *args), _)):
            return RegisteredCall(EXTERN, function, tuple(args))
        case _:
            return None


def library_calls(stmt: Stmt) -> list[RegisteredCall]:
    """Return the calls of registered functions below a statement, in order."""
    calls = map(library_call, walk_stmts(stmt))
    return [call for call in calls if call is not None]


def library_functions(stmt: Stmt) -> tuple[str, ...]:
    """Return the names of the registered functions that a statement calls, each once."""
    return tuple(dict.fromkeys(call.function for call in library_calls(stmt)))


def whole(buffer: Buffer) -> BufferRegion:
    """Return the region of a whole buffer."""
    ranges = (Range(IntImm(0, dtype_of(extent)), extent) for extent in buffer.shape)
    return BufferRegion(buffer, tuple(ranges))


def is_whole(region: BufferRegion) -> bool:
    """Return whether a region of constant extents is the whole buffer."""
    return all(
        isinstance(r.minimum, IntImm)
        and isinstance(r.extent, IntImm)
        and isinstance(size, IntImm)
        and (r.minimum.value, r.extent.value) == (0, size.value)
        for r, size in zip(region.region, region.buffer.shape, strict=True)
    )


def passed_regions(block: Block, call: RegisteredCall) -> Iterator[tuple[Var, BufferRegion | None]]:
    """Yield the storage that the call of a block passes, and the region of a buffer that it is.

    The region is None if neither a declaration nor a view of the block says which buffer it is.
    """
    views: dict[Var, MatchBuffer] = {match.buffer.data: match for match in block.match_buffers}
    declared = {r.buffer.data: r.buffer for r in (*block.reads, *block.writes)}
    for handle in call.handles:
        if handle in views:
            yield handle, views[handle].source
        else:
            yield handle, whole(declared[handle]) if handle in declared else None


def passed_buffers(block: Block, call: RegisteredCall) -> list[tuple[Buffer, bool] | Expr]:
    """Return what the call of a block passes, in order.

    A buffer or view comes with whether the block declares that it is written; anything else, also
    the storage of a buffer that the block does not declare, comes as it is.
    """
    views = {match.buffer.data: match.buffer for match in block.match_buffers}
    sources = dict(passed_regions(block, call))
    written = {region.buffer for region in block.writes}
    passed: list[tuple[Buffer, bool] | Expr] = []
    for arg in call.args:
        region = sources.get(arg) if isinstance(arg, Var) else None
        if region is None:
            passed.append(arg)
        else:
            assert isinstance(arg, Var)
            passed.append((views.get(arg, region.buffer), region.buffer in written))
    return passed


def written_by_call(realize: BlockRealize) -> tuple[Buffer, ...]:
    """Return the buffers that the call in a block writes; none if its body is no such call."""
    block = realize.block
    call = library_call(block.body)
    if call is None:
        return ()
    passed = {region.buffer for _, region in passed_regions(block, call) if region is not None}
    return tuple(r.buffer for r in block.writes if r.buffer in passed)
