import numpy as np
import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant
from compiler.graph.rewrite.move_quantization import move_quantization
from tests.graph_rewrites import number, operators_after

_SCALE, _POINT = number(0.25), constant(np.int8(-3))


def _builder() -> tuple[GraphBuilder, TensorValue]:
    builder = GraphBuilder()
    return builder, builder.input("x", TensorType((2, 3, 4), "float64"))


def _float(b: GraphBuilder, x: TensorValue | Constant, scale: Constant = _SCALE) -> TensorValue:
    return b.add("dequantize", x, scale, _POINT, out_dtype="float64")


def test_movements_of_floats_move_the_bytes_that_make_them() -> None:
    b, x = _builder()
    floats = _float(b, b.add("quantize", x, _SCALE, _POINT))
    moved = b.add("permute_dims", b.add("reshape", floats, shape=(2, 12)), axes=(1, 0))
    graph = b.finish([moved], ["y"])
    assert operators_after(graph, move_quantization) == [
        "quantize", "reshape", "permute_dims", "dequantize",
    ]  # fmt: skip


def test_weights_keep_the_scales_of_their_axis() -> None:
    b, x = _builder()
    rng = np.random.default_rng(0)
    weights, scales = constant(rng.integers(-9, 9, (5, 4)).astype(np.int8)), constant(rng.random(5))
    floats = b.add("dequantize", weights, scales, axis=0, out_dtype="float64")
    columns = b.add("permute_dims", floats, axes=(1, 0))
    graph = b.finish([b.add("matmul", x, columns)], ["y"])
    assert operators_after(graph, move_quantization) == ["dequantize", "matmul"]


@pytest.mark.parametrize("op", ["add", "multiply", "subtract", "divide"])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("is_last", [False, True])
def test_what_is_moved_is_quantized_first(op: str, is_first: bool, is_last: bool) -> None:
    b, x = _builder()
    moved = b.add("permute_dims", x, axes=(2, 0, 1))
    three = constant(np.full(1, 3.0))
    operands = (three, moved) if is_first else (moved, three)
    mapped = b.add("reshape", b.add(op, *operands), shape=(4, 6))
    last = mapped if is_last else b.add("abs", mapped)
    graph = b.finish([b.add("quantize", last, _SCALE, _POINT)], ["y"])
    expected = [op, "quantize", "permute_dims", "reshape"]
    if not is_last:
        expected = ["permute_dims", op, "reshape", "abs", "quantize"]
    assert operators_after(graph, move_quantization) == expected


def test_floats_that_something_else_reads_stay() -> None:
    b, x = _builder()
    moved = b.add("permute_dims", x, axes=(2, 0, 1))
    graph = b.finish([moved, b.add("quantize", moved, _SCALE)], ["y", "z"])
    assert operators_after(graph, move_quantization) == ["permute_dims", "quantize"]


def _requantized(scale: Constant, point: Constant) -> Graph:
    b, x = _builder()
    moved = b.add("permute_dims", _float(b, b.add("quantize", x, _SCALE, _POINT)), axes=(2, 0, 1))
    return b.finish([b.add("quantize", moved, scale, point)], ["y"])


def test_bytes_that_are_quantized_again_alike_stay() -> None:
    operators = operators_after(_requantized(_SCALE, _POINT), move_quantization)
    assert operators == ["quantize", "permute_dims"]


@pytest.mark.parametrize(
    ("scale", "point"), [(number(0.5), _POINT), (_SCALE, constant(np.uint8(3)))]
)
def test_bytes_that_are_quantized_otherwise_become_floats(scale: Constant, point: Constant) -> None:
    b, x = _builder()
    floats = _float(b, b.add("quantize", x, _SCALE, _POINT))
    attrs = {"out_dtype": point.type.dtype}
    graph = b.finish([b.add("quantize", floats, scale, point, **attrs)], ["y"])
    assert operators_after(graph, move_quantization) == ["quantize", "dequantize", "quantize"]
