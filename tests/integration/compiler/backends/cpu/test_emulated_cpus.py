"""Kernels for other CPUs compute correct results, in an emulator; `make test-targets` runs all.

Here are operators that use what the CPUs differ in: multiply-adds, narrow floats, dot products of
bytes, mathematical functions, masks and tails.
"""

from __future__ import annotations

import pytest

from tests.cross.operators import run_operators, target_of
from tests.cross.tools import cross_tools

CPUS = ["neoverse-n1", "neoverse-v2", "cortex-a9", "cortex-a15", "sifive-x280"]
SPECS = [
    "matmul:13,45,17",
    "matmul:13,45,18:bfloat16",
    "matmul:13,45,18,acc_dtype=float16:float16",
    "batch_matmul:2,3,4,5,transpose_a=true,out_dtype=int32:int8",
    "softmax:5,37",
    "erf:3,45:float64",
    "conv2d:1,5,9,9,7,3,1,1",
    "topk:3,9,k=4",
]


@pytest.mark.parametrize("cpu", CPUS)
def test_operators_are_correct(cpu: str) -> None:
    tools = cross_tools(target_of(cpu))
    outcomes = list(run_operators(SPECS, target_of(cpu, tools), tools))
    assert [o for o in outcomes if o.is_wrong] == []
    assert len(outcomes) == 2 * len(SPECS)
