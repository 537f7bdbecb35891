"""Tables of chains of products on tensor cores, against what the emulator counts."""

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
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.gpu_sketches import row
from tests.unit.tuner.space.gpu_spaces import H200
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.chain_kernel import ChainKernel
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.online_tensor_attention import OnlineTensorAttention
from tuner.space.rules.cuda.tensor_attention import TensorAttention
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

ONLINE, WHOLE_ROWS = OnlineTensorAttention(), TensorAttention()
Rule = OnlineTensorAttention | TensorAttention


def sketch_of(rule: Rule, func: PrimFunc) -> Sketch:
    (draft,) = AutoInline().apply(SketchBuilder.begin(func, H200))
    return rule.apply(draft)[0].finish()


def lowered(func: PrimFunc, sketch: Sketch, choices: Ints) -> DeviceProgram:
    return lower_for_device(sketch.candidate(choices).trace.apply_to(func).func, H200.limits)


@dataclass(frozen=True)
class EmulatedChain:
    """A candidate's tables, its lowered kernel, and the counts of the emulator."""

    batch: CudaBatch
    kernel: DeviceKernel
    report: EmulationReport

    @property
    def tables(self) -> ChainKernel:
        kernel = self.batch.kernel
        assert isinstance(kernel, ChainKernel)
        return kernel


CASES: dict[str, tuple[Rule, str, tuple[int, ...]]] = {
    # Warps along the rows, tiles of a warp, and 16 keys each of a block of keys.
    "online": (ONLINE, "attention:1,1,64,64,64,causal=true:bfloat16", (2, 1, 2)),
    "online, two tiles": (ONLINE, "attention:1,1,256,64,32:float16", (2, 2, 2)),
    # Warps down and across, tiles of a warp, 16 keys each of a piece of values, and keys of a warp.
    "whole rows": (WHOLE_ROWS, "attention:1,2,32,64,64,causal=true:bfloat16", (1, 2, 1, 2, 8)),
    "whole rows, pieces": (WHOLE_ROWS, "attention:1,1,64,128,32:float16", (2, 1, 1, 4, 32)),
}


@pytest.fixture(scope="module", params=list(CASES.values()), ids=list(CASES))
def emulated(request: pytest.FixtureRequest) -> EmulatedChain:
    """The emulated kernel of a candidate."""
    rule, spec, decisions = request.param
    func = ops.from_spec(spec)
    sketch = sketch_of(rule, func)
    values = [list(knob.options[:, 0]) for knob in sketch.knobs]
    choices = row(sketch, *(of.index(n) for of, n in zip(values, decisions, strict=True)))
    program = lowered(func, sketch, choices[0])
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
    return EmulatedChain(CudaBatch(sketch, choices, H200), kernel, report)


def test_the_launch_is_the_lowered_one(emulated: EmulatedChain) -> None:
    tables, kernel = emulated.tables, emulated.kernel
    assert tables.threads[0] == np.prod(kernel.block)
    assert tables.blocks[0] == np.prod(kernel.grid) == emulated.report.num_blocks


def test_tensor_cores_run_and_load_as_counted(emulated: EmulatedChain) -> None:
    tables, counts = emulated.tables, emulated.report.instructions
    assert counts[InstructionClass.MATRIX] == tables.matrix_products[0] * tables.blocks[0]
    assert counts[InstructionClass.MATRIX_LOAD] == tables.matrix_loads[0] * tables.blocks[0]


def test_traffic_is_that_of_the_emulator(emulated: EmulatedChain) -> None:
    time, report = emulated.batch.time, emulated.report
    assert report.global_bytes == time.issued_bytes[0]
    assert report.bytes_read + report.bytes_written == time.memory_bytes[0]
    wavefronts = time.block["shared"][0] * emulated.batch.rates.clock * report.num_blocks
    assert report.shared_wavefronts == pytest.approx(wavefronts, rel=0.03)


def test_instructions_are_estimated(emulated: EmulatedChain) -> None:
    issue = emulated.batch.time.block["issue"][0] * emulated.batch.rates.clock
    instructions = 4 * issue * emulated.report.num_blocks
    assert sum(emulated.report.instructions.values()) == pytest.approx(instructions, rel=0.2)


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        (ONLINE, "attention:1,2,128,256,32:bfloat16"),
        (ONLINE, "attention:1,1,64,64,32:float16"),
        (ONLINE, "attention:1,1,64,128,32:float8_e4m3fn"),
        (WHOLE_ROWS, "attention:1,2,128,256,32:bfloat16"),
    ],
    ids=["online", "online, one piece", "online, shared weights", "whole rows"],
)
def test_shared_memory_is_placed_as_in_the_lowered_kernel(rule: Rule, spec: str) -> None:
    func = ops.from_spec(spec)
    sketch = sketch_of(rule, func)
    choices = sketch.draw(2, np.random.default_rng(0))
    expected = [lowered(func, sketch, row).kernels[0].shared_bytes for row in choices]
    assert CudaBatch(sketch, choices, H200).kernel.shared_bytes.tolist() == expected


def test_candidates_that_do_not_fit_are_dropped() -> None:
    # 256 rows and 2 x 2 x 128 keys of 256 elements each are more than 227 KiB.
    sketch = sketch_of(ONLINE, ops.attention(1, 1, 512, 512, 256, dtype="bfloat16"))
    choices = sketch.draw(64, np.random.default_rng(0))
    kernel = CudaBatch(sketch, choices, H200).kernel
    passes = CUDA_SPACE.passes(sketch, choices, H200)
    assert passes.any()
    assert not passes.all()
    assert kernel.shared_bytes[passes].max() <= H200.limits.shared_bytes
    assert kernel.registers[passes].max() <= H200.limits.max_registers


def test_the_estimate_is_between_the_peak_and_a_tenth_of_it() -> None:
    sketch = sketch_of(ONLINE, ops.attention(1, 32, 4096, 4096, 128, dtype="bfloat16"))
    choices = sketch.draw(64, np.random.default_rng(0))
    best = CudaBatch(sketch, choices[CUDA_SPACE.passes(sketch, choices, H200)], H200).secs.min()
    rate = 4 * 32 * 4096 * 4096 * 128 / best
    assert 99e12 < rate < 0.64 * 989e12  # the ceiling of `mma.sync`
