import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from benchmarks.models import latency
from benchmarks.models.__main__ import parse_model

Array = NDArray[Any]


def test_shapes_follow_a_model() -> None:
    assert parse_model("a/b.onnx") == ("a/b.onnx", {})
    assert parse_model("m.onnx@input:0=1x3x8@n=4") == ("m.onnx", {"input:0": (1, 3, 8), "n": (4,)})


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Return a model that doubles a row."""
    shape: list[int | str] = ["n", 8]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "double",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    path = tmp_path / "double.onnx"
    onnx.save(helper.make_model(graph, ir_version=8), path)
    return str(path)


def _peer(factor: float) -> Callable[..., tuple[Callable[[], object], list[Array]]]:
    """Return a library that multiplies by a number."""
    return lambda _, inputs: (lambda: None, [inputs["x"] * np.float32(factor)])


def _refusing(path: str, inputs: object) -> tuple[Callable[[], object], list[Array]]:
    raise ValueError(f"{path} of {inputs}")


def test_each_library_is_timed_in_each_round(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = {"double": _peer(2), "refusing": _refusing}
    monkeypatch.setattr(latency, "installed_peers", lambda: peers)
    measured = latency.measure_model(model, {"x": (4, 8)}, rounds=3)
    assert {name: len(secs) for name, secs in measured.secs.items()} == {"ours": 3, "double": 3}
    assert measured.best_peer == "double"
    assert len(measured.speedups()) == 3
    assert list(measured.failures) == ["refusing"]
    assert measured.max_error == 0
    assert statistics.median(measured.secs["ours"]) > 0


def test_a_model_is_timed_before_and_after_trials(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "installed_peers", lambda: {"double": _peer(2)})
    measured = latency.measure_model(model, {"x": (4, 8)}, rounds=3, trials=16)
    assert set(measured.secs) == {"ours", "untuned", "double"}
    assert measured.best_peer == "double"
    assert len(measured.gains()) == 3


def test_other_results_than_those_of_a_peer_are_not_timed(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "installed_peers", lambda: {"triple": _peer(3)})
    with pytest.raises(RuntimeError, match=r"differ by 3\.3e-01"):
        latency.measure_model(model, {"x": (4, 8)}, rounds=1)
