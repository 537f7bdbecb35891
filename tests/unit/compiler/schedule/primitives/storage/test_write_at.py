"""`write_at`: tiles that are written inside of loops."""

from __future__ import annotations

from tests.unit.compiler.schedule.schedule_asserts import (
    DIAGONAL_SUM,
    IN_PLACE,
    SHARED_LOOP,
    refused,
    scheduled,
)


def test_write_at_refuses_readers_after_the_last_writer() -> None:
    sch = scheduled(SHARED_LOOP)
    (i,) = sch.get_loops("B")
    with refused(sch, "block C reads B after it is written under loop i", at='"C"'):
        sch.write_at(i, "B", 0, "shared")


def test_write_at_refuses_values_from_before_the_loop() -> None:
    sch = scheduled(IN_PLACE)
    (i,) = sch.get_loops("A")
    with refused(sch, "block A may read what A held before the loop", at='"A"'):
        sch.write_at(i, "A", 0, "shared")


def test_write_at_refuses_what_may_not_be_written() -> None:
    text = SHARED_LOOP.replace(
        "            C[vi] = B[0]", "            if vi > 3:\n                C[vi] = B[0]"
    )
    sch = scheduled(text)
    (i,) = sch.get_loops("C")
    reason = "no block is proved to write all of a box of C in one iteration of loop i"
    with refused(sch, reason, at="for i"):
        sch.write_at(i, "C", 0, "shared")


def test_write_at_refuses_values_from_before_the_loop_that_are_read_first() -> None:
    sch = scheduled(IN_PLACE)
    sch.cache_inplace("A", 0, "shared")
    copy = sch.get_block("A_shared_1")
    with refused(sch, "block A_shared may read what A held before the loop", at='"A_shared"'):
        sch.write_at(sch.get_loops(copy)[0], copy, 0, "shared")


def test_write_at_refuses_a_sum_that_begins_for_one_element_only() -> None:
    schedule = scheduled(DIAGONAL_SUM)
    with refused(schedule, "block C may read what C held before the loop", at='"C"'):
        schedule.write_at(schedule.get_loops("C")[0], "C", 0, "local")
    with refused(schedule, "block C adds to what C held before", at='"C"'):
        schedule.cache_write("C", 0, "local")
