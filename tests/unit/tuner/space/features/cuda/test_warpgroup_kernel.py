"""Tables of kernels of warpgroups, against what the emulator counts and NVRTC reports."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.report import EmulationReport
from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.gpu_spaces import EMULATED, H200, space_of
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.features import named_features
from tuner.space.features.cuda.warpgroup_kernel import WarpgroupKernel
from tuner.space.filter.cuda_filter import passes
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

Decisions = tuple[int, int, int, int, int]
"""The rows of a warpgroup, the warpgroups, the blocks of a group, the columns, the stages."""


@dataclass(frozen=True)
class Emulated:
    """A candidate's tables, its lowered kernel, and the counts of the emulator."""

    batch: CudaBatch
    kernel: DeviceKernel
    report: EmulationReport

    @property
    def tables(self) -> WarpgroupKernel:
        kernel = self.batch.kernel
        assert isinstance(kernel, WarpgroupKernel)
        return kernel


def sketch_of(spec: str, name: str = "warpgroup_tiles") -> Sketch:
    (sketch,) = [s for s in space_of(ops.from_spec(spec)).sketches if s.name == name]
    return sketch


def row_of(sketch: Sketch, decisions: Decisions) -> Ints:
    values = [list(knob.options[:, 0]) for knob in sketch.knobs]
    return np.array([[of.index(n) for of, n in zip(values, decisions, strict=True)]])


def emulated(spec: str, decisions: Decisions) -> Emulated:
    func, sketch = ops.from_spec(spec), sketch_of(spec)
    choices = row_of(sketch, decisions)
    schedule = sketch.candidate(choices[0]).trace.apply_to(func)
    (kernel,) = lower_for_device(schedule.func, H200.limits).kernels
    arrays = [np.zeros(static_shape(buffer), buffer.dtype) for buffer in func.buffers]
    call = build(schedule, EMULATED).bind(*arrays)
    assert isinstance(call, EmulatedCall)
    call()
    return Emulated(CudaBatch(sketch, choices, H200), kernel, call.reports[0])


@pytest.mark.parametrize(
    ("spec", "decisions"),
    [
        (
            "matmul:256,128,128,acc_dtype=float32,out_dtype=float32:bfloat16",
            (64, 2, 1, 128, 3),
        ),
        ("dense:128,128,192,acc_dtype=float32,out_dtype=float32:float16", (64, 1, 1, 64, 2)),
    ],
)
def test_the_emulator_counts_the_same(spec: str, decisions: Decisions) -> None:
    seen = emulated(spec, decisions)
    tables, time, report = seen.tables, seen.batch.time, seen.report
    assert tables.threads[0] == np.prod(seen.kernel.block)
    assert tables.blocks[0] == np.prod(seen.kernel.grid) == report.num_blocks
    assert tables.shared_bytes[0] == seen.kernel.shared_bytes
    points = tables.accumulators * tables.holders * tables.pieces * 64 * report.num_blocks
    assert sum(report.matrix_operations.values()) == 2 * points[0]
    assert report.global_bytes == time.issued_bytes[0]
    assert report.bytes_read + report.bytes_written == time.memory_bytes[0]


def test_a_chunk_beyond_the_end_is_computed_but_not_read() -> None:
    spec = "matmul:72,136,72,acc_dtype=float32,out_dtype=float32:bfloat16"
    seen = emulated(spec, (64, 1, 1, 64, 2))
    assert seen.tables.blocks[0] == np.prod(seen.kernel.grid)
    assert seen.tables.pieces[0] == 2
    read = seen.report.bytes_read + seen.report.bytes_written
    assert seen.batch.time.memory_bytes[0] == pytest.approx(read, rel=0.1)


@pytest.mark.parametrize("decisions", [(128, 1, 1, 128, 4), (64, 2, 1, 64, 4)])
def test_registers_are_those_that_nvrtc_reports(decisions: Decisions) -> None:
    spec = "matmul:1024,1024,512,acc_dtype=float32,out_dtype=float32:bfloat16"
    sketch = sketch_of(spec)
    choices = row_of(sketch, decisions)
    func = sketch.candidate(choices[0]).trace.apply_to(ops.from_spec(spec)).func
    text = emit_cuda(lower_for_device(func, H200.limits))
    (resources,) = compile_cuda(text, H200.arch).resources.values()
    kernel = CudaBatch(sketch, choices, H200).kernel
    assert resources.spill_bytes == 0
    if decisions[1] == 2:  # the number at the launch
        assert resources.registers == 168
    else:
        assert abs(resources.registers - kernel.registers[0]) <= 16


def test_tiles_that_no_multiprocessor_can_hold_are_dropped() -> None:
    sketch = sketch_of("matmul:4096,4096,4096,acc_dtype=float32:bfloat16")
    choices = np.array(list(itertools.product(*(range(len(k.options)) for k in sketch.knobs))))
    mask = passes(sketch, choices, H200)
    assert 200 <= mask.sum() < len(choices)
    sizes = [
        knob.options[:, 0][column] for knob, column in zip(sketch.knobs, choices.T, strict=True)
    ]
    rows, consumers, _, columns, stages = sizes
    assert not mask[(rows == 128) & (columns == 256)].any()  # 256 sums of a thread
    shared = stages * (rows * consumers + columns) * 128
    assert not mask[shared > H200.limits.shared_bytes].any()
    assert mask[(shared < 200_000) & (rows * columns <= 128 * 192)].all()


def test_the_estimate_prefers_warpgroups_for_large_products() -> None:
    space = space_of(ops.matmul(8192, 8192, 8192, dtype="bfloat16", acc_dtype="float32"))
    best = {}
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 256, np.random.default_rng(0))
        choices = choices[passes(sketch, choices, H200)]
        estimates = 2.0 ** space.features(index, choices)[:, CUDA_SPACE.estimate_column]
        best[sketch.name] = float(estimates.min())
    assert best["persistent_tiles"] < best["warpgroup_tiles"] < best["tensor_tiles"]
    # The data sheet has 989 TFLOP/s.
    assert 2 * 8192**3 / 989e12 < best["persistent_tiles"] < 2 * 8192**3 / 700e12


def test_columns_of_a_product_by_hand() -> None:
    sketch = sketch_of("matmul:1024,1024,1024,acc_dtype=float32,out_dtype=float32:bfloat16")
    columns = named_features(sketch, row_of(sketch, (64, 2, 1, 128, 4)), H200)
    values = {name: float(column[0]) for name, column in columns.items()}
    assert values["threads"] == pytest.approx(np.log2(384))
    assert values["blocks"] == 6
    assert values["accumulators"] == 6
    assert values["stages"] == 4
    assert values["pieces"] == 4
    assert values["shared_bytes"] == pytest.approx(np.log2(1 + 4 * (256 * 128 + 16)))
    assert (values["buffer1.coalescing"], values["buffer2.coalescing"]) == (1, 1)
