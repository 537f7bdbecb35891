"""Take an unscheduled program apart: blocks one after another, each in loops of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.nodes import (
    TRUE,
    Block,
    BlockRealize,
    For,
    IntImm,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.visit import walk


class OracleError(ValueError):
    """The oracle can't run a program, or not on these inputs."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One block: its iterators with their extents, and what it stores at each point."""

    name: str
    spatial: dict[Var, int]
    reduced: dict[Var, int]
    init: tuple[Store, ...]
    body: tuple[Store, ...]


def stages(func: PrimFunc) -> list[Stage]:
    """Return the blocks of a program in their order.

    Raises:
        OracleError: If the program is not of the form that tensor expressions have.
    """
    body = func.root.body
    return [_stage(nest) for nest in (body.stmts if isinstance(body, Seq) else (body,))]


def _stage(nest: Stmt) -> Stage:
    loops: dict[Var, int] = {}
    while isinstance(nest, For):
        loops[nest.var] = static_int(nest.extent)
        nest = nest.body
    if not isinstance(nest, BlockRealize):
        raise OracleError("expected loops around one block: the program is scheduled")
    block = nest.block
    _check_bindings(nest, loops)
    if block.alloc_buffers:
        raise OracleError(f"block {block.name} allocates buffers: the program is scheduled")
    extents = {kind: _extents(block, kind) for kind in ("spatial", "reduce", "scan", "opaque")}
    if extents["scan"] or extents["opaque"]:
        raise OracleError(f"block {block.name} has iterators that are neither spatial nor reduce")
    init = () if block.init is None else _stores(block, block.init)
    stage = Stage(
        block.name, extents["spatial"], extents["reduce"], init, _stores(block, block.body)
    )
    _check_independence(stage)
    return stage


def _check_bindings(realize: BlockRealize, loops: dict[Var, int]) -> None:
    """Refuse iterators that are not bound to one loop each, of the same extent."""
    left = dict(loops)
    regular = realize.predicate == TRUE
    for iter_var, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        extent = static_int(iter_var.extent)
        if isinstance(value, Var):
            regular = regular and left.pop(value, None) == extent
        else:
            regular = regular and extent == 1 and isinstance(value, IntImm)
    if not regular or any(extent > 1 for extent in left.values()):
        raise OracleError(
            f"block {realize.block.name} does not bind each iterator to a loop of its own: "
            "the program is scheduled"
        )


def _extents(block: Block, kind: str) -> dict[Var, int]:
    return {iv.var: static_int(iv.extent) for iv in block.iter_vars if iv.kind == kind}


def _stores(block: Block, body: Stmt) -> tuple[Store, ...]:
    parts: Sequence[Stmt] = body.stmts if isinstance(body, Seq) else (body,)
    found = tuple(part for part in parts if isinstance(part, Store))
    if len(found) < len(parts):
        raise OracleError(
            f"block {block.name} holds more than stores: expected one computation a block"
        )
    return found


def _check_independence(stage: Stage) -> None:
    """Refuse blocks whose result depends on the order of their spatial iterators."""
    place = {store.buffer: store.indices for store in (*stage.init, *stage.body)}
    for store in (*stage.init, *stage.body):
        used = {node for index in store.indices for node in walk(index)}
        for var, extent in stage.spatial.items():
            if extent > 1 and var not in used:
                raise OracleError(
                    f"block {stage.name} writes {store.buffer.name} at places that do not "
                    f"depend on its spatial iterator {var.name}"
                )
        for node in walk(store):
            if isinstance(node, Load) and place.get(node.buffer, node.indices) != node.indices:
                raise OracleError(
                    f"block {stage.name} reads elements of {node.buffer.name} that it writes "
                    "at another point of its iterators"
                )
