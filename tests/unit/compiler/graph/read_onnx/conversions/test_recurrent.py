"""Layers step by step are compared with whole sequences, and these with ONNX elsewhere."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Graph
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 2


def _graph(op: str, *, steps: int = STEPS, lengths: bool = False, **attrs: Any) -> Graph:
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "w": (directions, rows, WIDTH),
        "r": (directions, rows, HIDDEN),
    }
    shapes |= {"b": (directions, 2 * rows)}
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, rng.standard_normal(shape).ravel())
        for name, shape in shapes.items()
    ]
    names = ["x", "w", "r", "b", "lengths" if lengths else ""]
    node = helper.make_node(op, names, ["y", "last"], hidden_size=HIDDEN, **attrs)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (steps, BATCH, WIDTH))]
    if lengths:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, (BATCH,)))
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (steps, directions, BATCH, HIDDEN)),
        helper.make_tensor_value_info("last", TensorProto.FLOAT, (directions, BATCH, HIDDEN)),
    ]
    graph = helper.make_graph([node], "layer", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 14)]
    return read_onnx(helper.make_model(graph, opset_imports=opsets).SerializeToString())


def _x() -> Array:
    return np.random.default_rng(1).standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})],
)
def test_a_layer_step_by_step_computes_what_whole_sequences_do(
    op: str, attrs: dict[str, Any], direction: str
) -> None:
    whole = _graph(op, direction=direction, **attrs)
    assert f"nn.{op.lower()}" in {node.op for node in whole.nodes}
    steps = _graph(op, direction=direction, clip=1e6, **attrs)
    assert f"nn.{op.lower()}" not in {node.op for node in steps.nodes}
    expected, results = (run_reference(graph, {"x": _x()}) for graph in (whole, steps))
    for name in ("y", "last"):
        np.testing.assert_allclose(results[name], expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_sequence_ends_at_its_length(op: str, direction: str) -> None:
    lengths = np.array([5, 2, 3], np.int32)
    masked = run_reference(
        _graph(op, lengths=True, direction=direction), {"x": _x(), "lengths": lengths}
    )
    for row, length in enumerate(lengths):
        graph = _graph(op, steps=int(length), direction=direction)
        alone = run_reference(graph, {"x": _x()[:length]})
        np.testing.assert_allclose(
            masked["y"][:length, :, row], alone["y"][:, :, row], rtol=1e-5, atol=1e-6
        )
        assert not masked["y"][length:, :, row].any()
        np.testing.assert_allclose(
            masked["last"][:, row], alone["last"][:, row], rtol=1e-5, atol=1e-6
        )


def test_long_sequences_with_rare_options_are_refused() -> None:
    with pytest.raises(ModelError, match=r"LSTM 'y': a layer over 65 steps .* at most 64"):
        _graph("LSTM", steps=65, clip=1.0)


def test_other_numbers_of_activations_are_refused() -> None:
    with pytest.raises(ModelError, match="expected 3"):
        _graph("LSTM", activations=["Tanh"])
