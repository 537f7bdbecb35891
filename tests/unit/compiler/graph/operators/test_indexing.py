import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, TensorType
from compiler.graph.operator import find_operator
from tests.unit.compiler.graph.operators.checking import Case, check, numbers

X = numbers(4, 5, 3)


def _indices(*shape: int, low: int = -4, high: int = 4, dtype: str = "int64") -> np.ndarray:
    return np.random.default_rng(5).integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bool", "float16", "int8"])
def test_elements_at_indices(dtype: str) -> None:
    x = numbers(4, 5, 3, dtype=dtype)
    check(
        Case("take", [x, _indices(2, 6)]),
        Case("take", [x, _indices(dtype="int32")], {"axis": 1}),
        Case("take", [x, _indices(7, low=-3, high=3)], {"axis": -1}),
        Case("take", [x, _indices(3, low=0, dtype="uint8")]),
        Case("gather_elements", [x, _indices(6, 5, 2)]),
        Case("gather_elements", [x, _indices(2, 7, 3, dtype="int32")], {"axis": -2}),
        Case("gather_nd", [x, _indices(2, 6, 1)]),
        Case("gather_nd", [x, _indices(6, 3, low=-3, high=3)]),
        Case("gather_nd", [x, _indices(4, 2, 2, low=-3, high=3)], {"batch_dims": 1}),
    )


def test_indices_out_of_range_are_clipped() -> None:
    [[taken]] = check(Case("take", [np.arange(4), np.array([100, -100, 3])]))
    np.testing.assert_array_equal(taken, [3, 0, 3])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_narrow_indices_reach_long_axes(dtype: str) -> None:
    indices = np.array([127, 5], dtype)
    check(
        Case("take", [numbers(300), indices]),
        Case("one_hot", [indices, np.array(1), np.array(0)], {"depth": 300}),
    )


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_updates_at_indices(dtype: str) -> None:
    x = numbers(4, 5, dtype=dtype)
    rows, cells = _indices(3, 5), _indices(6, 2)
    check(
        *(
            case
            for reduction in ("update", "add", "mul", "max", "min")
            for attrs in [{"reduction": reduction}]
            for case in (
                Case("scatter_elements", [x, rows, numbers(3, 5, dtype=dtype, seed=1)], attrs),
                Case(
                    "scatter_elements",
                    [x, rows.T.copy()[:4], numbers(4, 3, dtype=dtype, seed=1)],
                    {"axis": -1, **attrs},
                ),
                Case("scatter_nd", [x, cells, numbers(6, dtype=dtype, seed=2)], attrs),
                Case("scatter_nd", [x, cells[:, :1], numbers(6, 5, dtype=dtype, seed=3)], attrs),
            )
        ),
        tolerance=4,
    )


def test_the_last_of_several_updates_counts() -> None:
    data, indices = np.zeros((2, 2), np.float32), np.array([[1], [1], [-1]])
    updates = np.arange(6, dtype=np.float32).reshape(3, 2)
    [[result]] = check(Case("scatter_nd", [data, indices, updates]))
    np.testing.assert_array_equal(result, [[0, 0], [4, 5]])


def test_one_hot_vectors() -> None:
    indices, on, off = _indices(2, 3, low=-5, high=6), np.array(2.5), np.array(-1.0)
    check(
        Case("one_hot", [indices, on, off], {"depth": 4}),
        Case("one_hot", [_indices(3), np.array(True), np.array(False)], {"depth": 4, "axis": 0}),
        Case("one_hot", [_indices(), np.array(7), np.array(0)], {"depth": 3}),
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_sorted_elements(dtype: str) -> None:
    x = np.rint(numbers(2, 13, dtype=dtype)).astype(dtype)
    check(
        Case("topk", [x], {"k": 3}),
        Case("topk", [x], {"k": 2, "axis": 0, "largest": False}),
        Case("sort", [x], {"axis": -1, "descending": True}),
        Case("argsort", [x], {"axis": 1}),
    )


def test_sorted_rows_of_any_length() -> None:
    check(
        Case("topk", [numbers(40)], {"k": 20}),
        Case("topk", [numbers(2, 18)], {"k": 17, "largest": False}),
        Case("sort", [numbers(64)], {"axis": 0}),
        Case("sort", [numbers(1)]),
    )


def test_nan_is_greater_than_any_number() -> None:
    x = np.array([1, np.nan, np.inf, -np.inf, np.nan, 0], np.float32)
    [[up], [down]] = check(Case("argsort", [x]), Case("argsort", [x], {"descending": True}))
    np.testing.assert_array_equal(up, [3, 5, 0, 2, 1, 4])
    np.testing.assert_array_equal(down, [1, 4, 2, 0, 5, 3])


@pytest.mark.parametrize("axis", [0, 1])
def test_reversed_sequences(axis: int) -> None:
    x = numbers(3, 3, 2)
    attrs: dict[str, Attr] = {"seq_axis": axis, "batch_axis": 1 - axis}
    check(Case("reverse_sequence", [x, np.array([1, 3, 2])], attrs))


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, indices = TensorType((4, 5), "float32"), TensorType((2, 3), "int64")
    for op, operands, message in [
        ("take", [x, x], "take of float32: expected the type integer"),
        ("gather_elements", [x, TensorType((2, 9), "int64")], "no more elements along the others"),
        ("gather_nd", [x, indices], "the last axis has 3 elements: expected 1 to 2"),
        ("scatter_elements", [x, indices, x], "expected one shape"),
        ("scatter_nd", [x, TensorType((2, 1), "int64"), x], r"expected updates of \(2, 5\)"),
    ]:
        operator = find_operator(op)
        with pytest.raises(ModelError, match=message):
            operator.infer_types(operands, operator.complete({}))
