"""The test cases that ONNX publishes for backends: models with inputs and expected results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""All kinds but `real`, whose models have no weights here."""


@dataclass(frozen=True)
class Case:
    """A model, and what it computes.

    Attributes:
        name: The name, unique within all kinds.
        kind: One of `KINDS`.
        model: The model.
        data_sets: The inputs and the results in order; tensors are arrays.
        rtol: The relative tolerance that ONNX names.
        atol: The absolute tolerance.
    """

    name: str
    kind: str
    model: ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


@cache
def all_cases() -> list[Case]:
    """Return the cases of all kinds; making those of nodes takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected results with infinities
        return [case for kind in KINDS for case in _cases(kind)]


def _cases(kind: str) -> Iterator[Case]:
    for case in load_model_tests(kind=kind):
        if case.model is None:
            folder = Path(case.model_dir or "")
            model = ModelProto.FromString((folder / "model.onnx").read_bytes())
            data_sets = [_stored(data_set) for data_set in sorted(folder.glob("test_data_set_*"))]
        else:
            model = case.model
            data_sets = [(_arrays(a), _arrays(b)) for a, b in case.data_sets or ()]
        yield Case(case.name, kind, model, data_sets, case.rtol, case.atol)


def _stored(folder: Path) -> tuple[list[Any], list[Any]]:
    inputs = [_tensor(folder / f"input_{k}.pb") for k in range(len(list(folder.glob("input_*"))))]
    outputs = [
        _tensor(folder / f"output_{k}.pb") for k in range(len(list(folder.glob("output_*"))))
    ]
    return inputs, outputs


def _tensor(path: Path) -> Any:
    return _array(TensorProto.FromString(path.read_bytes()))


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Return tensors as arrays; sequences and missing values stay what they are."""
    return [_array(value) for value in values]


def _array(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | int | float) else value
