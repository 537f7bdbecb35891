"""The requirements of `annotate` and `unannotate`, and what values can be noted."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import te
from compiler.ir.core.nodes import AnnotationDict, BlockRealize
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import (
    elementwise,
    matmul_relu,
    refused,
)


def notes_of(sch: Schedule, block: str) -> dict[str, object]:
    realize = sch.get(sch.get_sblock(block))
    assert isinstance(realize, BlockRealize)
    return dict(realize.block.annotations)


def test_annotating_a_key_again_leaves_the_first_value() -> None:
    sch = Schedule(elementwise())
    sch.annotate("B", "key", 1)
    sch.annotate("B", "key", 2)
    assert notes_of(sch, "B") == {"key": 1}


def test_values_nest_and_hold_sampled_values() -> None:
    sch = Schedule(elementwise())
    sampled = sch.sample_categorical([3, 5], [0.5, 0.5], decision=1)
    sch.annotate("B", "key", {"a": [1, "x", sampled], "b": {"c": 0.5}, "d": sampled})
    value = AnnotationDict((("a", (1, "x", 5)), ("b", AnnotationDict((("c", 0.5),))), ("d", 5)))
    assert notes_of(sch, "B") == {"key": value}
    again = Trace.from_json(sch.trace.to_json()).apply_to(elementwise())
    assert notes_of(again, "B") == {"key": value}


def itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "is not a number, a string, or a list or mapping of them"),
        ({1: 2}, "1 is not a key: expected a string"),
        (float("inf"), "is not a number that a trace can hold"),
        (itself(), "nested deeper than 16 levels"),
        (None, "None is not a number, a string, or a list or mapping of them"),
    ],
)
def test_annotate_refuses_what_is_no_value(value: Any, reason: str) -> None:
    sch = Schedule(elementwise())
    with refused(sch, reason, at="def main"):
        sch.annotate("B", "key", value)


def test_unannotate_refuses_a_key_that_is_not_there() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, 'there is no annotation "key"; there are: none', at="for i"):
        sch.unannotate(i, "key")


def test_a_constant_of_a_type_is_a_number() -> None:
    sch = Schedule(matmul_relu())
    note: Any = {"a": te.const(4, "int64"), "b": [te.const(0.5, "float32")]}
    sch.annotate("Y", "ann", note)
    again = sch.trace.apply_to(matmul_relu())
    assert '{"a": 4, "b": [0.5]}' in again.func.script()
