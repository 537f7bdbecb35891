"""Tables of kernels on tensor cores, against what the emulator counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.report import EmulationReport
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.gpu_sketches import row
from tests.unit.tuner.space.gpu_spaces import H200, space_of
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.features import named_features
from tuner.space.features.cuda.tensor_kernel import TensorKernel
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.tensor_tiles import TensorTiles
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch

Decisions = tuple[int, ...]
"""The warps and the tiles of a warp, down and across, the steps of a chunk, if there are choices
the rows of blocks in a group, and the chunks that copies are ahead.
"""


@dataclass(frozen=True)
class Emulated:
    """A candidate's tables, its lowered kernel, and the counts of the emulator."""

    batch: CudaBatch
    kernel: DeviceKernel
    report: EmulationReport

    @property
    def tables(self) -> TensorKernel:
        kernel = self.batch.kernel
        assert isinstance(kernel, TensorKernel)
        return kernel


def emulated(spec: str, decisions: Decisions) -> Emulated:
    func = ops.from_spec(spec)
    sketch = sketch_of(func)
    # Decisions of categorical knobs are the numbers of their options.
    values = [list(knob.options[:, 0]) for knob in sketch.knobs]
    choices = row(sketch, *(of.index(n) for of, n in zip(values, decisions, strict=True)))
    program = lower_for_device(sketch.candidate(choices[0]).trace.apply_to(func).func, H200.limits)
    (kernel,) = program.kernels
    report = emulate(
        compile_cuda(emit_cuda(program), H200.arch).ptx,
        kernel.name,
        kernel.grid,
        kernel.block,
        [np.zeros(static_shape(buffer), buffer.dtype) for buffer in kernel.buffers],
        dynamic_shared_bytes=kernel.shared_bytes,
    )
    assert not report.faults
    return Emulated(CudaBatch(sketch, choices, H200), kernel, report)


def sketch_of(func: PrimFunc) -> Sketch:
    (draft,) = AutoInline().apply(SketchBuilder.begin(func, H200))
    return TensorTiles().apply(draft)[0].finish()


@pytest.mark.parametrize(
    ("spec", "decisions"),
    [
        ("matmul:128,128,64,acc_dtype=float32,out_dtype=float32:bfloat16", (2, 2, 2, 4, 2, 1)),
        ("matmul:512,64,64,acc_dtype=float32,transpose_a=true:float16", (1, 4, 1, 8, 2, 4, 1)),
        # Bytes of rows along n: `ldmatrix` does not transpose them, and some of their words share
        # banks.
        ("matmul:64,64,256,acc_dtype=int32:int8", (1, 2, 1, 4, 2, 2)),
        ("dense:64,64,256,acc_dtype=int32:int8", (1, 4, 1, 4, 2, 3)),
    ],
)
def test_the_emulator_counts_the_same(spec: str, decisions: Decisions) -> None:
    seen = emulated(spec, decisions)
    tables, time, counts = seen.tables, seen.batch.time, seen.report.instructions
    blocks = seen.report.num_blocks
    assert tables.threads[0] == np.prod(seen.kernel.block)
    assert tables.blocks[0] == np.prod(seen.kernel.grid) == blocks
    assert tables.shared_bytes[0] == seen.kernel.shared_bytes
    steps = tables.instruction_steps[0] * tables.warps[0] * blocks
    assert counts[InstructionClass.MATRIX] == tables.step_products[0] * steps
    loads = counts[InstructionClass.MATRIX_LOAD] + counts.get(InstructionClass.SHARED_LOAD, 0)
    assert loads == tables.step_loads[0] * steps
    wavefronts = time.block["shared"][0] * seen.batch.rates.clock * blocks
    assert seen.report.shared_wavefronts == pytest.approx(wavefronts)
    assert seen.report.global_bytes == time.issued_bytes[0]
    assert seen.report.bytes_read + seen.report.bytes_written == time.memory_bytes[0]


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:90,120,72,acc_dtype=float32:float16",
        "conv2d:1,16,9,9,24,3,1,1,layout=NHWC,acc_dtype=float32:float16",
    ],
)
def test_padding_is_computed_but_not_moved_from_memory(spec: str) -> None:
    seen = emulated(spec, (1, 2, 1, 4, 2, 2))
    time, report = seen.batch.time, seen.report
    assert seen.tables.blocks[0] == np.prod(seen.kernel.grid)
    products = seen.tables.step_products[0] * seen.tables.instruction_steps[0]
    assert report.instructions[InstructionClass.MATRIX] == products * report.num_blocks
    # Images count with the border that is not stored.
    assert time.memory_bytes[0] == pytest.approx(report.bytes_read + report.bytes_written, rel=0.2)


def test_the_estimate_prefers_tensor_cores_for_large_products_of_half_floats() -> None:
    space = space_of(ops.matmul(4096, 4096, 4096, dtype="bfloat16", acc_dtype="float32"))
    best = {}
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 256, np.random.default_rng(0))
        estimates = 2.0 ** space.features(index, choices)[:, CUDA_SPACE.estimate_column]
        best[sketch.name] = float(estimates.min())
    on_tensor_cores = best["tensor_tiles"]
    assert on_tensor_cores < min(best[name] for name in best if name.startswith("tiles")) / 4
    # `mma.sync` reaches 0.64 of 989 TFLOP/s at best.
    assert 2 * 4096**3 / (0.64 * 989e12) < on_tensor_cores < 2 * 4096**3 / 400e12


def test_columns_of_a_product_by_hand() -> None:
    func = ops.matmul(1024, 1024, 1024, dtype="bfloat16", acc_dtype="float32", out_dtype="float32")
    sketch = sketch_of(func)
    # The first options: 2 x 2 warps of 64 x 64 sums, and chunks of 32 steps.
    columns = named_features(sketch, row(sketch, 0, 0, 0, 0, 0, 0, 0), H200)
    values = {name: float(column[0]) for name, column in columns.items()}
    assert (values["threads"], values["blocks"]) == (7, 6)
    assert values["accumulators"] == np.log2(128)
    assert values["stages"] == 3
    # A warp multiplies 4 x 8 tiles of 16 x 8 x 16 for 4 + 4 `ldmatrix`.
    lanes_of_product = 16 * 8 * 16 / 32
    assert values["flops_per_shared_load"] == pytest.approx(np.log2(1 + 4 * lanes_of_product))
    assert values["shared_bytes"] == pytest.approx(np.log2(1 + 3 * 2 * 128 * 32 * 2))
    conflicts = [values[f"buffer{n}.{of}_conflicts"] for n in (1, 2) for of in ("read", "write")]
    assert conflicts == [1, 1, 1, 1]
