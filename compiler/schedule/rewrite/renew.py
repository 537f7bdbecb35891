"""Copies of statements that share no variable with the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler.ir.core.copy_stmt import copy_stmt
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Stmt,
)
from compiler.ir.core.visit import map_stmt
from compiler.ir.text.names import unique


def renewed(stmt: Stmt, block_names: Iterable[str] = ()) -> Stmt:
    """Return a copy of a statement with new loops, iterators, names and buffers.

    Args:
        block_names: Names that the blocks of the copy must not have.
    """
    return _with_names(copy_stmt(stmt), set(block_names))


def _with_names(stmt: Stmt, used_names: set[str]) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(node, BlockRealize):
            return node
        name = unique(node.block.name, used_names)
        used_names.add(name)
        return replace(node, block=replace(node.block, name=name))

    return visit(stmt)


def renewed_block(block: Block, block_names: Iterable[str] = ()) -> Block:
    """Return a copy of a block without iterators, with its name."""
    realize = renewed(BlockRealize((), TRUE, replace(block, name="")), block_names)
    assert isinstance(realize, BlockRealize), "a copy is of the same kind"
    return replace(realize.block, name=block.name)
