from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from compiler.graph.error import ModelError
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference


def _model(op: str, shape: tuple[int, ...], *constants: Any, **attributes: Any) -> ModelProto:
    names = [f"c{k}" if array is not None else "" for k, array in enumerate(constants)]
    tensors = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in zip(names, constants, strict=True)
        if array is not None
    ]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *names], ["y"], **attributes)],
        "signal",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def _signal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_frames_of_a_complex_signal_are_windowed_and_transformed() -> None:
    x, window = _signal(2, 30, 2), np.hanning(8).astype(np.float32)
    model = _model("STFT", x.shape, np.int64(5), window, np.int64(8), onesided=0)
    result = run_reference(read_onnx(model), {"x": x})["y"]
    signal = x[..., 0] + 1j * x[..., 1]
    frames = np.stack([signal[:, k : k + 8] for k in range(0, 23, 5)], axis=1)
    expected = np.fft.fft(frames * window)
    np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 30), (2, 30, 1)])
def test_a_signal_without_imaginary_parts_is_real(shape: tuple[int, ...]) -> None:
    x = _signal(*shape)
    model = _model("STFT", shape, np.int64(7), None, np.int64(8))
    result = run_reference(read_onnx(model), {"x": x})["y"]
    frames = np.stack([x.reshape(2, 30)[:, k : k + 8] for k in range(0, 23, 7)], axis=1)
    expected = np.fft.rfft(frames)
    np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], expected, atol=1e-5)


def test_frames_of_an_illegal_signal_are_refused() -> None:
    for shape, step, words in (
        ((30,), 7, r"expected extents \(batch, time\)"),
        ((2, 30, 3), 7, "expected extents"),
        ((2, 30), 0, "8, 0 apart: expected 1 or more"),
    ):
        with pytest.raises(ModelError, match=words):
            read_onnx(_model("STFT", shape, np.int64(step), None, np.int64(8)))


@pytest.mark.parametrize("length", [4, 10, 16])
def test_a_transform_pads_or_crops_its_signal(length: int) -> None:
    x = _signal(10, 3, 1)
    model = _model("DFT", x.shape, np.int64(length), np.int64(0), onesided=1)
    result = run_reference(read_onnx(model), {"x": x})["y"]
    expected = np.fft.rfft(x[..., 0], length, axis=0)
    np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], expected, atol=1e-5)


def test_a_transform_along_the_parts_or_of_any_length_is_refused() -> None:
    with pytest.raises(ModelError, match="DFT 'y': a transform along axis -1"):
        read_onnx(_model("DFT", (4, 2), None, np.int64(-1)))
    with pytest.raises(ModelError, match="a transform of length 1099511627776"):
        read_onnx(_model("DFT", (4, 2), np.int64(1 << 40), np.int64(0)))
