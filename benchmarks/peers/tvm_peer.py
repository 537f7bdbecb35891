"""TVM: the best schedule of MetaSchedule, which `metaschedule.py` searches for."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from math import sqrt
from typing import Any

from benchmarks.peers.library import FIRST_SEED, NotTunedError, Prepared, metaschedule_path
from benchmarks.workloads.workload import BenchmarkWorkload


def _stack(context: int = 0) -> list[inspect.FrameInfo]:
    """Replace `inspect.stack` by a version that reads no source lines.

    TVM calls it for each of the thousand programs that it creates on import, which takes minutes
    otherwise.
    """
    del context
    frame, found = sys._getframe(1), []
    while frame is not None:
        name = frame.f_code.co_name
        found.append(
            inspect.FrameInfo(frame, frame.f_code.co_filename, frame.f_lineno, name, None, None)
        )
        frame = frame.f_back  # type: ignore[assignment]
    return found


inspect.stack = _stack

import tvm  # noqa: E402 - after what it calls is replaced
from tvm import te, topi  # noqa: E402

_threads = 1


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    global _threads  # noqa: PLW0603 - a process has one
    _threads = threads
    return {"tvm": tvm.__version__}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Build the stored schedule of a workload; "metaschedule@2" is that of seed 2.

    Raises:
        NotTunedError: If none is stored.
    """
    _, _, seed = backend.partition("@")
    path = metaschedule_path(workload.name, _threads, int(seed or FIRST_SEED))
    if not path.exists():
        raise NotTunedError("no schedule is stored: --metaschedule TRIALS looks for one")
    stored = json.loads(path.read_text(encoding="utf-8"))
    kernel = build(tvm.ir.load_json(stored["module"]), target(_threads))["main"]
    arrays = [tvm.runtime.tensor(array) for array in workload.inputs()]
    out = tvm.runtime.empty(workload.out, "float32")
    note = f"{stored['trials']} trials in {stored['secs']:.0f} s"
    return Prepared(lambda: kernel(*arrays, out), out.numpy, note=note)


def target(threads: int) -> Any:
    """Describe this host to TVM, whose LLVM knows the name of its CPU."""
    name = tvm.get_global_func("target.llvm_get_system_cpu", allow_missing=True)
    cpu = os.environ.get("TVM_MCPU") or (str(name()) if name else "native")
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})


def build(module: Any, where: Any, _params: Any = None) -> Any:
    """Build as MetaSchedule's builder does, but do not import intrinsics.

    The import exceeds the time limit of the builder, and CPUs without them do not need it.
    """
    from tvm.driver import build as build_module  # noqa: PLC0415 - builders load this function alone
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock  # noqa: PLC0415

    return build_module(
        RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=where
    )


def program(workload: BenchmarkWorkload) -> Any:
    """Return a workload as a program of TVM's."""
    inputs = [
        te.placeholder(shape, "float32", name=f"in{n}") for n, shape in enumerate(workload.shapes)
    ]
    return te.create_prim_func([*inputs, OPS[workload.op](workload, *inputs)])


def _matmul(a: Any, b: Any, transpose_b: bool = False) -> Any:
    *batch, m, k = a.shape
    n = b.shape[-2] if transpose_b else b.shape[-1]
    r = te.reduce_axis((0, k), name="k")

    def element(*place: Any) -> Any:
        *at, i, j = place
        right = b[(*at, j, r)] if transpose_b else b[(*at, r, j)]
        return te.sum(a[(*at, i, r)] * right, axis=r)

    return te.compute((*batch, m, n), element, name="C")


def _relu(x: Any) -> Any:
    return topi.nn.relu(x)


def _bias(c: Any, bias: Any) -> Any:
    return te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="bias")


def _conv2d(w: BenchmarkWorkload, image: Any, weights: Any) -> Any:
    stride, padding = w.options["stride"], w.options["padding"]
    if w.options["groups"] == 1:
        return topi.nn.conv2d_nchw(image, weights, stride, padding, 1)
    steps = (stride, stride), (padding, padding), (1, 1)
    return topi.nn.depthwise_conv2d_nchw(image, weights, *steps)


def _conv2d_nhwc(w: BenchmarkWorkload, image: Any, weights: Any) -> Any:
    return topi.nn.conv2d_nhwc(image, weights, w.options["stride"], w.options["padding"], 1)


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = _matmul(q, k, transpose_b=True)
    scale = te.const(1 / sqrt(int(q.shape[-1])), "float32")
    scaled = te.compute(scores.shape, lambda *i: scores(*i) * scale, name="scaled")
    return _matmul(topi.nn.softmax(scaled), v)


OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: _relu(topi.add(a, b)),
    "attention": lambda _, q, k, v: _attention(q, k, v),
    "batch_matmul": lambda _, a, b: _matmul(a, b),
    "conv2d": _conv2d,
    "conv2d_nhwc": _conv2d_nhwc,
    "dense": lambda _, a, b: _matmul(a, b, transpose_b=True),
    "layer_norm": lambda _, x, gamma, beta: topi.nn.layer_norm(x, gamma, beta, [1], 1e-5),
    "linear_relu": lambda _, a, b: _relu(_matmul(a, b, transpose_b=True)),
    "matmul": lambda _, a, b: _matmul(a, b),
    "matmul_bias_relu": lambda _, a, b, bias: _relu(_bias(_matmul(a, b), bias)),
    "mm_relu": lambda _, a, b: _relu(_matmul(a, b)),
    "row_sum": lambda _, x: topi.sum(x, 1),
    "softmax": lambda _, x: topi.nn.softmax(x),
    "transpose": lambda _, x: topi.transpose(x),
}
