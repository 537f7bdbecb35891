"""Children of nodes: every kind of node has an entry, and the entries agree with the fields."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from compiler.ir.core import nodes
from compiler.ir.core.children import CHILDREN, STATEMENTS_IN
from compiler.ir.core.nodes import Block, Expr, Stmt
from compiler.ir.core.visit import walk
from compiler.ops.spec import from_spec
from tests.unit.compiler.ops.specs import SPECS


def test_every_kind_of_node_has_children() -> None:
    assert set(CHILDREN) == {*get_args(Expr), *get_args(Stmt), Block}
    assert set(STATEMENTS_IN) == set(get_args(Stmt))


def test_children_are_the_nodes_in_the_fields() -> None:
    """Everything in a field that is a node is a child; regions and buffers are none."""
    kinds = tuple(CHILDREN)
    seen: set[type] = set()
    for spec in SPECS[::7]:
        for node in walk(from_spec(spec).body):
            seen.add(type(node))
            held = [
                part
                for field in fields(node)
                for value in [getattr(node, field.name)]
                for part in (value if isinstance(value, tuple) else (value,))
                if isinstance(part, kinds) and field.name not in ("var", "alloc_buffers")
            ]
            given = list(CHILDREN[type(node)](node))
            assert sorted(map(id, given)) == sorted(map(id, held)), type(node)
    assert {nodes.For, nodes.BlockRealize, Block, nodes.Store, nodes.Load} <= seen


def test_statements_in_a_statement_are_among_its_children() -> None:
    statements = get_args(Stmt)
    for spec in SPECS[::7]:
        for node in walk(from_spec(spec).body):
            if isinstance(node, statements) and not isinstance(node, nodes.BlockRealize):
                inner = [c for c in CHILDREN[type(node)](node) if isinstance(c, statements)]
                assert list(STATEMENTS_IN[type(node)](node)) == inner
