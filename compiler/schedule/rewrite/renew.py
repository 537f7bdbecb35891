"""Copies of statements that share no variable with the original: they may stand beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    Let,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_stmt, replace_buffers, substitute, walk
from compiler.ir.text.names import unique


def renewed(stmt: Stmt, block_names: Iterable[str] = ()) -> Stmt:
    """Return a copy of a statement with new loops, iterators, names and buffers of its own.

    Args:
        block_names: Names that the blocks of the copy must not have.
    """
    variables: dict[Var, Expr] = {}
    buffers: dict[Buffer, Buffer] = {}
    for node in walk(stmt):
        match node:
            case For(var=var) | Let(var=var):
                variables[var] = Var(var.name, var.dtype)
            case Block(iter_vars=iter_vars):
                variables.update((i.var, Var(i.var.name, i.var.dtype)) for i in iter_vars)
                for match in node.match_buffers:
                    variables.update(_bound_by(match.buffer))
            case _:
                pass
    for node in walk(stmt):
        if isinstance(node, Block):
            block_buffers = (*node.alloc_buffers, *(match.buffer for match in node.match_buffers))
            buffers.update((buffer, renewed_buffer(buffer, variables)) for buffer in block_buffers)
        elif isinstance(node, Allocate):
            buffers[node.buffer] = renewed_buffer(node.buffer, variables)
    copy = replace_buffers(substitute(stmt, variables), buffers)
    return _with_names(_rebound(copy, variables), set(block_names))


def _bound_by(buffer: Buffer) -> dict[Var, Expr]:
    """Return new variables for the strides and the offset that a view binds."""
    named = [part for part in (*buffer.strides, buffer.elem_offset) if isinstance(part, Var)]
    return {var: Var(var.name, var.dtype) for var in named}


def renewed_buffer(buffer: Buffer, variables: dict[Var, Expr]) -> Buffer:
    """Return a buffer like another, of a storage of its own."""
    offset = buffer.elem_offset
    return replace(
        buffer,
        data=Var(buffer.data.name, buffer.data.dtype),
        shape=tuple(substitute(extent, variables) for extent in buffer.shape),
        strides=tuple(substitute(stride, variables) for stride in buffer.strides),
        elem_offset=None if offset is None else substitute(offset, variables),
    )


def _rebound(stmt: Stmt, variables: dict[Var, Expr]) -> Stmt:
    """Put the new variables where the old ones are bound."""

    def new(var: Var) -> Var:
        renamed = variables.get(var, var)
        assert isinstance(renamed, Var), "variables are renamed to variables"
        return renamed

    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        match node:
            case For(var=var) | Let(var=var):
                return replace(node, var=new(var))
            case BlockRealize(block=block):
                iter_vars = tuple(replace(i, var=new(i.var)) for i in block.iter_vars)
                return replace(node, block=replace(block, iter_vars=iter_vars))
            case _:
                return node

    return visit(stmt)


def _with_names(stmt: Stmt, taken: set[str]) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(node, BlockRealize):
            return node
        name = unique(node.block.name, taken)
        taken.add(name)
        return replace(node, block=replace(node.block, name=name))

    return visit(stmt)


def renewed_block(block: Block, block_names: Iterable[str] = ()) -> Block:
    """Return a copy of a block without iterators, its own name kept."""
    realize = renewed(BlockRealize((), TRUE, replace(block, name="")), block_names)
    assert isinstance(realize, BlockRealize), "a copy is of the same kind"
    return replace(realize.block, name=block.name)
