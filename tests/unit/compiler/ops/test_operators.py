"""Each operator: against its reference, against the scalar evaluator, and built."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler import ops
from compiler.ir.evaluate import evaluate
from compiler.ir.flops import flops
from compiler.ir.nodes import PrimFunc
from compiler.ir.oracle import compare, interpret, random_inputs
from compiler.ir.printer import script
from compiler.ir.structural import structural_equal, structural_hash
from compiler.script import parse

Array = NDArray[Any]

SPECS = """
matmul:5,6,7 matmul:5,6,7:float64 matmul:5,6,7:int32 matmul:5,6,7:float16 matmul:5,6,7:bfloat16
matmul:4,5,6,transpose_a=true matmul:4,5,6,transpose_b=true matmul:4,5,6,batch=3
matmul:4,5,6,transpose_a=true,transpose_b=true,batch=2x3 matmul:4,5,6,bias=true,activation=gelu
matmul:4,5,6,bias=true,activation=gelu_tanh matmul:4,5,6,activation=silu
matmul:4,5,6,activation=tanh matmul:4,5,6,activation=leaky_relu matmul:4,5,6,activation=sigmoid
matmul:4,5,6,activation=relu:int32 matmul:4,5,64,out_dtype=int32:int8
matmul:4,5,64,out_dtype=int32,bias=true:uint8 matmul:4,5,64,out_dtype=float32:float16
matmul:4,5,64,acc_dtype=float32:float16 matmul:4,5,64,acc_dtype=float32:bfloat16
matmul:4,5,64,out_dtype=float32,bias=true:bfloat16 batch_matmul:2,3,4,5
batch_matmul:2,3,4,5,transpose_b=true batch_matmul:2,3,4,5,transpose_a=true,out_dtype=int32:int8
mm_relu:4,5,6 matmul_bias_relu:4,5,6 linear_relu:3,4,5 dense:4,5,6
dense:4,5,6,bias=true,activation=relu conv1d:2,3,12,4,3 conv1d:2,4,12,6,3,2,1,2,2
conv1d:2,4,12,6,3,1,1,layout=NWC,groups=2,bias=true,activation=relu conv2d:2,3,8,8,4,3
conv2d:1,3,8,9,4,3,2,1 conv2d:1,4,9,9,6,3,1,2,2,2 conv2d:1,4,5,5,4,1 conv2d:1,3,12,12,4,7,2,3
conv2d:2,4,7,9,6,3x2,2x1,1x0 conv2d:2,4,7,9,6,3,padding=1x0x2x1 conv2d:2,4,7,9,6,3,1,1,layout=NHWC
conv2d:2,4,7,9,6,3,2,1,2,2,layout=NHWC conv2d:2,4,7,9,6,3,1,1,layout=NHWC,bias=true,activation=gelu
conv2d:1,4,7,9,6,3,1,1,out_dtype=int32:int8 conv3d:1,2,5,6,7,4,3,1,1
conv3d:1,2,5,6,7,4,3x2x1,2,1,layout=NDHWC conv3d:1,4,5,5,5,4,2,1,0,2,2 conv2d_transpose:2,3,5,4,4,3
conv2d_transpose:2,3,5,4,4,3,2,1,1
conv2d_transpose:1,3,5,4,4,4x3,2x3,1x2,1x0,bias=true,activation=relu depthwise_conv2d:2,3,8,9,3
depthwise_conv2d:1,3,9,9,3,2,1,2 depthwise_conv2d:2,3,8,9,3,2,1,layout=NHWC
depthwise_conv2d:2,3,8,9,3,1,1,multiplier=2
depthwise_conv2d:2,3,8,9,3x5,1,1x2,multiplier=2,layout=NHWC,bias=true max_pool2d:2,3,8,9,2
max_pool2d:2,3,8,9,3,2,1 max_pool2d:2,3,8,9,3,2,1,ceil_mode=true
max_pool2d:2,3,8,9,3x2,2x3,1x1,layout=NHWC,ceil_mode=true max_pool2d:1,2,9,9,3,1,1,2
max_pool2d:1,2,9,9,3,2,1:int32 avg_pool2d:2,3,8,9,2 avg_pool2d:2,3,8,9,3,2,1
avg_pool2d:2,3,8,9,3,2,1,count_include_pad=false avg_pool2d:2,3,8,9,3,2,1,ceil_mode=true
avg_pool2d:1,2,7,7,2,3,ceil_mode=true
avg_pool2d:2,3,8,9,3,2,1,ceil_mode=true,count_include_pad=false
avg_pool2d:2,3,7,10,3x2,2x3,1x0,ceil_mode=true,layout=NHWC
avg_pool2d:1,2,8,8,3,3,1x0x0x1,count_include_pad=false softmax:4,9 softmax:7 softmax:2,3,4
softmax:2,3,4,axis=1 softmax:2,3,4,axis=0 log_softmax:5,9 log_softmax:2,3,4,axis=1 layer_norm:4,9
layer_norm:2,3,4 layer_norm:2,3,4,axis=1 layer_norm:3,4,epsilon=0.1 rms_norm:3,8
rms_norm:2,3,4,axis=1,epsilon=0.01 batch_norm:2,3,4,5 batch_norm:2,3,4,axis=2 attention:2,2,5,6,4
attention:1,2,6,6,4,causal=true attention:1,2,4,6,4,causal=true,scale=0.3 gelu:3,4
gelu:3,4,approximate=tanh leaky_relu:3,4,negative_slope=0.2 clip:3,4,a_min=-0.5
clip:3,4,a_min=-2,a_max=3:int32 cast:3,4,out_dtype=int32 cast:3,4,out_dtype=bfloat16
cast:3,4,out_dtype=float32:int8 abs:3,4 abs:3,4:int32 ceil:3,4 cos:3,4 erf:3,4 exp:3,4 floor:3,4
log:3,4 negative:3,4 negative:3,4:int32 relu:2,3,4 round:3,4 rsqrt:3,4 sigmoid:3,4 silu:3,4 sin:3,4
sqrt:3,4 tan:3,4 tanh:3,4 trunc:3,4 add:7 add:3,4,other=4 add:3,4,other=3x1 add:4,other=2x3x1
divide:3,4,other=1x4 maximum:3,4 minimum:3,4:int32 multiply:2,3,4,other=3x1 power:3,4
subtract:3,4,other=1 sum:3,4,5 sum:3,4,5,axis=1 sum:3,4,5,axis=0x2 sum:3,4,5,axis=-1,keepdims=true
sum:3,4,5:int32 sum:3,4,5,axis=0x2,keepdims=true mean:3,4,5,axis=1x2 mean:3,4 max:3,4,5,axis=0
min:3,4,5,axis=0x1,keepdims=true prod:3,4,axis=1 row_sum:3,9 argmax:3,4,5,axis=1 argmax:3,4,5
argmax:3,4,5,axis=0x2 argmax:3,4,5,axis=0x2,keepdims=true argmax:20,50:int8 argmin:3,4,axis=-1
argmin:20,50,axis=1:int32 argmin:7 transpose:3,5 transpose:2,3,4 transpose:2,3,4,axes=1x0x2
transpose:5 concat:2,3 concat:2,3,axis=1 concat:2,3,sizes=1x4x2,axis=-1 pad:3,4
pad:3,4,pad_before=1x0,pad_after=2x3,pad_value=1.5 pad:3,4,pad_before=0,pad_after=1:int32
take:6,4,indices=5 take:6,4,indices=2x3,axis=1 take:3,6,4,indices=5,axis=1,index_dtype=int64
gather:4,8 gather:4,8,indices=4x3,axis=1 gather:4,8,indices=2x5 embedding:10,4,7
embedding:10,4,2,3,index_dtype=int64 cumsum:9 cumsum:3,5 cumsum:3,5,axis=0
cumsum:2,3,4,axis=1:int32
""".split()  # noqa: SIM905 - as they are typed


@pytest.mark.parametrize("spec", SPECS)
def test_operators_compute_what_their_references_do(spec: str) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, seed=2)
    *given, output = func.buffers
    expected = {output.name: ops.reference(spec)(*(inputs[b.name] for b in given))}
    computed = interpret(func, inputs)
    assert computed.keys() == expected.keys()
    compare(func, expected, computed)
    if flops(func) < 2000:
        compare(func, evaluate(func, inputs), computed)
    arrays = [*(inputs[b.name].copy() for b in given), np.zeros_like(computed[output.name])]
    lw.build(func)(*arrays)
    compare(func, {output.name: arrays[-1]}, computed)


@pytest.mark.parametrize("spec", SPECS)
def test_operators_print_and_parse(spec: str) -> None:
    func = ops.from_spec(spec)
    assert structural_equal(parse(script(func)), func)
    assert func.name == spec.split(":", maxsplit=1)[0]


def test_every_operator_is_tested() -> None:
    assert {spec.split(":")[0] for spec in SPECS} == ops.OPERATORS.keys()


def test_the_library_shows_operators_and_what_makes_them_only() -> None:
    extra = {"OPERATORS", "OperatorError", "from_spec", "reference"}
    assert set(dir(ops)) == ops.OPERATORS.keys() | extra
    assert all(getattr(ops, name) is operator for name, operator in ops.OPERATORS.items())
    assert all(operator.__doc__ for operator in ops.OPERATORS.values())


def test_operators_can_be_called_by_name() -> None:
    func: PrimFunc = ops.conv2d(1, 64, 56, 56, 64, kernel=3, stride=1, padding=1)
    assert structural_equal(func, ops.from_spec("conv2d:1,64,56,56,64,3,1,1"))
    by_name = ops.reference("matmul", 2, 3, 4, activation="relu")
    a, b = np.ones((2, 4), np.float32), -np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(by_name(a, b), np.zeros((2, 3)))


def test_the_identity_of_a_workload_does_not_change() -> None:
    """What is kept of a workload is found again by its hash, whatever release asks."""
    known = {
        "matmul:5,6,7": "99c78ac8fcb15771",
        "mm_relu:4,5,6": "21df625e7c41a5c1",
        "matmul_bias_relu:4,5,6": "424cc3174eb9702e",
        "dense:4,5,6": "8a6a052f598d06f9",
        "batch_matmul:2,3,4,5": "b45455e61536c7dc",
        "conv2d:1,4,9,9,6,3,1,2,2,2": "03c5499f19a15b99",
        "depthwise_conv2d:1,3,9,9,3,2,1,2": "9f7f5aa45398567a",
        "softmax:4,9": "115d4a97016695fe",
        "layer_norm:4,9": "dff70a97d8389b6d",
        "transpose:3,5": "28bcfb29c0731c3d",
        "row_sum:3,9": "a2da5d801d60d027",
        "relu:2,3,4": "a83f344d26b8fe48",
        "add:7": "905fbb90726bb2d5",
    }
    assert {s: structural_hash(ops.from_spec(s))[:16] for s in known} == known


def test_a_convolution_without_padding_has_no_pad_block() -> None:
    assert "pad_temp" not in script(ops.conv2d(1, 3, 8, 8, 4, 3))
    assert "pad_temp" in script(ops.conv2d(1, 3, 8, 8, 4, 3, padding=1))


def test_indices_that_are_not_there_are_clipped() -> None:
    func = ops.embedding(3, 2, 4)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    indices = np.array([-5, 0, 2, 2_000_000_000], np.int32)
    out = np.zeros((4, 2), np.float32)
    lw.build(func)(table, indices, out)
    np.testing.assert_array_equal(out, table[[0, 0, 2, 2]])


def test_an_argmax_takes_the_first_of_equal_elements() -> None:
    a = np.array([[1, 3, 3], [2, 2, 1]], np.float32)
    out = np.zeros(2, np.int32)
    lw.build(ops.argmax(2, 3, axis=1))(a, out)
    np.testing.assert_array_equal(out, [1, 0])
    lw.build(ops.argmin(2, 3, axis=1))(-a, out)
    np.testing.assert_array_equal(out, [1, 0])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("matmull:1,2,3", "unknown operator 'matmull': did you mean matmul"),
        ("", "unknown operator ''; known operators: abs, add, "),
        ("matmul", "matmul takes 3 numbers, got 0: expected matmul:m,n,k[:dtype]"),
        ("matmul:1,2", "matmul takes 3 numbers, got 2"),
        ("matmul:1,2,3,4", "matmul takes 3 numbers, got 4"),
        ("matmul:1,2,x", "'x' is no integer"),
        ("matmul:1,2,", "'' is no integer"),
        ("matmul:1,2,3.0", "'3.0' is no integer"),
        ("matmul:1,2,99999999999999999999", "is no integer"),
        ("matmul:1,2,3:float33", "type 'float33' is not supported: expected one of bfloat16"),
        ("matmul:1,2,3:bool", "type 'bool' is not supported"),
        ("matmul:1,2,3:float32:x", "expected matmul:m,n,k[:dtype]"),
        ("matmul:0,2,3", "matmul: m is 0: expected 1 to 2147483647"),
        ("matmul:1,-2,3", "matmul: n is -2"),
        ("matmul:1,2,2147483648", "matmul: k is 2147483648"),
        ("matmul:1,2x3,4", "matmul: n is (2, 3): expected an integer"),
        ("matmul:100000,100000,3", "matmul: buffer C has 40000000000 bytes"),
        ("matmul:1,2,3,bais=true", "matmul has no option 'bais': did you mean bias?"),
        ("matmul:1,2,3,m=4", "m is given twice"),
        ("matmul:1,2,3,bias=4", "matmul: bias is 4: expected true or false"),
        ("matmul:1,2,3,bias=$", "bias='$' is no number and no word"),
        ("matmul:1,2,3,activation=sine", "activation is 'sine': expected one of gelu, "),
        ("matmul:1,2,3,activation=gelu:int32", "type 'int32' is not supported: expected one of b"),
        ("matmul:1,2,3,out_dtype=int32", "products of float32 are not added up in int32"),
        ("matmul:1,2,3,batch=0", "batch0 is 0"),
        ("softmax:4,4:int32", "type 'int32' is not supported"),
        ("softmax:4,4,axis=2", "softmax: axis is 2: expected -2 to 1"),
        ("relu:", "relu takes 1 to 8 numbers, got 0: expected relu:d0[,d1,...][:dtype]"),
        ("conv2d:1,3,2,2,4,3", "a window of 3 elements does not fit into a height of 2"),
        ("conv2d:1,3,8,8,4,3,0", "conv2d: stride is 0"),
        ("conv2d:1,3,8,8,4,3,1,-1", "conv2d: padding is -1"),
        ("conv2d:1,3,8,8,4,3,1,1,1,2", "2 groups do not divide 3 input and 4 output channels"),
        ("conv2d:1,3,8,8,4,3x3x3", "conv2d: kernel is (3, 3, 3): expected 1 or 2 numbers"),
        ("conv2d:1,3,8,8,4,3,layout=HWCN", "layout is 'HWCN': expected one of NCHW, NHWC"),
        ("conv2d_transpose:1,3,8,8,4,3,1,3", "padding is (3, 3): expected less than (3, 3)"),
        ("conv2d_transpose:1,3,8,8,4,3,2,1,2", "output_padding is (2, 2): expected less than"),
        ("max_pool2d:1,3,8,8,3,1,2", "expected at most half of the kernel"),
        ("avg_pool2d:1,3,8,8,3:int32", "type 'int32' is not supported"),
        ("add:3,4,other=5", "shapes (3, 4) and (5,) are not broadcast to a common one"),
        ("sum:3,4,axis=1x1", "sum: axis is (1, 1): expected different axes"),
        ("sum:3,4,axis=true", "axis is True: expected an integer"),
        ("transpose:3,4,axes=0", "expected all 2 axes"),
        ("transpose:3,4,axes=0x0", "expected different axes"),
        ("concat:3,4,axis=2", "concat: axis is 2"),
        ("pad:3,4,pad_before=0", "there is nothing to put"),
        ("gather:3,4,indices=4", "indices of shape (4,) do not fit a tensor of shape (3, 4)"),
        ("take:3,4,indices=2,index_dtype=float32", "expected one of int32, int64"),
        ("clip:3,a_min=2", "a_min is 2, a_max is 1.0"),
        ("clip:3,a_min=0.5:int32", "expected a constant of type int32, got 0.5"),
        ("gelu:3,approximate=fast", "approximate is 'fast': expected one of none, tanh"),
        ("x" * 2000, "an operator of 2000 characters"),
    ],
)
def test_mistakes_are_named(spec: str, message: str) -> None:
    with pytest.raises(ops.OperatorError) as caught:
        ops.from_spec(spec)
    assert message in str(caught.value)


def test_numbers_must_be_integers() -> None:
    with pytest.raises(ops.OperatorError, match=r"matmul: m is 2\.5: expected an integer"):
        ops.matmul(2.5, 3, 4)  # type: ignore[arg-type]
