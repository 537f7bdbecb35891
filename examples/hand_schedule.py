"""Schedule a program by hand, and time it after each step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import loopwright as lw

target = lw.Target("cpu -num-cores=1")
func = lw.parse(Path(__file__).with_name("mm_relu.script").read_text(encoding="utf-8"))
a, b = np.random.rand(2, 128, 128).astype("float32")
c = np.empty((128, 128), "float32")


def show(step: str, program: lw.PrimFunc | lw.Schedule) -> None:
    """Build, check and time a program."""
    kernel = lw.build(program, target)
    c.fill(np.nan)
    kernel(a, b, c)
    np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-4)
    print(f"{step:40} {1e3 * lw.time_evaluator(kernel, a, b, c).median_secs:8.3f} ms")


show("as written", func)

sch = lw.Schedule(func)
block = sch.get_block("Y")
i, j, k = sch.get_loops(block)
j0, j1 = sch.split(j, factors=[None, 16])
i0, i1 = sch.split(i, factors=[None, 4])
sch.reorder(i0, j0, k, i1, j1)
show("tiled 4x16, reduction outside the tile", sch)

sch.reverse_compute_at("C", j0)
show("relu computed tile by tile", sch)

sch.vectorize(j1)
sch.unroll(i1)
sch.decompose_reduction(block, k)
show("vectorized and unrolled", sch)
sch.trace.show()
