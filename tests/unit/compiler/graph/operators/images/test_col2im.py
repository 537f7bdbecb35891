import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import Attr, TensorType
from compiler.graph.operator import find_operator
from tests.unit.compiler.graph.operators.checking import Case, check, numbers


def _attrs(
    size: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1, pad: int = 0, dilation: int = 1
) -> dict[str, Attr]:
    rank = len(size)
    return {
        "size": size,
        "kernel": kernel,
        "strides": (stride,) * rank,
        "padding": (pad,) * 2 * rank,
        "dilation": (dilation,) * rank,
    }


def test_windows_are_summed_to_images() -> None:
    check(
        Case("col2im", [numbers(2, 12, 12)], _attrs((4, 5), (2, 2))),
        Case("col2im", [numbers(1, 6, 4)], _attrs((5, 6), (2, 3), stride=2)),
        Case("col2im", [numbers(1, 9, 25)], _attrs((5, 5), (3, 3), pad=1)),
        Case("col2im", [numbers(1, 4, 4, dtype="float16")], _attrs((5, 5), (2, 2), 2, 0, 2)),
        Case("col2im", [numbers(2, 6, 3, dtype="int32")], _attrs((7,), (3,), stride=2)),
        Case("col2im", [numbers(1, 8, 8)], _attrs((3, 3, 3), (2, 2, 2))),
        tolerance=4,
    )


def test_windows_that_do_not_overlap_are_put_beside_each_other() -> None:
    blocks = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    [[image]] = check(Case("col2im", [blocks], _attrs((4, 4), (2, 2), stride=2)))
    np.testing.assert_array_equal(image[0, 0, :2, :2], [[0, 4], [8, 12]])


@pytest.mark.parametrize("shape", [(1, 5, 9), (1, 4, 8), (4, 9)])
def test_windows_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    operator = find_operator("col2im")
    with pytest.raises(ModelError, match="col2im"):
        operator.infer_types(
            [TensorType(shape, "float32")], operator.complete(_attrs((4, 4), (2, 2)))
        )
