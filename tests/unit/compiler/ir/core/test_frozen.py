"""Nodes are frozen values: made by position or name, compared by content, copied and pickled."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import get_args

import pytest

from compiler.ir.core.children import CHILDREN
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    Expr,
    For,
    IntImm,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    make_buffer,
)

_ONE = IntImm(1)


def test_a_node_refuses_to_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        _ONE.value = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del _ONE.value
    with pytest.raises((AttributeError, TypeError)):
        _ONE.other = 2  # type: ignore[attr-defined]


def test_fields_are_given_by_position_or_name_and_have_defaults() -> None:
    loop = For(Var("i"), body=Seq(()), extent=_ONE)
    assert (loop.extent, loop.kind, loop.thread, loop.annotations) == (_ONE, "serial", None, ())
    assert replace(loop, kind="parallel").kind == "parallel"
    with pytest.raises(TypeError, match="rhs"):
        BinOp("+", _ONE)  # type: ignore[call-arg]


def test_nodes_are_equal_by_content_and_type() -> None:
    buffer = make_buffer("A", (4,))
    assert Store(buffer, (_ONE,), _ONE) == Store(buffer, (IntImm(1),), IntImm(1))
    assert BinOp("+", _ONE, _ONE) != BinOp("-", _ONE, _ONE)
    assert hash(BinOp("+", _ONE, _ONE)) == hash(BinOp("+", IntImm(1), IntImm(1)))
    assert repr(_ONE) == "IntImm(value=1, dtype='int32')"


def test_the_hash_of_a_value_is_computed_once() -> None:
    hashed: list[str] = []

    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            hashed.append(self)
            return super().__hash__()

    node = BinOp("+", StringImm(Name("n")), _ONE)
    assert {node: 1}[node] == 1
    assert hashed == ["n"]


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))]
)
def test_a_copy_is_equal_and_frozen(duplicate) -> None:  # type: ignore[no-untyped-def]
    node = BinOp("*", IntImm(3), _ONE)
    again = duplicate(node)
    assert again == node
    assert type(again) is BinOp
    with pytest.raises(FrozenInstanceError):
        again.op = "+"  # type: ignore[misc]


def test_children_are_known_of_every_node() -> None:
    assert {*get_args(Expr), *get_args(Stmt), Block} == CHILDREN.keys()


def test_children_are_what_a_node_holds() -> None:
    i, buffer = Var("i"), make_buffer("A", (4,))
    store = Store(buffer, (i,), _ONE)
    assert CHILDREN[Store](store) == (i, _ONE)
    assert CHILDREN[For](For(i, _ONE, store)) == (_ONE, store)
