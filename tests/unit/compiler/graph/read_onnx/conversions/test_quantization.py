"""Dynamic quantization: sums of integers whose zero points and scales are known at run time."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from compiler.graph.nodes import Array
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference
from compiler.graph.rewrite.simplify import simplify
from tests.plan_runner import compile_and_compare
from tests.targets import here

_RNG = np.random.default_rng(0)


def _bytes(*shape: int) -> Array:
    """Return weights from 0 to 255, with both of them."""
    weights = _RNG.integers(0, 256, shape).astype(np.uint8)
    weights.flat[:2] = 0, 255
    return weights


@pytest.mark.parametrize(
    ("op", "shape", "weights", "points"),
    [
        ("MatMulInteger", (2, 5, 17), _bytes(17, 6), np.uint8(128)),
        ("MatMulInteger", (2, 5, 17), _bytes(17, 6), np.uint8(120)),
        ("MatMulInteger", (5, 16), _bytes(16, 6), np.arange(120, 126, dtype=np.uint8)),
        ("MatMulInteger", (5, 16), _bytes(16, 6).view(np.int8), np.int8(0)),
        ("ConvInteger", (1, 4, 6, 7), _bytes(3, 4, 3, 3), np.uint8(128)),
        ("ConvInteger", (1, 4, 6, 7), _bytes(3, 4, 3, 3), np.uint8(131)),
    ],
)
def test_constant_weights_are_signed_bytes_and_what_they_multiply_unsigned_ones(
    op: str, shape: tuple[int, ...], weights: Array, points: Array
) -> None:
    attrs: dict[str, Any] = {"pads": [1, 2, 0, 1]} if op == "ConvInteger" else {}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "point"]),
        helper.make_node(op, ["q", "w", "point", "points"], ["sums"], **attrs),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.asarray(points), "points"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    read = read_onnx(model.SerializeToString())
    x = _RNG.normal(size=shape).astype(np.float32)
    expected: Any = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(run_reference(read, {"x": x})["y"], expected[0], rtol=1e-5)
    [product] = [n for n in simplify(read).nodes if n.op in ("matmul", "nn.conv2d")]
    is_wide = op == "ConvInteger" and points == 131  # the sum of each window would be needed
    types = ["int32", "int32"] if is_wide else ["uint8", "int8"]
    assert [x.type.dtype for x in product.operands] == types
    compile_and_compare(read, here())
