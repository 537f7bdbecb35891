from __future__ import annotations

from collections.abc import Mapping

import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.read_torch import TorchProgram, read_torch
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode

_ROW = TensorType((4,), "float32")


def _program(
    operator: str, arguments: Mapping[str, Argument], result: TensorType | None = _ROW
) -> TorchProgram:
    node = TorchNode("node", operator, {"self": TensorRef("x"), **arguments}, (result,))
    return TorchProgram("module", {"x": _ROW}, {}, (node,), {"result": TensorRef("node")})


@pytest.mark.parametrize(
    ("operator", "arguments", "reason"),
    [
        ("frobnicate.default", {}, r"frobnicate.default 'node': the operator is not supported"),
        ("linalg_vector_norm.default", {"ord": 3}, "node.*ord is 3: expected 1, 2 or inf"),
        ("pixel_shuffle.default", {"upscale_factor": 2}, r"shape \(4,\): expected 4 dimensions"),
        ("bitwise_not.default", {}, "bitwise_not of float32: expected the type integer"),
    ],
)
def test_a_refusal_names_the_node_and_the_reason(
    operator: str, arguments: Mapping[str, Argument], reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        read_torch(_program(operator, arguments))


def test_a_type_that_differs_from_pytorch_s_is_a_bug() -> None:
    with pytest.raises(AssertionError, match=r"float32 \(4,\) instead of float32 \(2, 2\)"):
        read_torch(_program("relu.default", {}, TensorType((2, 2), "float32")))


def test_a_program_returns_tensors() -> None:
    program = TorchProgram("module", {"x": _ROW}, {}, (), {"result": 3})
    with pytest.raises(ModelError, match="the result result is 3: expected a tensor"):
        read_torch(program)
    with pytest.raises(ModelError, match="no outputs"):
        read_torch(TorchProgram("module", {"x": _ROW}, {}, (), {}))
