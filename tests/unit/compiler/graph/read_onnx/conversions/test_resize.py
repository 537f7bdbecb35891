from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from compiler.graph.error import ModelError
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference


def _affine_grid(shape: tuple[int, ...], size: tuple[int, ...], corners: int) -> ModelProto:
    graph = helper.make_graph(
        [helper.make_node("AffineGrid", ["theta", "size"], ["grid"], align_corners=corners)],
        "affine_grid",
        [helper.make_tensor_value_info("theta", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("grid", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(size, np.int64), "size")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def _centers(extent: int, corners: int) -> list[float]:
    if not corners:
        return [(k + 0.5) * 2 / extent - 1 for k in range(extent)]
    return [0.0] if extent == 1 else [k * 2 / (extent - 1) - 1 for k in range(extent)]


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(1, 2, 3, 4), (2, 1, 1, 3), (1, 1, 2, 1, 3)])
def test_an_affine_grid_maps_the_center_of_each_element(
    size: tuple[int, ...], corners: int
) -> None:
    rank = len(size) - 2
    theta: Any = np.random.default_rng(0).standard_normal((size[0], rank, rank + 1))
    theta = theta.astype(np.float32)
    model = _affine_grid(theta.shape, size, corners)
    grid = run_reference(read_onnx(model), {"theta": theta})["grid"]
    assert grid.shape == (size[0], *size[2:], rank)
    for at in np.ndindex(*size[2:]):
        places = zip(at, size[2:], strict=True)
        point = [_centers(extent, corners)[k] for k, extent in places][::-1]
        for number, matrix in enumerate(theta):
            expected = matrix @ np.array([*point, 1.0])
            np.testing.assert_allclose(grid[(number, *at)], expected, atol=1e-5)


def test_an_affine_grid_of_other_extents_is_refused() -> None:
    with pytest.raises(ModelError, match=r"AffineGrid 'grid': the size of the images is \(1, 2,"):
        read_onnx(_affine_grid((1, 3, 4), (1, 2, 3, 4), 0))
    with pytest.raises(ModelError, match="expected 4 or 5 extents"):
        read_onnx(_affine_grid((1, 2, 3), (1, 2, 0, 4), 0))
