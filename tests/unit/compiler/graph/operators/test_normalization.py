from typing import Any

import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.operator import find_operator
from tests.graph_operators import assert_computes_its_reference, onnx_results


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape, np.float32) + 0.1


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_along_any_axis(axis: int) -> None:
    x = _random(3, 4, 5) * 50
    [result] = assert_computes_its_reference("nn.softmax", [x], axis=axis)
    [expected] = onnx_results("Softmax", [x], axis=axis)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-7)
    [result] = assert_computes_its_reference("nn.log_softmax", [x], axis=axis, rtol=1e-4)
    [expected] = onnx_results("LogSoftmax", [x], axis=axis)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_the_softmax_of_narrow_floats_is_computed_in_float32() -> None:
    assert_computes_its_reference("nn.softmax", [_random(3, 100).astype(np.float16)], rtol=2e-3)


@pytest.mark.parametrize("axes", [(-1,), (1, 2), (0, 1, 2), (-2, -1)])
def test_layer_norms_over_the_last_axes(axes: tuple[int, ...]) -> None:
    x = _random(3, 4, 5)
    inner = x.shape[min(axes) % 3 if min(axes) < 0 else min(axes) :]
    gamma, beta = _random(*inner), _random(*inner)
    [result] = assert_computes_its_reference(
        "nn.layer_norm", [x, gamma, beta], axes=axes, rtol=1e-4
    )
    [expected] = onnx_results("LayerNormalization", [x, gamma, beta], axis=axes[0])
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)
    assert_computes_its_reference("nn.rms_norm", [x, gamma], axes=axes)


def test_layer_norms_refuse_other_axes() -> None:
    x, row = TensorType((3, 4, 5), "float32"), TensorType((4,), "float32")
    operator = find_operator("nn.layer_norm")
    with pytest.raises(ModelError, match=r"axes are \(1,\): expected the last of 3 dimensions"):
        operator.infer_types([x, row, row], {"axes": (1,), "epsilon": 1e-5})


def test_batch_norms_scale_channels() -> None:
    arrays = [_random(2, 3, 4), *(_random(3) + n for n in range(4))]
    [result] = assert_computes_its_reference("nn.batch_norm", arrays)
    [expected] = onnx_results("BatchNormalization", arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_group_norms_and_instance_norms() -> None:
    arrays = [_random(2, 6, 3, 4), _random(6), _random(6)]
    [result] = assert_computes_its_reference("nn.group_norm", arrays, num_groups=6, rtol=1e-4)
    [expected] = onnx_results("InstanceNormalization", arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)
    [result] = assert_computes_its_reference("nn.group_norm", arrays, num_groups=2, rtol=1e-4)
    groups = [arrays[0].reshape(2, 2, -1), np.ones(2, np.float32), np.zeros(2, np.float32)]
    [normal] = onnx_results("InstanceNormalization", groups)
    scaled = normal.reshape(2, 6, 3, 4) * arrays[1][:, None, None] + arrays[2][:, None, None]
    np.testing.assert_allclose(result, scaled, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_local_response_norms_over_windows_of_channels(size: int) -> None:
    attrs: dict[str, Any] = {"size": size, "alpha": 0.2, "beta": 0.5, "bias": 2.0}
    x = _random(5, 5, 3, 3)  # the reference of ONNX takes as many images as channels
    [result] = assert_computes_its_reference("nn.lrn", [x], **attrs)
    [expected] = onnx_results("LRN", [x], **attrs)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
