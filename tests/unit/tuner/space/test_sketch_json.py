"""Sketches as JSON."""

from __future__ import annotations

import json

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from tuner.space.generate import design_space
from tuner.space.sketch_json import read_sketch, write_sketch
from tuner.task import Task


@pytest.mark.parametrize(
    ("func", "target"),
    [
        (ops.dense(16, 32, 32, "uint8", out_dtype="int32"), CpuTarget("cpu -mcpu=znver4")),
        (ops.matmul(32, 32, 32, "float16"), CudaTarget("cuda -gpu=h200")),
    ],
    ids=["dot products", "tensor cores"],
)
def test_sketches_are_read_as_they_were_written(func: PrimFunc, target: Target) -> None:
    for sketch in design_space(Task(func, target)).sketches:
        assert read_sketch(json.loads(json.dumps(write_sketch(sketch)))) == sketch
