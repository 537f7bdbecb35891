"""Each operator: against its reference, against the scalar evaluator, and built."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler import ops
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.dtypes import DType, has_infinity, is_float, smallest_and_largest
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import param_roles
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.ir.text.printer import script
from compiler.ops.recognize import recognize
from compiler.ops.spec import Spec
from compiler.script import parse
from tests.unit.compiler.ops.records import described, recorded
from tests.unit.compiler.ops.specs import SPECS

Array = NDArray[Any]
RECORDED = recorded()


@pytest.mark.parametrize("spec", SPECS)
def test_operators_compute_what_their_references_do(spec: str) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, seed=2)
    written = param_roles(func).outputs
    given = [buffer.name for buffer in func.buffers if buffer.name not in written]
    result = ops.reference(spec)(*(inputs[name] for name in given))
    outputs = result if isinstance(result, tuple) else (result,)
    expected = dict(zip(written, outputs, strict=True))
    computed = interpret(func, inputs)
    assert computed.keys() == expected.keys()
    compare(func, expected, computed)
    if flops(func) < 2000:
        compare(func, evaluate(func, inputs), computed)
    arrays = {name: inputs[name].copy() for name in given}
    arrays |= {name: np.zeros_like(array) for name, array in computed.items()}
    lw.build(func)(*(arrays[buffer.name] for buffer in func.buffers))
    compare(func, {name: arrays[name] for name in written}, computed)


@pytest.mark.parametrize("spec", SPECS)
def test_operators_print_and_parse(spec: str) -> None:
    func = ops.from_spec(spec)
    assert structural_equal(parse(script(func)), func)
    assert func.name == spec.split(":", maxsplit=1)[0]


def test_every_operator_is_tested() -> None:
    assert {spec.split(":")[0] for spec in SPECS} == ops.OPERATORS.keys()


def test_the_library_shows_operators_and_what_makes_them_only() -> None:
    extra = {"OPERATORS", "OperatorError", "from_spec", "reference", "tensors"}
    assert set(dir(ops)) == set(ops.__all__) == ops.OPERATORS.keys() | extra
    assert set(dir(ops.tensors)) == ops.OPERATORS.keys()
    for name, operator in ops.OPERATORS.items():
        assert getattr(ops, name) is operator.program
        assert getattr(ops.tensors, name) is operator.tensors
        assert operator.summary
        assert operator.tensors.__doc__
    with pytest.raises(AttributeError, match="no attribute 'matmull'"):
        getattr(ops, "matmull")  # noqa: B009 - a checker knows that there is none


def test_operators_can_be_called_by_name() -> None:
    func: PrimFunc = ops.conv2d(1, 64, 56, 56, 64, kernel=3, stride=1, padding=1)
    assert structural_equal(func, ops.from_spec("conv2d:1,64,56,56,64,3,1,1"))
    by_name = ops.reference("matmul", 2, 3, 4, activation="relu")
    a, b = np.ones((2, 4), np.float32), -np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(by_name(a, b), np.zeros((2, 3)))


@pytest.mark.parametrize("spec", SPECS)
def test_the_program_of_an_operator_does_not_change(spec: str) -> None:
    """What is stored of a workload is found by its hash, and its traces name its blocks."""
    assert spec in RECORDED, "record it by `python -m tests.unit.compiler.ops.records`"
    assert described(spec) == RECORDED[spec]


def test_any_operator_takes_constant_inputs() -> None:
    func = ops.dense(4, 6, 8, bias=True, constant="W+bias")
    assert [buffer.name for buffer in constant_params(func)] == ["W", "bias"]
    assert structural_equal(func, ops.from_spec("dense:4,6,8,bias=true,constant=W+bias"))
    assert str(recognize(func)) == "matmul:4,6,8,transpose_b=True,bias=True,constant=B+bias"
    text = str(Spec("add", (4,), {"constant": "B", "dtype": "float64"}))
    assert text == "add:4,constant=B:float64"
    assert structural_equal(ops.from_spec(text), ops.add(4, dtype="float64", constant="B"))
    a, b = np.ones((4, 8), np.float32), np.ones((6, 8), np.float32)
    np.testing.assert_array_equal(ops.reference("dense:4,6,8,constant=W")(a, b), a @ b.T)


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


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_first_of_equal_elements_come_first(dtype: DType, largest: bool) -> None:
    low, high = (-np.inf, np.inf) if largest else (np.inf, -np.inf)
    sign = 1 if largest else -1
    rows = [[low] * 37, [high, 1.0] * 18 + [high], [low] * 30 + [0.5] * 6 + [low]]
    a = np.full((4, 37), low, dtype)
    for row, elements in enumerate(rows):
        a[row, : len(elements)] = elements
    a[3] = np.arange(37) // 4 * sign
    values, indices = np.zeros((4, 8), dtype), np.full((4, 8), -1, np.int32)
    lw.build(ops.topk(4, 37, k=8, largest=largest, dtype=dtype))(a, values, indices)
    np.testing.assert_array_equal(indices[0], range(8))
    np.testing.assert_array_equal(indices[1], range(0, 16, 2))
    np.testing.assert_array_equal(indices[2], [*range(30, 36), 0, 1])
    np.testing.assert_array_equal(indices[3], [36, 32, 33, 34, 35, 28, 29, 30])
    np.testing.assert_array_equal(values, np.take_along_axis(a, indices, 1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e4m3fn", "int8"])
def test_an_argmax_of_the_smallest_elements_is_their_first_position(dtype: DType) -> None:
    smallest, largest = smallest_and_largest(dtype)
    if is_float(dtype) and has_infinity(dtype):
        smallest, largest = -np.inf, np.inf
    for make, value in ((ops.argmax, smallest), (ops.argmin, largest)):
        a, out = np.full((2, 37), value, dtype), np.full(2, -7, np.int32)
        func = make(2, 37, axis=1, dtype=dtype)
        lw.build(func)(a, out)
        np.testing.assert_array_equal(out, [0, 0])
        np.testing.assert_array_equal(interpret(func, {"A": a})["B"], [0, 0])


@pytest.mark.parametrize("place", [0, 5, 8])
def test_an_argmax_of_nan_is_a_position(place: int) -> None:
    a, out = np.full((1, 9), -np.inf, np.float32), np.full(1, -7, np.int32)
    a[0, place] = np.nan
    lw.build(ops.argmax(1, 9, axis=1))(a, out)
    assert 0 <= out[0] < 9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("matmull:1,2,3", "unknown operator 'matmull': did you mean matmul"),
        ("", "of a script; known operators: abs, add, "),
        ("matmul", "matmul takes 3 numbers, got 0: expected matmul:m,n,k[:dtype]"),
        ("topk:4,8", "topk needs k=..., by name: expected topk:d0[,d1,...][:dtype] (options: k,"),
        ("matmul:1,2", "matmul takes 3 numbers, got 2"),
        ("matmul:1,2,3,4", "matmul takes 3 numbers, got 4"),
        ("matmul:1,2,float32", "'float32' is not an integer"),
        ("matmul:1,2,", "'' is not an integer"),
        ("matmul:1,2,3.0", "'3.0' is not an integer"),
        ("matmul:1,2,99999999999999999999", "is not an integer"),
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
        ("matmul:1,2,3,bias=$", "bias='$' is neither a number nor a word"),
        ("matmul:1,2,3,activation=sine", "activation is 'sine': expected one of gelu, "),
        ("matmul:1,2,3,activation=gelu:int32", "type 'int32' is not supported: expected one of b"),
        ("matmul:1,2,3,out_dtype=int32", "products of float32 can't be accumulated in int32"),
        ("matmul:1,2,3,constant=W", "constant is 'W': expected inputs joined by +, of A, B"),
        ("matmul:1,2,3,constant=B+C", "constant is 'B+C': expected inputs joined by +, of A, B"),
        ("matmul:1,2,3,constant=true", "constant is True: expected inputs joined by +, of A, B"),
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
        ("add:3,4,other=5", "can't broadcast shapes (3, 4) and (5,) to a common shape"),
        ("sum:3,4,axis=1x1", "sum: axis is (1, 1): expected different axes"),
        ("sum:3,4,axis=true", "axis is True: expected an integer"),
        ("transpose:3,4,axes=0", "expected all 2 axes"),
        ("transpose:3,4,axes=0x0", "expected different axes"),
        ("concat:3,4,axis=2", "concat: axis is 2"),
        ("pad:3,4,pad_before=0", "expected at least one element"),
        ("gather:3,4,indices=4", "indices of shape (4,) do not fit a tensor of shape (3, 4)"),
        ("take:3,4,indices=2,index_dtype=float32", "expected one of int32, int64"),
        ("clip:3,a_min=2", "a_min is 2, a_max is 1.0"),
        ("clip:3,a_min=0.5:int32", "expected a constant of type int32, got 0.5"),
        ("topk:3,5,k=6", "topk: k is 6: expected 5 at most"),
        ("topk:3,50,k=17", "topk: k is 17: expected 16 at most"),
        ("topk:3,5,k=0", "k is 0"),
        ("topk:3,5,k=2:int32", "type 'int32' is not supported"),
        ("group_norm:1,4,3,groups=3", "group_norm: 3 groups do not divide 4 channels"),
        ("group_norm:4,3,groups=3", "A has 2 dimension(s): expected 3 or more"),
        ("group_norm:1,4,3,groups=2,activation=sine", "activation is 'sine'"),
        ("layer_norm:3,4,residual=1", "layer_norm: residual is 1: expected true or false"),
        ("embedding_bag:9,4,2,3,mode=max", "mode is 'max': expected one of sum, mean"),
        ("embedding_bag:9,4,2,3,mode=mean,weights=true", "weights are given, and mode is 'mean'"),
        ("embedding_bag:9,4,2,3,mode=mean:int32", "type 'int32' is not supported"),
        ("embedding_bag:9,4,2,3,total=0", "total is 0"),
        ("softmax:4,4,axis=0,lengths=true", "axis is 0, along which lengths are"),
        ("grouped_query_attention:1,4,3,2,2,4", "3 heads of keys do not divide 4 heads of queries"),
        ("grouped_query_attention:1,4,2,2,2,4,past=-1", "past is -1"),
        ("gelu:3,approximate=fast", "approximate is 'fast': expected one of none, tanh"),
        ("x" * 2000, "an operator of 2000 characters"),
    ],
)
def test_mistakes_are_named(spec: str, message: str) -> None:
    with pytest.raises(ops.OperatorError) as caught:
        ops.from_spec(spec)
    assert message in str(caught.value)


def test_numbers_must_be_integers() -> None:
    with pytest.raises(ops.OperatorError, match="given as text, such as matmul:64,64,64, not None"):
        ops.from_spec(None)  # type: ignore[arg-type]
    with pytest.raises(ops.OperatorError, match=r"matmul: m is 2\.5: expected an integer"):
        ops.matmul(2.5, 3, 4)  # type: ignore[call-overload]
