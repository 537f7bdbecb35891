import numpy as np
import pytest

import loopwright as lw
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.spot_check.parallel_axis import parallel_axis, with_extent
from compiler.script.parser import parse

SHIFTED = """
@T.prim_func
def shifted(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i + 1]
"""
BY_POSITION = """
@T.prim_func
def by_position(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = A[i] * i
"""
RUNNING = """
@T.prim_func
def running(
    A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), S: T.Buffer((1,), "float32")
):
    for i in range(8):
        S[0] = S[0] + A[i]
        B[i] = A[i] + S[0]
"""


def parallel_dims(func: lw.PrimFunc) -> list[int]:
    output = func.buffers[-1] if func.name != "running" else func.buffers[1]
    return [d for d in range(len(output.shape)) if parallel_axis(func, output, d) is not None]


@pytest.mark.parametrize(
    ("spec", "dims"),
    [
        ("matmul:5,6,7", [0, 1]),
        ("matmul:5,6,7,batch=3,transpose_a=True,bias=True,activation=gelu", [0, 1, 2]),
        ("softmax:5,7", [0]),
        ("layer_norm:5,7", [0]),
        ("transpose:5,7", [0, 1]),
        ("conv2d:2,3,6,6,4,3,1,1", [0, 1]),
        ("sum:5,7,axis=1", [0]),
    ],
)
def test_an_axis_is_parallel_if_its_slices_are_unrelated(spec: str, dims: list[int]) -> None:
    assert parallel_dims(lw.ops.from_spec(spec)) == dims


@pytest.mark.parametrize("script", [SHIFTED, BY_POSITION, RUNNING])
def test_slices_that_depend_on_their_position_or_on_others_are_related(script: str) -> None:
    assert parallel_dims(parse(script)) == []


@pytest.mark.parametrize(
    "spec",
    ["matmul:5,6,7,batch=3,transpose_b=True,bias=True,activation=relu", "softmax:5,7", "add:5,7"],
)
def test_a_program_of_fewer_slices_computes_those_of_the_whole_one(spec: str) -> None:
    func = lw.ops.from_spec(spec)
    inputs, output = random_inputs(func, 0), func.buffers[-1]
    whole = interpret(func, inputs)[output.name]
    dims = parallel_dims(func)
    assert dims
    for dim in dims:
        axis = parallel_axis(func, output, dim)
        assert axis is not None
        chosen = [axis.extent - 1, 1]
        along = {b.name: d for b, d in axis.dims.items()}
        parts = {n: a.take(chosen, along[n]) if n in along else a for n, a in inputs.items()}
        some = interpret(with_extent(func, axis, 2), parts)[output.name]
        np.testing.assert_array_equal(some, whole.take(chosen, dim))
