"""Products of what was quantized: exact sums of the integers themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Array, Graph, Node, TensorType, constant
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference
from compiler.graph.rewrite.simplify import simplify
from compiler.package.lower_model import lower_model
from compiler.target.cpu import CpuTarget
from compiler.user_cache import default_directory
from loopwright.models.schedules import propose_kernel
from tests.graph_rewrites import operators_after
from tests.plan_runner import compile_and_compare
from tests.targets import here
from tuner.replay import base_model
from tuner.task import Task

_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


@dataclass(frozen=True)
class _Layer:
    """A product of two quantized operands; scales are powers of two, so that floats are exact."""

    op: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    x_type: str = "uint8"
    w_type: str = "int8"
    x_point: int = 0
    w_points: tuple[int, ...] = (0,)
    num_scales: int = 1
    axis: int = 0
    is_constant: bool = True
    attrs: Sequence[tuple[str, Any]] = ()

    def arrays(self) -> dict[str, Array]:
        """Return the operands, scales and zero points."""
        rng = np.random.default_rng(0)
        limits = np.iinfo(self.w_type)
        w: Array = rng.integers(limits.min, limits.max + 1, self.w).astype(self.w_type)
        scales = 2.0 ** rng.integers(-6, -2, self.num_scales)
        points = np.resize(self.w_points, self.num_scales).astype(self.w_type)
        shape = () if self.num_scales == 1 else (-1,)
        return {
            "sx": np.array(0.25, np.float32),
            "zx": np.array(self.x_point, self.x_type),
            "w": w,
            "sw": scales.astype(np.float32).reshape(shape),
            "zw": points.reshape(shape),
            "x": (rng.normal(size=self.x) * 12).astype(np.float32),
        }

    def model(self) -> ModelProto:
        """Return the layer between pairs of quantization, as exporters write it."""
        arrays = self.arrays()
        sources = [("w", arrays["w"].dtype.name, self.w)]
        inputs = [("x", "float32", self.x), *(sources if not self.is_constant else [])]
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["a"]),
            helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"], axis=self.axis),
            helper.make_node(self.op, ["a", "b"], ["y"], **dict(self.attrs)),
        ]
        graph = helper.make_graph(
            nodes,
            "layer",
            [
                helper.make_tensor_value_info(
                    name, {"float32": TensorProto.FLOAT, **_TYPES}[dtype], shape
                )
                for name, dtype, shape in inputs
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [
                numpy_helper.from_array(array, name)
                for name, array in arrays.items()
                if name not in {part[0] for part in inputs}
            ],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


_CONV = (("pads", [1, 2, 1, 0]), ("strides", [2, 1]))
_LAYERS = {
    "scales of columns": _Layer("MatMul", (2, 5, 37), (37, 9), num_scales=9, axis=1, x_point=101),
    "signed bytes": _Layer("MatMul", (5, 32), (32, 9), "int8", "int8", x_point=-7),
    "symmetric": _Layer("MatMul", (4, 30), (30, 8), "int8", "int8"),
    "middle": _Layer("MatMul", (4, 30), (30, 8), "uint8", "uint8", 3, (128,)),
    "zero points of both": _Layer("MatMul", (4, 30), (30, 8), "uint8", "uint8", 5, (131,)),
    "transposed": _Layer(
        "Gemm", (3, 16), (9, 16), num_scales=9, x_point=9, attrs=(("transB", 1),)
    ),
    "two activations": _Layer(
        "MatMul", (2, 5, 12), (2, 12, 6), w_type="uint8", x_point=90, w_points=(140,),
        is_constant=False,
    ),
    "padded": _Layer("Conv", (1, 5, 6, 7), (8, 5, 3, 3), x_point=77, num_scales=8, attrs=_CONV),
    "padded signed": _Layer("Conv", (2, 4, 6, 7), (3, 4, 3, 3), "int8", x_point=-5, attrs=_CONV),
    "groups": _Layer("Conv", (1, 6, 9), (4, 3, 3), x_point=200, attrs=(("group", 2),)),
    "depthwise": _Layer("Conv", (1, 4, 7, 7), (4, 1, 3, 3), attrs=(("group", 4), *_CONV)),
}  # fmt: skip


def _expected(layer: _Layer) -> Array:
    """Return exact sums of integers, times the scales."""
    arrays = layer.arrays()
    limits = np.iinfo(layer.x_type)
    q = np.clip(np.rint(arrays["x"] / arrays["sx"]) + layer.x_point, limits.min, limits.max)
    along = [1] * len(layer.w)
    along[layer.axis] = -1
    x, w = q - layer.x_point, arrays["w"] - arrays["zw"].astype(np.float64).reshape(along)
    scale = arrays["sw"].reshape(-1)
    if layer.op == "Conv":
        node = helper.make_node("Conv", ["x", "w"], ["y"], **dict(layer.attrs))
        feeds = {"x": x.astype(np.float64), "w": w.astype(np.float64)}
        sums: Any = ReferenceEvaluator(node).run(None, feeds)
        scale = scale.reshape(-1, *[1] * (len(layer.w) - 2))
    else:
        sums = [x @ (w.T if layer.op == "Gemm" else w)]
    return np.asarray(sums[0] * arrays["sx"] * scale, np.float32)


def _products(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if n.op == "matmul" or n.op.startswith("nn.conv")]


@pytest.mark.parametrize("name", _LAYERS)
def test_a_layer_between_quantizations_has_sums_of_integers(name: str) -> None:
    layer = _LAYERS[name]
    model, inputs = layer.model(), layer.arrays()
    graph = read_onnx(model.SerializeToString())
    [product] = _products(simplify(graph))
    assert {x.type.dtype for x in product.operands} == {"int8", "uint8"}
    assert product.output.type.dtype == "int32"
    feeds = {value.name: inputs[value.name] for value in graph.inputs}
    expected = _expected(layer)
    results: Any = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(results[0], expected)
    np.testing.assert_array_equal(run_reference(simplify(graph), feeds)["y"], expected)
    compile_and_compare(graph, here(), tolerance=0)


@pytest.mark.parametrize("name", ["scales of columns", "padded"])
def test_proposed_kernels_of_a_layer_are_exact(name: str) -> None:
    layer = _LAYERS[name]
    model = lw.compile(layer.model().SerializeToString(), target="cpu -num-cores=1")
    np.testing.assert_array_equal(model.run(x=layer.arrays()["x"])["y"], _expected(layer))


def _product(steps: int, w_type: str, *, out_dtype: str = "float64") -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((2, steps), "float64"))
    scale, w = constant(np.array(0.5)), np.full((steps, 3), -2).astype(w_type)
    bytes_ = builder.add("quantize", x, scale, out_dtype="uint8")
    factors = (
        builder.add("dequantize", operand, scale, out_dtype=out_dtype)
        for operand in (bytes_, constant(w))
    )
    return builder.finish([builder.add("matmul", *factors)], ["y"])


@pytest.mark.parametrize(
    ("steps", "w_type", "product"),
    [
        (65_793, "int8", "int32"),
        (65_794, "int8", "float64"),  # times 255 * 128, that is 2**31
        (33_025, "uint8", "int32"),
        (33_026, "uint8", "float64"),
        (64, "int16", "float64"),
    ],
)
def test_sums_that_may_exceed_32_bits_stay_floats(steps: int, w_type: str, product: str) -> None:
    graph = _product(steps, w_type)
    operators_after(graph, simplify)
    [node] = _products(simplify(graph))
    assert node.output.type.dtype == product


@pytest.mark.parametrize("w_type", ["int8", "uint8"])
def test_several_products_of_one_activation_quantize_it_once(w_type: str) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((2, 16), "float64"))
    scale = constant(np.array(0.5))
    a = builder.add("dequantize", builder.add("quantize", x, scale), scale, out_dtype="float64")
    columns = [
        builder.add("dequantize", constant(np.full((16, 4), n, w_type)), scale, out_dtype="float64")
        for n in (1, 2)
    ]
    graph = builder.finish([builder.add("matmul", a, w) for w in columns], ["y", "z"])
    assert operators_after(graph, simplify).count("quantize") == 1


def test_the_proposed_kernel_of_a_layer_has_the_dot_products_of_the_cpu() -> None:
    layer = _Layer("MatMul", (64, 256), (256, 128), num_scales=128, axis=1, x_point=101)
    model = lower_model(read_onnx(layer.model().SerializeToString()))
    func = max((task.func for task in model.tasks), key=lambda func: len(func.params))
    target = CpuTarget("cpu -mcpu=znver4 -num-cores=1")
    cost_model = base_model.base_model(default_directory()).model
    kernel = propose_kernel(Task(func, target, 1.0), "kernel", cost_model=cost_model)
    assert "matmul" in func.name
    assert kernel.candidate.sketch.startswith("packed")
    assert "vpdpbusd" in disassemble(kernel.built.kernel.text, target)
