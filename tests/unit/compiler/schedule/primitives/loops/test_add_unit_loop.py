"""`add_unit_loop`: around a loop or a block."""

from __future__ import annotations

from tests.unit.compiler.schedule.primitives.programs import ROWS
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    refused,
    scheduled,
)


def test_add_unit_loop_stands_around_a_loop_or_a_block() -> None:
    sch = scheduled(ROWS)
    i, _ = sch.get_loops("C")
    sch.add_unit_loop(i)
    sch.add_unit_loop("C")
    becomes(sch, ROWS.replace("i, k in T.grid(4, 8)", "u, i, k, u_1 in T.grid(1, 4, 8, 1)"))


def test_add_unit_loop_refuses_the_root() -> None:
    sch = scheduled(ROWS)
    with refused(sch, '"root" is the root block', at="def main"):
        sch.add_unit_loop("root")
