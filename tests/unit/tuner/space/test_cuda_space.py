"""The search space of GPUs as a whole."""

from __future__ import annotations

import pytest

from benchmarks.kernels.traces import program
from benchmarks.workloads.table import select
from benchmarks.workloads.workload import BenchmarkWorkload
from compiler import ops
from tests.unit.tuner.space.gpu_spaces import names, space_of

PUBLIC = [
    # Attention has eight blocks, so that its sketches take seconds.
    pytest.param(w, marks=[pytest.mark.slow] if w.op == "attention" else [], id=w.name)
    for w in select("public,seed")
]


@pytest.mark.parametrize("workload", PUBLIC)
def test_every_public_workload_has_schedules(workload: BenchmarkWorkload) -> None:
    assert space_of(program(workload)).sketches


@pytest.mark.parametrize(
    ("spec", "sketches"),
    [
        ("matmul:128,128,64:float16", {"tensor_tiles", "warpgroup_tiles", "persistent_tiles"}),
        (
            "dense:64,64,64,bias=true,activation=gelu:bfloat16",
            {"tensor_tiles", "warpgroup_tiles"},
        ),
        ("batch_matmul:2,64,64,64:bfloat16", {"tensor_tiles", "warpgroup_tiles"}),
        ("matmul_bias_relu:128,128,64:float16", {"tensor_tiles", "warpgroup_tiles"}),
        ("conv2d:1,16,8,8,32,1,layout=NHWC:bfloat16", {"tensor_tiles"}),
        ("attention:1,2,64,64,32:bfloat16", {"tensor_attention"}),
        ("matmul:128,128,64:float8_e4m3fn", {"tensor_tiles"}),
    ],
)
def test_narrow_products_reach_tensor_cores(spec: str, sketches: set[str]) -> None:
    assert sketches <= set(names(ops.from_spec(spec)))
