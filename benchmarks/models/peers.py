"""The libraries that run the same ONNX files; both are optional."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Run: TypeAlias = Callable[[], object]


def onnxruntime_run(path: str, inputs: Arrays) -> tuple[Run, list[NDArray[Any]]]:
    """Return a function that runs a model by onnxruntime on one thread, and its results."""
    import onnxruntime  # noqa: PLC0415  optional

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs), session.run(None, inputs)


def openvino_run(path: str, inputs: Arrays) -> tuple[Run, list[NDArray[Any]]]:
    """Return a function that runs a model by OpenVINO on one thread, and its results."""
    import openvino  # noqa: PLC0415  optional

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({x.any_name: list(inputs[x.any_name].shape) for x in model.inputs})
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": 1,
        "INFERENCE_PRECISION_HINT": "f32",  # as the others compute
    }
    request = core.compile_model(model, "CPU", options).create_infer_request()
    results = request.infer(dict(inputs))
    return lambda: request.infer(dict(inputs)), [results[n].copy() for n in range(len(results))]


Peer: TypeAlias = Callable[[str, Arrays], tuple[Run, list[NDArray[Any]]]]

PEERS: dict[str, Peer] = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}


def installed_peers() -> dict[str, Peer]:
    """Return the peers that are installed."""
    return {name: peer for name, peer in PEERS.items() if importlib.util.find_spec(name)}
