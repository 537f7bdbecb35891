"""Copies of statements that share no variable with the original: they may stand beside it."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.nodes import (
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
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt, substitute, walk


def copy_stmt(stmt: Stmt) -> Stmt:
    """Return a copy of a statement with new loops, iterators, names and buffers of its own."""
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
            buffers.update((buffer, _copied_buffer(buffer, variables)) for buffer in block_buffers)
        elif isinstance(node, Allocate):
            buffers[node.buffer] = _copied_buffer(node.buffer, variables)
    copy = replace_buffers(substitute(stmt, variables), buffers)
    return _rebound(copy, variables)


def _bound_by(buffer: Buffer) -> dict[Var, Expr]:
    """Return new variables for the strides and the offset that a view binds."""
    named = [part for part in (*buffer.strides, buffer.elem_offset) if isinstance(part, Var)]
    return {var: Var(var.name, var.dtype) for var in named}


def _copied_buffer(buffer: Buffer, variables: dict[Var, Expr]) -> Buffer:
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
