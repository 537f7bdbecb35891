"""Computations of many shapes: each has a range of rows, and workloads of some numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.workloads.workload import BenchmarkWorkload, Unit

MAX_ROWS = 512
UNSEEN_ROWS = (8, 10, 13, 16, 20, 32, 41, 50, 64, 100, 128, 180, 256, 300, 384, 450)
"""Numbers of rows that no search over the range times: powers of two, round and odd ones."""


@dataclass(frozen=True)
class Family:
    """A computation with 1 to `MAX_ROWS` rows.

    Attributes:
        op: The operator.
        extents: Its extents after the number of rows.
        shapes: The shapes of its inputs; 0 stands for the number of rows.
        columns: The columns of its result.
        unit: The unit of its rate.
    """

    op: str
    extents: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    columns: int
    unit: Unit

    @property
    def name(self) -> str:
        """The name of its results, such as `matmul_Mx512x512`."""
        return f"{self.op}_{'x'.join(map(str, ('M', *self.extents)))}"

    def workload(self, rows: int) -> BenchmarkWorkload:
        """Return the computation with a number of rows."""
        numbers = (rows, *self.extents)
        flops = 2.0 * rows * self.extents[0] * self.extents[1] if self.op == "matmul" else 0.0
        return BenchmarkWorkload(
            name=f"{self.op}_{'x'.join(map(str, numbers))}",
            op=self.op,
            spec=f"{self.op}:{','.join(map(str, numbers))}",
            shapes=tuple(tuple(n or rows for n in shape) for shape in self.shapes),
            out=(rows, self.columns),
            flops=flops,
            unit=self.unit,
            group="shapes",
        )


FAMILIES = (
    Family("matmul", (512, 512), ((0, 512), (512, 512)), 512, "GFLOP/s"),
    Family("softmax", (768,), ((0, 768),), 768, "GB/s"),
)
FAMILY_OF = {
    workload.name: family for family in FAMILIES for workload in map(family.workload, UNSEEN_ROWS)
}
SHAPES = tuple(family.workload(rows) for family in FAMILIES for rows in UNSEEN_ROWS)
