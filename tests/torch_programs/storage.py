"""Programs of PyTorch, their inputs and results as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes  # noqa: F401 - bfloat16 for NumPy
import numpy as np

from compiler.graph.nodes import Array, TensorType
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode, TorchProgram

Json: TypeAlias = Any

FILE = Path(__file__).parent / "recorded.jsonl"


@dataclass(frozen=True)
class RecordedCase:
    """A program with the arrays that PyTorch was called with, and those that it returned.

    Attributes:
        name: The name of the case.
        program: The program.
        inputs: The inputs by name.
        results: The results in order.
    """

    name: str
    program: TorchProgram
    inputs: Mapping[str, Array]
    results: Sequence[Array]


def load_cases() -> list[RecordedCase]:
    """Return the recorded cases."""
    return [_case(json.loads(line)) for line in FILE.read_text().splitlines()]


def save_cases(cases: Sequence[RecordedCase]) -> None:
    """Write cases, one a line."""
    lines = (json.dumps(_case_json(case), separators=(",", ":")) for case in cases)
    FILE.write_text("".join(line + "\n" for line in lines))


def _case_json(case: RecordedCase) -> Json:
    program = case.program
    return {
        "name": case.name,
        "module": program.name,
        "inputs": {name: _array_json(array) for name, array in case.inputs.items()},
        "constants": {name: _array_json(array) for name, array in program.constants.items()},
        "nodes": [_node_json(node) for node in program.nodes],
        "outputs": {name: _argument_json(value) for name, value in program.outputs.items()},
        "results": [_array_json(array) for array in case.results],
    }


def _case(data: Json) -> RecordedCase:
    inputs = {name: _array(value) for name, value in data["inputs"].items()}
    program = TorchProgram(
        data["module"],
        {name: _type([x.dtype.name, *x.shape]) for name, x in inputs.items()},
        {name: _array(value) for name, value in data["constants"].items()},
        tuple(_node(node) for node in data["nodes"]),
        {name: _argument(value) for name, value in data["outputs"].items()},
    )
    return RecordedCase(data["name"], program, inputs, [_array(x) for x in data["results"]])


def _node_json(node: TorchNode) -> Json:
    arguments = {name: _argument_json(value) for name, value in node.arguments.items()}
    results = [None if each is None else [each.dtype, *each.shape] for each in node.results]
    return [node.name, node.operator, arguments, results]


def _node(data: Json) -> TorchNode:
    name, operator, arguments, results = data
    return TorchNode(
        name,
        operator,
        {key: _argument(value) for key, value in arguments.items()},
        tuple(None if each is None else _type(each) for each in results),
    )


def _argument_json(argument: Argument) -> Json:
    if isinstance(argument, TensorRef):
        return {"ref": [argument.name, argument.index]}
    if isinstance(argument, tuple):
        return [_argument_json(each) for each in argument]
    return argument


def _argument(data: Json) -> Argument:
    if isinstance(data, dict):
        return TensorRef(*data["ref"])
    if isinstance(data, list):
        return tuple(_argument(each) for each in data)
    argument: Argument = data
    return argument


def _type(data: Json) -> TensorType:
    return TensorType(tuple(data[1:]), data[0])


def _array_json(array: Array) -> Json:
    content = base64.b64encode(array.tobytes()).decode()
    return [array.dtype.name, list(array.shape), content]


def _array(data: Json) -> Array:
    dtype, shape, content = data
    return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape)
