import numpy as np
import pytest

import loopwright as lw
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.spot_check.linearity import is_linear, without_rounding
from compiler.ir.interpret.spot_check.parallel_axis import parallel_axis


def linear_dims(func: lw.PrimFunc) -> list[int]:
    output = func.buffers[-1]
    axes = (parallel_axis(func, output, dim) for dim in range(len(output.shape)))
    return [d for d, axis in enumerate(axes) if axis is not None and is_linear(func, axis)]


@pytest.mark.parametrize(
    ("spec", "dims"),
    [
        ("matmul:5,6,7", [0, 1]),
        ("matmul:5,6,7,batch=3", [1, 2]),
        ("matmul:5,6,7,acc_dtype=float32:bfloat16", [0, 1]),
        ("matmul:5,6,7,bias=True", [1]),
        ("matmul:5,6,7,activation=relu", []),
        ("matmul:5,6,7,out_dtype=int32,acc_dtype=int32:int8", [0, 1]),
        ("matmul:5,6,7:int8", []),
        ("conv2d:2,3,6,6,4,3,1,1", [1]),
        ("add:5,7", [0, 1]),
        ("multiply:5,7", []),
        ("exp:5,7", []),
    ],
)
def test_an_axis_is_linear_if_sums_of_slices_give_sums_of_slices(
    spec: str, dims: list[int]
) -> None:
    assert linear_dims(lw.ops.from_spec(spec)) == dims


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:5,6,7,batch=2,transpose_a=True",
        "matmul:5,6,7,bias=True,acc_dtype=float32:bfloat16",
        "matmul:5,6,7,out_dtype=int32,acc_dtype=int32:int8",
        "conv2d:2,3,6,6,4,3,1,1",
    ],
)
def test_the_form_without_rounding_computes_the_sum_of_slices(spec: str) -> None:
    func = lw.ops.from_spec(spec)
    inputs, output = random_inputs(func, 0), func.buffers[-1]
    wide: DType = "float64" if is_float(output.dtype) else "int64"
    whole = interpret(func, inputs)[output.name].astype(wide)
    dims = linear_dims(func)
    assert dims
    for dim in dims:
        axis = parallel_axis(func, output, dim)
        assert axis is not None
        along = {b.name: d for b, d in axis.dims.items()}
        summed = {
            n: a.astype(wide).sum(along[n], keepdims=True) if n in along else a
            for n, a in inputs.items()
        }
        (sums,) = interpret(without_rounding(func, axis, 1, wide), summed).values()
        # Rounding to bfloat16 errs by a 256th of each element, which are of magnitude 4.
        np.testing.assert_allclose(sums, whole.sum(dim, keepdims=True), atol=0.1)
