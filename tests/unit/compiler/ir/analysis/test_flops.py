import pytest

from compiler import ops
from compiler.ir.analysis.flops import flops
from compiler.script import parse


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("matmul:3,4,5", 2 * 3 * 4 * 5),
        ("mm_relu:3,4,5", 2 * 3 * 4 * 5 + 3 * 4),
        ("conv2d:1,64,56,56,64,3,1,1", 2 * 64 * 64 * 56 * 56 * 9),
        ("conv2d:1,8,6,6,4,3,1,1,1,2", 2 * 4 * 4 * 6 * 6 * 9),
        ("softmax:2,8", 2 * (8 + 8 * 2 + 8 + 8)),
        ("transpose:4,4", 0),
        ("matmul:3,4,5:int32", 2 * 3 * 4 * 5),
        ("quantized_dense:3,4,5", 3 * 4 * (2 * 5 + 4)),  # scaled, rounded and clamped
        ("gather:8,4", 0),
    ],
)
def test_flops_of_operators(spec: str, expected: int) -> None:
    assert flops(ops.from_spec(spec)) == expected


def test_of_a_choice_the_dearer_side_counts() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        if i < 4:
            A[i] = T.if_then_else(A[i] < 0.0, 0, A[i] * A[i] + 1.0)
        else:
            A[i] = T.exp(A[i // 2]) * 2.0 - 1.0
"""
    assert flops(parse(text)) == 8 * 3


TRIANGLE = """
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32")):
    for i in range({n}):
        for j in range(i + 1):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                for k in range(vj + 1):
                    B[vi, vj] = A[vi, k] * 2.0
"""


@pytest.mark.parametrize("n", [1, 8, 24])
def test_extents_that_depend_on_outer_loops_are_counted_in_each_iteration(n: int) -> None:
    expected = sum(j + 1 for i in range(n) for j in range(i + 1))
    assert flops(parse(TRIANGLE.format(n=n))) == expected


def test_many_iterations_of_varying_extent_are_counted_by_the_middle_one() -> None:
    triangle = """
@T.prim_func
def main(A: T.Buffer((5000,), "float32")):
    for i in range(5000):
        for j in range(i + 1):
            A[j] = A[j] + 1.0
"""
    assert flops(parse(triangle)) == pytest.approx(5000 * 5001 / 2, rel=1e-3)


def test_an_extent_out_of_a_buffer_counts_as_one_iteration() -> None:
    text = """
@T.prim_func
def main(N: T.Buffer((1,), "int32"), A: T.Buffer((8,), "float32")):
    for i in range(N[0]):
        A[0] = A[0] + 1.0
"""
    assert flops(parse(text)) == 1
