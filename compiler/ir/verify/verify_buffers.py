"""The buffers that are visible at a position of a program, and their sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.library_calls import written_by_call
from compiler.ir.core.limits import MAX_BUFFER_BYTES, MAX_EXTENT, MAX_RANK, MAX_TOTAL_BYTES
from compiler.ir.core.nodes import BlockRealize, Buffer, Call, Expr, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.verify.verify_error import VerifyError


class Declarations:
    """The buffers that are declared around a position, with the buffers that views refer to.

    Args:
        symbols: The symbolic variables of the program, of which extents may consist.
    """

    def __init__(self, symbols: Collection[Var]) -> None:
        self._symbols = frozenset(symbols)
        self._buffers: dict[Var, Buffer] = {}
        self._sources: dict[Var, Buffer] = {}  # the buffers that views refer to
        self._bytes = 0

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: forget the buffers that are declared inside when it ends."""
        before = dict(self._buffers)
        yield
        self._buffers = before

    def visible(self) -> dict[Var, Buffer]:
        """Return the buffers that are declared here, by their data."""
        return dict(self._buffers)

    def holds(self, data: Var) -> bool:
        """Return whether a variable is the data of a buffer that is declared here."""
        return data in self._buffers

    def of(self, data: Var) -> Buffer:
        """Return the buffer that is declared here with this storage."""
        return self._buffers[data]

    def declare(self, buffer: Buffer, *, views: Buffer | None = None) -> None:
        """Check and add a buffer; a view takes no memory itself."""
        if buffer.data in self._buffers:
            raise VerifyError(f"buffer {buffer.name} is declared twice", buffer, "duplicate")
        if len(buffer.shape) > MAX_RANK:
            raise VerifyError(
                f"buffer {buffer.name} has {len(buffer.shape)} dimensions: "
                f"expected {MAX_RANK} at most",
                buffer,
                "limit",
            )
        extents = [self.extent(e, f"buffer {buffer.name}", buffer) for e in buffer.shape]
        size = math.prod(extent or 1 for extent in extents) * size_bytes(buffer.dtype)
        if size > MAX_BUFFER_BYTES:
            raise VerifyError(
                f"buffer {buffer.name} has {size} bytes: expected {MAX_BUFFER_BYTES} at most",
                buffer,
                "limit",
            )
        self._bytes += size if views is None else 0
        if self._bytes > MAX_TOTAL_BYTES:
            raise VerifyError(
                f"the buffers have more than {MAX_TOTAL_BYTES} bytes", buffer, "limit"
            )
        self._buffers[buffer.data] = buffer
        if views is not None:
            self._sources[buffer.data] = views

    def use(self, buffer: Buffer, node: object) -> None:
        """Check that a buffer is declared at a node that uses it."""
        if self._buffers.get(buffer.data) != buffer:
            raise VerifyError(f"buffer {buffer.name} is not declared here", node, "undefined")

    def is_view(self, buffer: Buffer) -> bool:
        """Return whether a buffer is a view of another."""
        return buffer.data in self._sources

    def all_names(self, buffer: Buffer) -> Iterator[Buffer]:
        """Yield a buffer, then for a view the buffer that it views, and so on."""
        yield buffer
        while buffer.data in self._sources:
            buffer = self._sources[buffer.data]
            yield buffer

    def extent(self, extent: Expr, subject: str, node: object) -> int | None:
        """Check an extent and return it; None for one that consists of symbolic variables."""
        if not isinstance(extent, IntImm):
            if self._is_symbolic(extent):
                return None
            raise VerifyError(
                f"an extent of {subject} is symbolic: expected a constant", node, "symbolic"
            )
        require_extent(extent.value, subject, node)
        return extent.value

    def _is_symbolic(self, extent: Expr) -> bool:
        nodes = list(walk(extent))
        variables = {node for node in nodes if isinstance(node, Var)}
        is_computed = not any(isinstance(node, Load | Call) for node in nodes)
        return is_computed and bool(variables) and variables <= self._symbols


def stored_buffers(body: Stmt) -> set[Buffer]:
    """Return the buffers that a program stores to, also through views and registered functions."""
    stored: set[Buffer] = set()
    sources: dict[Buffer, Buffer] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, Store):
            stored.add(stmt.buffer)
        elif isinstance(stmt, BlockRealize):
            sources.update((m.buffer, m.source.buffer) for m in stmt.block.match_buffers)
            stored.update(written_by_call(stmt))
    for view in list(stored):
        source = sources.get(view)
        while source is not None:
            stored.add(source)
            source = sources.get(source)
    return stored


def require_extent(extent: int, subject: str, node: object) -> None:
    """Refuse an extent that is out of limits.

    Raises:
        VerifyError: If it is.
    """
    if not 1 <= extent <= MAX_EXTENT:
        message = f"an extent of {subject} is {extent}: expected 1 to {MAX_EXTENT}"
        raise VerifyError(message, node, "limit")
