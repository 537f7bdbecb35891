"""Products of warpgroups on sm_90a."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.nodes import For, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.target.cuda import CudaTarget
from compiler.target.tensor_cores import DEVICE_INSTRUCTION
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.warpgroup_tiles import (
    WarpgroupTiles,
    find_warpgroup_product,
    schedule_product,
)
from tuner.space.rules.sketch_builder import SketchBuilder


def sketches(func: PrimFunc, target: CudaTarget = H200) -> list[SketchBuilder]:
    (draft,) = AutoInline().apply(SketchBuilder.begin(func, target))
    return WarpgroupTiles().apply(draft)


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:64,64,64,acc_dtype=float32,transpose_a=true:bfloat16",
        "matmul:72,136,40,acc_dtype=float32,out_dtype=bfloat16,bias=true,activation=relu:bfloat16",
        "dense:136,64,72,acc_dtype=float32:float16",
        "batch_matmul:2,64,72,24,acc_dtype=float32:bfloat16",
    ],
)
def test_the_first_schedule_computes_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    with_warpgroups, persistent, without = sketches(func)
    names = [draft.name for draft in (with_warpgroups, persistent, without)]
    assert names == [("warpgroup_tiles",), ("persistent_tiles",), ()]
    schedule = with_warpgroups.schedule
    notes = [
        dict(loop.annotations)[DEVICE_INSTRUCTION]
        for loop in walk_stmts(schedule.func.body)
        if isinstance(loop, For) and DEVICE_INSTRUCTION in dict(loop.annotations)
    ]
    dtype = {"bfloat16": "bf16", "float16": "f16"}[func.buffers[0].dtype]
    assert notes == [f"wgmma.m64nNk16.{dtype}.f32"]
    assert_computes(func, [schedule])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_schedule_computes_the_program(seed: int) -> None:
    func = ops.from_spec("matmul:264,200,64,acc_dtype=float32:bfloat16")
    sketch = sketches(func)[0].finish()
    (row,) = sketch.draw(1, np.random.default_rng(seed))
    assert_computes(func, [sketch.candidate(row).trace.apply_to(func)])


def test_blocks_compute_several_tiles_one_after_another() -> None:
    # 12 tiles of 64 by 64, some of them beyond the ends, for 5 blocks.
    func = ops.from_spec("matmul:200,136,72,acc_dtype=float32,out_dtype=float32:bfloat16")
    draft = SketchBuilder.begin(func, H200)
    noted = find_warpgroup_product(draft, draft.block_facts()["C"])
    assert noted is not None
    schedule_product(draft, noted, 5)
    sketch = draft.finish()
    smallest = [int(knob.options[:, 0].argmin()) for knob in sketch.knobs]
    assert_computes(func, [sketch.candidate(np.array(smallest)).trace.apply_to(func)])


def test_each_multiprocessor_has_a_block() -> None:
    _, persistent, _ = sketches(ops.from_spec("matmul:4096,4096,64,acc_dtype=float32:bfloat16"))
    blocks = [
        loop.extent.value
        for loop in walk_stmts(persistent.schedule.func.body)
        if isinstance(loop, For) and loop.thread == "blockIdx.x" and isinstance(loop.extent, IntImm)
    ]
    assert blocks == [132]


def absolute_differences() -> PrimFunc:
    a, b = (te.placeholder((64, 64), "float16", name=name) for name in "AB")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute(
        (64, 64),
        lambda i, j: te.sum(a[i, k].astype("float32") - b[k, j].astype("float32"), axis=k),
        name="C",
    )
    return te.create_prim_func([a, b, c])


@pytest.mark.parametrize(
    "func",
    [
        ops.matmul(64, 64, 64),
        ops.from_spec("matmul:64,64,64,acc_dtype=float16:float16"),
        ops.from_spec("matmul:64,68,64,acc_dtype=float32:bfloat16"),
        ops.from_spec("matmul:64,32,64,acc_dtype=float32:bfloat16"),
        ops.from_spec("conv2d:1,8,9,9,64,3,acc_dtype=float32:bfloat16"),
        absolute_differences(),
    ],
    ids=[
        "float32",
        "float16 sums",
        "rows of 136 bytes",
        "few columns",
        "convolution",
        "differences",
    ],
)
def test_other_blocks_are_left_to_other_rules(func: PrimFunc) -> None:
    assert [draft.name for draft in sketches(func)] == [()]


@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_other_gpus_have_no_warpgroups(arch: str) -> None:
    func = ops.from_spec("matmul:64,64,64,acc_dtype=float32:bfloat16")
    assert [draft.name for draft in sketches(func, CudaTarget(f"cuda -arch={arch}"))] == [()]
