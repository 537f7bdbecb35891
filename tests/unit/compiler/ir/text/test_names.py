"""Names of variables in printed programs."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.core.nodes import Var
from compiler.ir.text.names import Names, identifier, unique


@given(st.text(max_size=12))
def test_any_text_becomes_an_identifier(text: str) -> None:
    name = identifier(text)
    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    assert identifier(name) == name


@pytest.mark.parametrize(("text", "name"), [("a b", "a_b"), ("3d", "_3d"), ("for", "_for")])
def test_a_name_stays_readable(text: str, name: str) -> None:
    assert identifier(text) == name


@given(st.sets(st.sampled_from(["a", "a_1", "a_2", "b"])))
def test_a_unique_name_is_not_taken(taken: set[str]) -> None:
    assert unique("a", taken) not in taken
    assert unique("a", taken).startswith("a")


def test_variables_of_one_name_are_told_apart_by_number() -> None:
    first, second, third = Var("i"), Var("i"), Var("i")
    names = Names()
    assert [names.bind(v) for v in (first, second)] == ["i", "i_1"]
    assert names[first] == "i"
    assert third not in names
    assert names[third] == "i_2"
    assert third in names


def test_a_name_is_free_again_after_its_scope() -> None:
    names = Names()
    with names.scope():
        assert names.bind(Var("i")) == "i"
    assert names.bind(Var("i")) == "i"


def test_a_text_may_stand_for_a_variable() -> None:
    stride, names = Var("s"), Names()
    names.call(stride, "A.strides[0]")
    assert names[stride] == "A.strides[0]"
