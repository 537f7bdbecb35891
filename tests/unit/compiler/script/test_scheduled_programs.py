"""Programs after scheduling are legal, and print and parse like any other."""

import numpy as np

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.ir.text.printer import script
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script import parse


def check(workload: PrimFunc, scheduled: PrimFunc) -> None:
    verify(scheduled)
    parsed = parse(script(scheduled))
    assert structural_equal(parsed, scheduled)
    inputs = random_inputs(workload, seed=0)
    assert compare(workload, evaluate(parsed, inputs), interpret(workload, inputs)) < 1e-5
    assert all(np.isfinite(array).all() for array in evaluate(parsed, inputs).values())


def test_a_tiled_product_with_a_register_tile() -> None:
    workload = ops.mm_relu(6, 8, 4)
    sch = Schedule(workload)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 4])
    k_0, k_1 = sch.split(k, [None, 2])
    sch.reorder(i_0, j_0, k_0, i_1, k_1, j_1)
    sch.vectorize(j_1)
    sch.unroll(k_1)
    sch.parallel(i_0)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), j_0)
    sch.decompose_reduction(block, k_0)
    check(workload, sch.func)


def test_padding_moved_into_the_loops_of_a_convolution() -> None:
    workload = ops.conv2d(1, 2, 6, 6, 2, 3, 1, 1)
    sch = Schedule(workload)
    rows, _ = sch.split(sch.get_loops(sch.get_block("conv2d_nchw"))[2], [None, 4])
    sch.compute_at(sch.get_block("pad_temp"), rows)
    check(workload, sch.func)
