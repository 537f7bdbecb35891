"""The workloads of the benchmark: every library must mean the same computation."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from benchmarks.kernels.traces import program
from benchmarks.peers import numpy_peer
from benchmarks.workloads.public import PUBLIC
from benchmarks.workloads.table import WORKLOADS, select
from benchmarks.workloads.workload import ALIGNMENT, BenchmarkWorkload
from compiler.ir.core.nodes import static_shape


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_our_program_takes_the_inputs_and_counts_the_operations(
    workload: BenchmarkWorkload,
) -> None:
    func = program(workload)
    *inputs, output = (static_shape(buffer) for buffer in func.buffers)
    assert (tuple(inputs), output) == (workload.shapes, workload.out)
    counts_alike = workload.op != "attention" and "winograd" not in workload.name
    if workload.unit == "GFLOP/s" and counts_alike and workload.op != "dense_int4":
        # Of the products; epilogues and paddings add a little.
        assert workload.flops == pytest.approx(lw.flops(func), rel=0.015)


def test_names_are_unique_and_nineteen_are_aimed_at() -> None:
    assert len({w.name for w in WORKLOADS}) == len(WORKLOADS)
    assert len(select("public,seed")) == 19


def test_workloads_are_selected_by_name_and_group() -> None:
    assert select("all") == list(WORKLOADS)
    assert next(w.name for w in select("seed, transpose_2048x2048")) == "transpose_2048x2048"
    with pytest.raises(ValueError, match="no workload or group is called 'matmul'"):
        select("matmul")


def test_inputs_are_the_same_at_every_call_and_aligned() -> None:
    (workload,) = select("linear_relu_1x200x3072")
    first, again = workload.inputs(), workload.inputs()
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(array.ctypes.data % ALIGNMENT == 0 for array in first)
    assert first[1].std() == pytest.approx(0.1, rel=0.015)


def test_the_limits_of_memory_are_told_apart() -> None:
    readers = {w.name for w in PUBLIC if w.unit == "GB/s" and w.reads_only}
    assert readers == {"row_sum_1024x1024", "linear_relu_1x200x3072"}


def test_numpy_computes_what_the_operators_do() -> None:
    # The reference of the benchmark is held against the references of the operators, small.
    for workload in SMALL:
        inputs = workload.inputs()
        expected = lw.ops.reference(workload.spec)(*inputs)
        got = numpy_peer.OPS[workload.op](workload, *inputs)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4, err_msg=workload.spec)


def _small(  # noqa: PLR0917
    op: str,
    spec: str,
    shapes: tuple[tuple[int, ...], ...],
    out: tuple[int, ...],
    options: dict[str, int] | None = None,
    types: tuple[str, ...] = (),
) -> BenchmarkWorkload:
    return BenchmarkWorkload(
        "small", op, spec, shapes, out, flops=1.0, options=options or {}, types=types
    )


_STEPS = {"stride": 2, "padding": 1, "groups": 1}
SMALL = [
    _small("matmul", "matmul:3,4,5", ((3, 5), (5, 4)), (3, 4)),
    _small("dense", "dense:3,4,5", ((3, 5), (4, 5)), (3, 4)),
    _small("mm_relu", "mm_relu:3,4,5", ((3, 5), (5, 4)), (3, 4)),
    _small("linear_relu", "linear_relu:1,4,5", ((1, 5), (4, 5)), (1, 4)),
    _small("matmul_bias_relu", "matmul_bias_relu:3,4,5", ((3, 5), (5, 4), (4,)), (3, 4)),
    _small("batch_matmul", "batch_matmul:2,3,4,5", ((2, 3, 5), (2, 5, 4)), (2, 3, 4)),
    _small("conv2d", "conv2d:1,3,7,7,4,3,2,1", ((1, 3, 7, 7), (4, 3, 3, 3)), (1, 4, 4, 4), _STEPS),
    _small(
        "conv2d",
        "depthwise_conv2d:1,3,7,7,3,2,1",
        ((1, 3, 7, 7), (3, 1, 3, 3)),
        (1, 3, 4, 4),
        _STEPS | {"groups": 3},
    ),
    _small(
        "conv2d_nhwc",
        "conv2d:1,3,7,7,4,3,1,1,layout=NHWC",
        ((1, 7, 7, 3), (3, 3, 3, 4)),
        (1, 7, 7, 4),
        _STEPS | {"stride": 1},
    ),
    _small("softmax", "softmax:3,5", ((3, 5),), (3, 5)),
    _small("layer_norm", "layer_norm:3,5", ((3, 5), (5,), (5,)), (3, 5)),
    _small("row_sum", "row_sum:3,5", ((3, 5),), (3,)),
    _small("transpose", "transpose:3,5", ((3, 5),), (5, 3)),
    _small("attention", "attention:1,2,3,3,4", ((1, 2, 3, 4),) * 3, (1, 2, 3, 4)),
    _small(
        "conv1d_gelu",
        "conv1d:1,3,7,4,3,1,1,bias=True,activation=gelu",
        ((1, 3, 7), (4, 3, 3), (4,)),
        (1, 4, 7),
    ),
    _small(
        "grouped_query_attention",
        "grouped_query_attention:1,4,2,1,5,8",
        ((1, 4, 1, 8), (1, 2, 5, 8), (1, 2, 5, 8)),
        (1, 4, 1, 8),
    ),
    _small(
        "layer_norm_residual",
        "layer_norm:3,5,residual=True",
        ((3, 5), (5,), (5,), (3, 5)),
        (3, 5),
    ),
    _small(
        "dense_int4",
        "dense_int4:3,4,16,8",
        ((3, 16), (4, 2, 4), (4, 2)),
        (3, 4),
        types=("float32", "uint8", "float32", "float32"),
    ),
    _small(
        "quantized_dense",
        "quantized_dense:3,4,8,bias=True",
        ((3, 8), (4, 8), (4,), (4,)),
        (3, 4),
        types=("uint8", "int8", "float32", "int32", "uint8"),
    ),
]
