"""The requirements of `annotate` and `unannotate`: each one refused, with the place marked."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.refusals import (
    elementwise,
    refused,
)


def test_annotate_refuses_a_key_twice_and_an_empty_one() -> None:
    sch = Schedule(elementwise())
    sch.annotate("B", "key", 1)
    with refused(sch, '"key" is annotated already', at='"B"'):
        sch.annotate("B", "key", 2)
    with refused(sch, "the key of an annotation is empty", at='"B"'):
        sch.annotate("B", "", 2)


def test_unannotate_refuses_a_key_that_is_not_there() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, 'there is no annotation "key"; there are: none', at="for i"):
        sch.unannotate(i, "key")
