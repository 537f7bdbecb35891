import itertools

import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.operator import find_operator
from compiler.graph.operators.images.grid_sample import METHODS, PADDING_MODES
from tests.unit.compiler.graph.operators.checking import Case, check, numbers


@pytest.mark.parametrize("method", METHODS)
def test_images_are_sampled_at_positions(method: str) -> None:
    x, grid = numbers(2, 3, 5, 4), numbers(2, 3, 6, 2, seed=1)
    volume, steps = numbers(1, 2, 3, 4, 2), numbers(1, 2, 3, 2, 3, seed=2)
    check(
        *(
            Case("image.grid_sample", arrays, {"method": method, "padding_mode": mode, **corners})
            for mode, is_aligned in itertools.product(PADDING_MODES, (False, True))
            for corners in [{"align_corners": is_aligned}]
            for arrays in ([x, grid], [x[:, :, :1], grid])
        ),
        Case("image.grid_sample", [volume, steps], {"method": method}),
        tolerance=16,
    )


def test_the_corners_of_the_grid_are_those_of_the_image() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    grid = np.array([[[[-1, -1], [1, -1], [0, 0], [1, 1]]]], np.float32)
    [[result]] = check(Case("image.grid_sample", [x, grid], {"align_corners": True}))
    np.testing.assert_allclose(result[0, 0, 0], [0, 2, 2.5, 5])


def test_a_cubic_position_beyond_the_border_keeps_its_weights() -> None:
    """It is 2.25: the element before it has the weight of the distance 1.25."""
    x = np.array([[[[0, 0, 1]]]], np.float32)
    grid = np.array([[[[1.25, 0]]]], np.float32)
    [[result]] = check(
        Case(
            "image.grid_sample",
            [x, grid],
            {"method": "bicubic", "padding_mode": "border", "align_corners": True},
        )
    )
    assert result.item() == 1.10546875


def test_a_position_that_is_no_number_reads_no_memory_outside() -> None:
    x, grid = numbers(1, 1, 2, 2), np.full((1, 1, 1, 2), np.nan, np.float32)
    attrs = {"method": "nearest", "padding_mode": "border"}
    check(Case("image.grid_sample", [np.ones_like(x), grid], attrs))


def test_grids_of_other_shapes_are_refused() -> None:
    operator = find_operator("image.grid_sample")
    x = TensorType((1, 2, 4, 4), "float32")
    for shape in [(1, 3, 3), (1, 3, 3, 3), (2, 3, 3, 2)]:
        with pytest.raises(ModelError, match=r"image.grid_sample of \(1, 2, 4, 4\)"):
            operator.infer_types([x, TensorType(shape, "float32")], operator.complete({}))
