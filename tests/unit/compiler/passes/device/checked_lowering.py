"""A helper: lower programs for a GPU, and compare what their kernels compute with the evaluator."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import Array, evaluate
from compiler.ir.interpret.oracle.oracle import compare, random_inputs
from compiler.passes.device.kernel import DeviceProgram
from compiler.passes.device.lower import lower_for_device
from compiler.target.gpus import ARCHS
from tests.unit.compiler.passes.device.device_interpreter import ORDERS, run_device

LIMITS = ARCHS["sm_90a"]


def lower_checked(func: PrimFunc, expected: dict[str, Array] | None = None) -> DeviceProgram:
    """Lower a program and check the results of its kernels in all orders of threads.

    Args:
        func: The program.
        expected: Its results for random inputs; by default, what the evaluator computes.
    """
    program = lower_for_device(func, LIMITS)
    inputs = random_inputs(func, 0)
    if expected is None:
        expected = evaluate(func, inputs)
    for order in ORDERS:
        compare(func, run_device(program, inputs, order), expected)
    return program
