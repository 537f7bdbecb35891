from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw

GRAPH = """
@R.function
def f(x: R.Tensor((2, 4), "float32")):
    with R.dataflow():
        y = R.nn.relu(x)
        R.output(y)
    return y
"""


def test_example_inputs_of_an_onnx_model_are_refused() -> None:
    with pytest.raises(lw.ModelError, match=r"are a str: expected none.*pass a target by its name"):
        lw.compile("model.onnx", "cpu")


@pytest.mark.parametrize("model", [5, None, ["model.onnx"], np.zeros(3)])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(lw.ModelError, match=r"the model is .*: expected an ONNX model \(a file"):
        lw.compile(model)


@pytest.mark.parametrize("model", ["matmul:8,8,8", lw.ops.from_spec("relu:8")])
def test_functions_are_for_other_calls(model: Any) -> None:
    with pytest.raises(lw.ModelError, match=r"lw\.kernel and lw\.tune return kernels of operators"):
        lw.compile(model)


def test_shapes_of_a_graph_are_refused() -> None:
    with pytest.raises(lw.ModelError, match="shapes and fixed_inputs belong to ONNX models"):
        lw.compile(lw.parse_graph(GRAPH), shapes={"x": (2, 4)})
