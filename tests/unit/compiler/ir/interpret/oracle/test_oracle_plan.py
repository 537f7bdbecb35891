"""The estimate of the oracle's time, which decides what is run, and how."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.interpret.oracle.oracle import estimated_secs


@pytest.mark.parametrize(
    ("spec", "secs"),
    [
        # CPU seconds on one core of an AMD Zen 3.
        ("matmul:4096,11008,4096:bfloat16", 24),
        ("matmul:1024,1024,1024", 0.1),
        ("matmul:1,2048,2048:bfloat16", 0.010),
        ("batch_matmul:16,256,256,256:bfloat16", 0.053),
        ("conv2d:2,64,28,28,64,3,1,1:bfloat16", 0.016),
        ("conv2d:2,64,28,28,64,3,1,1,1,4", 0.30),
        ("depthwise_conv2d:2,64,56,56,3", 0.017),
        ("attention:2,8,256,256,64:bfloat16", 0.080),
        ("softmax:2048,1024:bfloat16", 0.078),
    ],
)
def test_the_estimated_time_is_near_to_one_that_was_measured(spec: str, secs: float) -> None:
    assert secs / 3 < estimated_secs(ops.from_spec(spec)) < secs * 3
