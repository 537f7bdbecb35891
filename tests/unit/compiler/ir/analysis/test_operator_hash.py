import pytest

from compiler.ir.analysis.structural import operator_hash
from compiler.ops.spec import from_spec
from compiler.script import parse

TEXT = """
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("matmul:512,512,512", "matmul:7,300,64"),
        ("conv2d:1,64,56,56,64,3,1,1", "conv2d:2,3,9,17,5,5,1,2"),
        ("conv2d:1,64,56,56,64,3,2,1", "conv2d:1,64,56,56,64,3,3,1"),
        ("softmax:1024,1024", "softmax:3,77"),
        ("layer_norm:8,768", "layer_norm:16,100"),
    ],
)
def test_shapes_do_not_count(one: str, other: str) -> None:
    assert operator_hash(from_spec(one)) == operator_hash(from_spec(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("matmul:8,8,8", "dense:8,8,8"),
        ("matmul:8,8,8", "matmul:8,8,8:float64"),
        ("matmul:8,8,8", "batch_matmul:1,8,8,8"),
        ("conv2d:1,4,8,8,4,3,1,1", "conv2d:1,4,8,8,4,3,1,0"),
        ("conv2d:1,4,8,8,4,3,1,1", "conv2d:1,4,8,8,4,3,2,1"),
        ("max:8,8", "min:8,8"),
        ("relu:64", "abs:64"),
    ],
)
def test_operators_and_types_do(one: str, other: str) -> None:
    assert operator_hash(from_spec(one)) != operator_hash(from_spec(other))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("vi", "x"),
        ("def f", "def other"),
        ('T.block("B")', 'T.block("C")'),
        ("2.0", "3.0"),
        ("4, 8", "16, 16"),
    ],
)
def test_names_and_constants_do_not(old: str, new: str) -> None:
    assert operator_hash(parse(TEXT.replace(old, new))) == operator_hash(parse(TEXT))


@pytest.mark.parametrize(
    ("old", "new"), [("2.0", "0.0"), ("A[vi, vj] *", "A[vi, vj] +"), ("float32", "float64")]
)
def test_a_constant_that_vanishes_does(old: str, new: str) -> None:
    assert operator_hash(parse(TEXT.replace(old, new))) != operator_hash(parse(TEXT))


def test_a_square_is_no_operator_of_its_own() -> None:
    assert operator_hash(from_spec("matmul:8,8,8")) == operator_hash(from_spec("matmul:8,9,10"))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a PrimFunc"):
        operator_hash(3)  # type: ignore[arg-type]
