import ml_dtypes
import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import find_operator
from tests.graph_operators import assert_computes_its_reference


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 5), (5, 3)),
        ((2, 3, 4, 5), (2, 3, 5, 6)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((2, 3, 4), (4, 6)),
        ((5,), (5,)),
        ((5,), (5, 3)),
        ((4, 5), (5,)),
        ((5,), (2, 5, 3)),
        ((2, 3, 4, 5), (5,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_product_of_any_ranks_is_that_of_numpy(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    arrays = [(rng.random(shape) * 10).astype(dtype) for shape in shapes]
    assert_computes_its_reference("matmul", arrays)


def test_products_of_bytes_are_summed_in_32_bits() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 256, (2, 4, 70)).astype(np.uint8)
    b = rng.integers(-128, 128, (70, 5)).astype(np.int8)
    assert_computes_its_reference("matmul", [a, b], out_dtype="int32")
    assert_computes_its_reference("matmul", [a, a.swapaxes(1, 2).copy()], out_dtype="int32")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_products_of_other_floats(dtype: type) -> None:
    rng = np.random.default_rng(2)
    arrays: list[Array] = [rng.random(shape).astype(dtype) for shape in ((2, 3, 40), (40, 4))]
    assert_computes_its_reference("matmul", arrays, rtol=1e-2)


def test_shapes_without_a_product_are_refused() -> None:
    operator = find_operator("matmul")
    a, b = TensorType((4, 5), "float32"), TensorType((4, 5), "float32")
    with pytest.raises(ModelError, match=r"matmul of float32 \(4, 5\) and float32 \(4, 5\)"):
        operator.infer_types([a, b], operator.complete({}))
