"""Several views of one memory: `C = T.Buffer((4, 4), "int32", data=X)` beside other buffers on `X`.

While a function is parsed, each view is a buffer of its own. At its end all accesses become ones of
a single buffer of the memory, so that whatever reads a program sees which of them meet:

    X = T.allocate([64], "uint8")                X = T.allocate([64], "uint8")
    F = T.Buffer((4, 4), "float32", data=X)
    I = T.Buffer((16,), "int32", data=X)    ->
    F[0, i] = x                                  X[i * 4:i * 4 + 4] = T.reinterpret("uint8x4", x)
    y = I[k]                                     y = T.reinterpret("int32", X[k * 4:k * 4 + 4])

The elements of allocated memory are the narrowest of all views. A parameter keeps its elements.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Expr,
    IntImm,
    Load,
    Ramp,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, map_stmt, walk
from compiler.ir.text.print_expr import show_expr
from compiler.script.context import Context, MemoryView
from compiler.script.error import ScriptError
from compiler.script.extents import same_type

_Node = TypeVar("_Node")


def add_view(context: Context, buffer: Buffer, memory: Buffer, origin: ast.AST) -> None:
    """Note that a buffer is a view of the memory of another one.

    Raises:
        ScriptError: If it reaches beyond the memory, or its layout is not known.
    """
    around = context.views.get(memory.data)
    memory = memory if around is None else around.memory
    offset = 0 if buffer.elem_offset is None else buffer.elem_offset
    if isinstance(offset, IntImm):
        offset = offset.value
    is_known = (
        not (buffer.strides or memory.strides)
        and memory.elem_offset is None
        and (around is None or around.buffer.elem_offset is None)
        and all(isinstance(extent, IntImm) for extent in (*buffer.shape, *memory.shape))
    )
    if not is_known or not isinstance(offset, int):
        shape = ", ".join(map(show_expr, memory.shape))
        raise context.error(
            f"{buffer.name} is a view of {memory.name}, of {memory.dtype} and shape ({shape}): "
            "of several views, each has constant extents and a constant offset, and no strides",
            origin,
            code="unsupported",
        )
    if buffer.scope != memory.scope:
        reason = f"{buffer.name} is in {buffer.scope}, and its memory {memory.name} in "
        raise context.error(reason + memory.scope, origin, code="type")
    end = (offset + _length(buffer)) * size_bytes(buffer.dtype)
    room = _length(memory) * size_bytes(memory.dtype)
    if offset < 0 or end > room:
        raise context.error(
            f"{buffer.name} has {_length(buffer)} element(s) up to byte {end}, and {memory.name} "
            f"{_length(memory)} of {room} bytes",
            origin,
            code="rank",
        )
    context.views[buffer.data] = MemoryView(buffer, memory, offset, origin)


def join_views(context: Context, func: PrimFunc) -> PrimFunc:
    """Return a function in which each memory is one buffer.

    Raises:
        ScriptError: If an access can't be expressed so.
    """
    views = [view for view in context.views.values() if _is_view(context, view, func)]
    if not views:
        return func
    by_memory: dict[Buffer, list[MemoryView]] = {}
    for view in views:
        held = context.memories.get(view.memory.data, view.memory)
        by_memory.setdefault(held, []).append(view)
    aliases: dict[Var, _Alias] = {}
    for held, views in by_memory.items():
        base = held if held in func.buffers else _base(held, views)
        if base is not held:
            views.append(MemoryView(held, held, 0, views[0].origin))
        for view in views:
            _require_elements(context, view, base)
            aliases[view.buffer.data] = _Alias(view.buffer, base, view.offset, view.origin)
    body = _Joiner(context, aliases).stmt(func.body)
    assert isinstance(body, BlockRealize), "the root stays"
    return replace(func, body=body)


def _is_view(context: Context, view: MemoryView, func: PrimFunc) -> bool:
    """Return whether a buffer is not just the first name of memory, which nothing accesses."""
    if view.buffer.data not in context.memories:
        return True
    return any(
        isinstance(node, Load | Store) and node.buffer == view.buffer for node in walk(func.body)
    )


def _base(held: Buffer, views: list[MemoryView]) -> Buffer:
    """Return the buffer of allocated memory: a row of the narrowest elements."""
    dtypes: list[DType] = [held.dtype, *(view.buffer.dtype for view in views)]
    narrowest = min(dtypes, key=size_bytes)
    length = _length(held) * size_bytes(held.dtype) // size_bytes(narrowest)
    return Buffer(Var(held.name, "handle"), (IntImm(length),), narrowest, held.scope)


def _require_elements(context: Context, view: MemoryView, base: Buffer) -> None:
    of, to = view.buffer.dtype, base.dtype
    if of != to and (size_bytes(of) < size_bytes(to) or "bool" in (of, to)):
        raise context.error(
            f"{view.buffer.name} has elements of {of}, and its memory {base.name} of {to}: "
            "a view of a parameter has elements as wide or wider, and bool is no other type",
            view.origin,
            code="unsupported",
        )


def _length(buffer: Buffer) -> int:
    return math.prod(static_shape(buffer))


@dataclass(frozen=True, slots=True)
class _Alias:
    """A buffer, and the one that has its memory from an offset in elements on."""

    buffer: Buffer
    base: Buffer
    offset: int
    origin: ast.AST

    @property
    def ratio(self) -> int:
        """Return the elements of the memory that make up one of the buffer."""
        return size_bytes(self.buffer.dtype) // size_bytes(self.base.dtype)


class _Joiner:
    """Rewrites a function; new nodes keep the positions of those that they replace."""

    def __init__(self, context: Context, aliases: Mapping[Var, _Alias]) -> None:
        self._context = context
        self._aliases = aliases

    def stmt(self, stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, self.stmt, self.expr)
        match new:
            case Store(buffer, indices, value) if buffer.data in self._aliases:
                alias = self._aliases[buffer.data]
                if alias.base.dtype != buffer.dtype:
                    value = Call("reinterpret", (value,), alias.base.dtype)
                new = Store(alias.base, self._indices(alias, indices, stmt), value)
            case Allocate(buffer, body) if buffer.data in self._aliases:
                new = Allocate(self._aliases[buffer.data].base, body)
            case BlockRealize(values, predicate, block):
                new = BlockRealize(values, predicate, self._block(block))
            case _:
                pass
        return self._at(new, stmt)

    def expr(self, expr: Expr) -> Expr:
        new = map_expr(expr, self.expr)
        match new:
            case Load(buffer, indices) if buffer.data in self._aliases:
                alias = self._aliases[buffer.data]
                new = Load(alias.base, self._indices(alias, indices, expr))
                if alias.base.dtype != buffer.dtype:
                    new = Call("reinterpret", (new,), buffer.dtype)
            case Var() if new in self._aliases:
                reason = f"{new.name} is one of several views of a memory: its address is not known"
                raise self._error(reason, self._aliases[new])
            case _:
                pass
        return self._at(new, expr)

    def _block(self, block: Block) -> Block:
        for match in block.match_buffers:
            if match.source.buffer.data in self._aliases:
                name = match.source.buffer.name
                reason = f"a region of {name}, one of several views, is matched"
                raise self._error(reason, self._aliases[match.source.buffer.data])
        bases = (
            self._aliases[buffer.data].base if buffer.data in self._aliases else buffer
            for buffer in block.alloc_buffers
        )
        new = replace(block, alloc_buffers=tuple(bases))
        regions = (*block.reads, *block.writes)
        if any(region.buffer.data in self._aliases for region in regions):
            # Regions of other buffers may be declared, for calls that they are passed to.
            reads = tuple(r for r in new.reads if r.buffer.data not in self._aliases)
            writes = tuple(w for w in new.writes if w.buffer.data not in self._aliases)
            new = with_regions(replace(new, reads=reads, writes=writes))
        return self._at(new, block)

    def _indices(
        self, alias: _Alias, indices: tuple[Expr, ...], at: Expr | Stmt
    ) -> tuple[Expr, ...]:
        """Return the indices of an access in the buffer that has the memory."""
        start, stride, lanes = self._position(alias, indices, at)
        ratio, extents = alias.ratio, static_shape(alias.base)
        if ratio > 1 and lanes > 1 and stride != 1:
            raise self._error("lanes that are apart, of elements that are reinterpreted", at)
        start = simplify(BinOp("*", start, IntImm(ratio, dtype_of(start))))
        length = lanes * ratio
        indices = _unflattened(start, extents)
        if length == 1:
            return indices
        is_in_row = len(extents) == 1 or (
            stride == 1
            and extents[-1] % length == 0
            and simplify(BinOp("%", start, IntImm(length, dtype_of(start)))) == IntImm(0)
        )
        if not is_in_row:
            raise self._error(f"lanes that may be in several rows of {alias.base.name}", at)
        return (*indices[:-1], Ramp(indices[-1], stride, length))

    def _position(
        self, alias: _Alias, indices: tuple[Expr, ...], at: Expr | Stmt
    ) -> tuple[Expr, int, int]:
        """Return the first element of an access, in a row, the distance of lanes, and the lanes."""
        start: Expr = IntImm(alias.offset)
        stride, lanes, step = 1, 1, 1
        extents = static_shape(alias.buffer)
        for index, extent in zip(reversed(indices), reversed(extents), strict=True):
            first = index.base if isinstance(index, Ramp) else index
            if isinstance(index, Ramp):
                if lanes > 1:
                    raise self._error("lanes in two dimensions", at)
                stride, lanes = index.stride * step, index.lanes
            scaled = BinOp("*", first, IntImm(step, dtype_of(first)))
            start = BinOp("+", *same_type(start, scaled))
            step *= extent
        return simplify(start), stride, lanes

    def _error(self, what: str, at: object) -> ScriptError:
        origin = at.origin if isinstance(at, _Alias) else self._context.source_node_of(at)
        assert origin is not None, "accesses are parsed from the text"
        reason = f"{what}: give each view of the memory the same shape and type"
        return self._context.error(reason, origin, code="unsupported")

    def _at(self, new: _Node, old: object) -> _Node:
        origin = None if new is old else self._context.source_node_of(old)
        return new if origin is None else self._context.at(new, origin)


def _unflattened(start: Expr, extents: tuple[int, ...]) -> tuple[Expr, ...]:
    """Return the indices of an element by its number in row-major order."""
    indices: list[Expr] = []
    step = math.prod(extents)
    for extent in extents:
        step //= extent
        index: Expr = BinOp("//", start, IntImm(step, dtype_of(start)))
        if indices:
            index = BinOp("%", index, IntImm(extent, dtype_of(start)))
        indices.append(simplify(index))
    return tuple(indices)
