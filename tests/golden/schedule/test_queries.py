"""What queries and sampling record: they leave the program as it is, and give handles."""

from __future__ import annotations

from collections.abc import Callable

from compiler.schedule.schedule import Schedule
from tests.golden.schedule.test_primitives import change, matmul_relu

Golden = Callable[[str], None]


def test_queries(golden: Golden) -> None:
    def ask(s: Schedule) -> None:
        product, relu = s.get_child_blocks("root")
        s.get_producers(relu)
        s.get_consumers(product)
        s.get_output_blocks("root")
        s.get_loops(relu)

    golden(change(Schedule(matmul_relu()), ask))


def test_sampling(golden: Golden) -> None:
    schedule = Schedule(matmul_relu())
    i, j, _ = schedule.get_loops("Y")

    def sample(s: Schedule) -> None:
        s.sample_perfect_tile(i, 2, decision=[2, 8])
        s.sample_partitioned_tile(j, 3, partition_pos=1, innerpart_factor=4, decision=[2, 2, 4])
        s.sample_categorical([0, 16, 64], [0.25, 0.25, 0.5], decision=1)
        s.sample_compute_location("Y", decision=1)
        s.enter_postproc()

    golden(change(schedule, sample))
