"""From what a user calls a model to a graph."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from compiler.executor.named_type import named_type
from compiler.graph.error import ModelError
from compiler.graph.nodes import Graph
from compiler.graph.read_torch import read_torch
from compiler.ops import OPERATORS
from loopwright.extras import load_extra

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch.nn import Module

Model: TypeAlias = "str | Path | bytes | ModelProto | Graph | Module"
"""An ONNX model, as a file, as bytes or in memory; a graph; or a module of PyTorch."""

ExampleInputs: TypeAlias = "Sequence[Any] | Mapping[str, Any] | None"
"""The arguments of a call of a module, in order or by name."""

_OF_FUNCTIONS = "lw.kernel and lw.tune return kernels of operators and programs"


def read_model(
    model: Model,
    example_inputs: ExampleInputs,
    shapes: Mapping[str, Sequence[int]] | None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None,
) -> Graph:
    """Return a model as a graph.

    Raises:
        ModelError: If the model is malformed, needs what is not supported, or has arguments that
            belong to another kind of model.
    """
    if _is_module(model):
        return _read_module(model, example_inputs, shapes, fixed_inputs)
    if example_inputs is not None:
        raise ModelError(
            f"example_inputs are {named_type(example_inputs)}: expected none, because the model is"
            f" {named_type(model)} and no module of PyTorch",
            advice="pass a target by its name: target=...",
        )
    if isinstance(model, Graph):
        if shapes is not None or fixed_inputs is not None:
            raise ModelError("shapes and fixed_inputs belong to ONNX models: the model is a graph")
        return model
    if not isinstance(model, str | Path | bytes) and not hasattr(model, "SerializeToString"):
        raise ModelError(
            f"the model is {named_type(model)}: expected an ONNX model (a file, its bytes, or an"
            " onnx.ModelProto), a graph, or a module of PyTorch",
            advice=_OF_FUNCTIONS,
        )
    if _is_operator(model):
        raise ModelError(f"{model!r} is an operator, not a model", advice=_OF_FUNCTIONS)
    reader = load_extra("compiler.graph.read_onnx", "lw.compile of an ONNX model", "onnx")
    graph: Graph = reader.read_onnx(model, shapes=shapes, fixed_inputs=fixed_inputs)
    return graph


def _read_module(
    module: object,
    example_inputs: ExampleInputs,
    shapes: Mapping[str, Sequence[int]] | None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None,
) -> Graph:
    if shapes is not None or fixed_inputs is not None:
        raise ModelError(
            "shapes and fixed_inputs belong to ONNX models",
            advice="the example inputs have the shapes; a module can keep fixed values itself",
        )
    if not isinstance(example_inputs, Sequence | Mapping) or isinstance(example_inputs, str):
        raise ModelError(
            f"example_inputs are {named_type(example_inputs)}: expected the arguments of a call of"
            f" {type(module).__name__}",
            advice="pass a tuple of tensors: lw.compile(module, (x,))",
        )
    export = load_extra("loopwright.torch.export", "lw.compile of a module")
    return read_torch(export.export_module(module, example_inputs))


def _is_operator(model: object) -> bool:
    """Return whether a model is the text of an operator, and no file."""
    return (
        isinstance(model, str)
        and model.partition(":")[0].strip() in OPERATORS
        and not Path(model).exists()
    )


def _is_module(model: object) -> bool:
    """Return whether an object is a module, which exists only if PyTorch is loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)
