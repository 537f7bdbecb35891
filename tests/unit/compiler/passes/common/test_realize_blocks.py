"""Blocks become plain statements with the same meaning."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Allocate, BlockRealize, For, If, Store
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ops.spec import from_spec
from compiler.passes.common.realize_blocks import NOTHING, in_order, realize_blocks
from compiler.script import parse
from tests.unit.compiler.ops.specs import SPECS


@pytest.mark.parametrize("spec", SPECS[::9])
def test_no_block_is_left(spec: str) -> None:
    realized = realize_blocks(from_spec(spec).body)
    assert not any(isinstance(node, BlockRealize) for node in walk(realized.stmt))


def test_a_reduction_begins_in_its_first_iteration() -> None:
    func = from_spec("matmul:2,3,4")
    realized = realize_blocks(func.body)
    (start,) = (s for s in walk_stmts(realized.stmt) if isinstance(s, If))
    loops = {s.var.name: s.var for s in walk_stmts(realized.stmt) if isinstance(s, For)}
    assert str(func.buffers[-1].name) == "C"
    assert loops["k"] in set(walk(start.condition))
    assert realized.carried == {func.buffers[-1]: {loops["k"]}}


def test_a_predicate_guards_the_statement() -> None:
    func = parse("""
@T.prim_func
def main(A: T.Buffer((6,), "float32")):
    for i in range(8):
        with T.sblock("A"):
            v = T.axis.spatial(6, i)
            T.where(i < 6)
            A[v] = T.float32(0)
""")
    (guard,) = (s for s in walk_stmts(realize_blocks(func.body).stmt) if isinstance(s, If))
    assert isinstance(guard.then, Store)


def test_buffers_are_allocated_around_the_block() -> None:
    func = from_spec("softmax:4,8")
    allocated = [
        s.buffer.name for s in walk_stmts(realize_blocks(func.body).stmt) if isinstance(s, Allocate)
    ]
    assert allocated == ["largest", "powers", "total"]


def test_empty_statements_vanish_from_sequences() -> None:
    store = next(
        s for s in walk_stmts(realize_blocks(from_spec("relu:4").body).stmt) if isinstance(s, Store)
    )
    assert in_order([NOTHING, store, NOTHING]) == store
    assert in_order([NOTHING]) == NOTHING
