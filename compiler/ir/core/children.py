"""The direct children of each kind of node, in program order, and the statements among them.

The module uses tables instead of `match`, since every pass calls it for every node. Read and write
regions are not children.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Call,
    Cast,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    While,
)


def _none(_: object) -> tuple[Expr, ...]:
    return ()


def _value(node: Not | Cast | Broadcast | Evaluate) -> tuple[Expr, ...]:
    return (node.value,)


def _both(node: BinOp | Compare | Logic) -> tuple[Expr, ...]:
    return (node.lhs, node.rhs)


def _choice(node: Select | Conditional) -> tuple[Expr, ...]:
    return (node.condition, node.then, node.otherwise)


def _no_stmts(_: object) -> tuple[Stmt, ...]:
    return ()


def _body(node: While | For | Let | Allocate) -> tuple[Stmt, ...]:
    return (node.body,)


def _bodies(node: BlockRealize) -> tuple[Stmt, ...]:
    block = node.block
    return (block.body,) if block.init is None else (block.init, block.body)


def _branches(node: If) -> tuple[Expr | Stmt, ...]:
    if node.otherwise is None:
        return (node.condition, node.then)
    return (node.condition, node.then, node.otherwise)


LEAVES: frozenset[type] = frozenset((Var, IntImm, FloatImm, StringImm))

CHILDREN: dict[type, Callable[[Any], tuple[Expr | Stmt | Block, ...]]] = {
    **dict.fromkeys(LEAVES, _none),
    BinOp: _both,
    Compare: _both,
    Logic: _both,
    Not: _value,
    Cast: _value,
    Broadcast: _value,
    Evaluate: _value,
    Select: _choice,
    Conditional: _choice,
    Call: lambda node: node.args,
    Load: lambda node: node.indices,
    Ramp: lambda node: (node.base,),
    Store: lambda node: (*node.indices, node.value),
    Let: lambda node: (node.value, node.body),
    Seq: lambda node: node.stmts,
    If: _branches,
    While: lambda node: (node.condition, node.body),
    For: lambda node: (node.extent, node.body),
    Block: lambda node: (node.body,) if node.init is None else (node.init, node.body),
    BlockRealize: lambda node: (*node.iter_values, node.predicate, node.block),
    Allocate: lambda node: (node.body,),
}

STATEMENTS_IN: dict[type, Callable[[Any], tuple[Stmt, ...]]] = {
    Store: _no_stmts,
    Evaluate: _no_stmts,
    Let: _body,
    Seq: lambda node: node.stmts,
    If: lambda node: (node.then,) if node.otherwise is None else (node.then, node.otherwise),
    While: _body,
    For: _body,
    BlockRealize: _bodies,
    Allocate: _body,
}
