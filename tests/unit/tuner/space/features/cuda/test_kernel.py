"""Tables of kernels, against lowered programs whose threads run one by one."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.emulate import emulate
from compiler.ir.core.nodes import static_int
from compiler.ir.core.program import PrimFunc
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.features.cuda.memory_requests import requests_of
from tests.unit.tuner.space.gpu_sketches import product_sketch, row
from tests.unit.tuner.space.gpu_spaces import H200, space_of
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

LIMITS = H200.limits
PRODUCT = ops.matmul(32, 64, 16)
DECISIONS = [
    (((2, 1, 4, 4), (2, 1, 8, 4), (2, 4, 2), 0), 0),
    (((1, 2, 4, 4), (1, 2, 8, 4), (2, 4, 2), 0), 4),
    (((2, 1, 16, 1), (8, 1, 8, 1), (1, 16, 1), 2), 1),
    (((2, 2, 2, 4), (1, 1, 32, 2), (2, 4, 2), 1), 0),
]


def kernel_of(sketch: Sketch, choices: Ints) -> SketchKernel:
    return CudaBatch(sketch, choices, H200).kernel


def lowered(func: PrimFunc, sketch: Sketch, choices: Ints) -> DeviceKernel:
    schedule = sketch.candidate(choices[0]).trace.apply_to(func)
    (kernel,) = lower_for_device(schedule.func, LIMITS).kernels
    return kernel


@pytest.mark.parametrize(("decisions", "padding"), DECISIONS)
def test_a_product_is_the_lowered_one(
    decisions: tuple[tuple[int, ...] | int, ...], padding: int
) -> None:
    sketch = product_sketch(PRODUCT, H200, padding)
    choices = row(sketch, *decisions)
    table, program = kernel_of(sketch, choices), lowered(PRODUCT, sketch, choices)
    assert table.threads[0] == np.prod(program.block)
    assert table.blocks[0] == np.prod(program.grid)
    assert table.shared_bytes[0] == program.shared_bytes
    requests = requests_of(program)
    output, *reads = table.accesses
    assert output.requests[0] == len(requests["store", "C"])
    assert output.requests[0] * output.sectors_per_request[0] == requests["store", "C"].num_sectors
    assert reads == table.staged
    for read in table.staged:
        name = read.access.buffer
        copied = requests["load", name]
        assert read.requests[0] == len(copied)
        assert read.requests[0] * read.sectors_per_request[0] == copied.num_sectors
        stored = requests["store", f"{name}_shared"]
        assert stored.first_wavefronts == read.write_wavefronts[0]
        loaded = requests["load", f"{name}_shared"]
        assert loaded.first_wavefronts == read.read_wavefronts[0]
        assert loaded.width == read.width[0]


def test_the_emulator_counts_the_same() -> None:
    decisions = ((1, 2, 4, 4), (1, 2, 8, 4), (2, 8, 1), 0)
    sketch = product_sketch(PRODUCT, H200)
    choices = row(sketch, *decisions)
    batch = CudaBatch(sketch, choices, H200)
    program = lower_for_device(sketch.candidate(choices[0]).trace.apply_to(PRODUCT).func, LIMITS)
    (kernel,) = program.kernels
    arrays = [np.ones([static_int(n) for n in b.shape], np.float32) for b in kernel.buffers]
    report = emulate(
        compile_cuda(emit_cuda(program), H200.arch).ptx,
        kernel.name,
        kernel.grid,
        kernel.block,
        arrays,
        dynamic_shared_bytes=kernel.shared_bytes,
        blocks=[0],
    )
    assert not report.faults
    table = batch.kernel
    warps = table.warps[0]
    fmas = table.steps[0] * table.accumulators[0] * warps
    assert report.instructions[InstructionClass.FMA] == fmas
    assert report.global_bytes == batch.time.issued_bytes[0] / table.blocks[0]
    assert report.shared_wavefronts == batch.time.block["shared"][0] * batch.rates.clock


def test_padding_removes_conflicts() -> None:
    decisions = ((1, 2, 4, 4), (1, 2, 8, 4), (1, 16, 1), 2)
    plain, padded = (product_sketch(PRODUCT, H200, padding) for padding in (0, 1))
    left, aligned = (
        next(read for read in kernel_of(s, row(s, *decisions)).staged if read.access.buffer == "A")
        for s in (plain, padded)
    )
    # Four rows of a warp are 64 elements apart: all in one bank.
    assert left.read_conflicts[0] == 4
    assert aligned.read_conflicts[0] == 1
    assert aligned.shared_bytes[0] > left.shared_bytes[0]


def test_the_registers_of_a_known_kernel() -> None:
    # 128 x 128 x 16 by 256 threads, 8 x 8 each: NVRTC used 128 for 8 x 8 sums and 8 + 8 operands.
    func = ops.matmul(512, 512, 512)
    sketch = product_sketch(func, H200)
    kernel = kernel_of(sketch, row(sketch, (4, 2, 16, 4), (4, 2, 16, 4), (32, 8, 2), 0))
    assert kernel.registers[0] == 14 + 1.5 * 64 + 8 + 8
    assert kernel.accumulators[0] == 64
    assert kernel.shared_bytes[0] == 2 * 128 * 16 * 4
    assert kernel.occupancy.blocks[0] == 2
    # Eight single elements of A, and two vectors of B, for 64 multiply-adds.
    assert kernel.shared_loads[0] == 8 + 2
    assert kernel.pieces[0] == 32
    assert kernel.barriers[0] == 64


def test_registers_that_do_not_fit_spill() -> None:
    func = ops.matmul(512, 512, 512)
    sketch = product_sketch(func, H200)
    kernel = kernel_of(sketch, row(sketch, (1, 2, 32, 8), (1, 2, 32, 8), (64, 8, 1), 0))
    assert kernel.threads[0] == 1024
    assert kernel.max_registers[0] == 64
    assert kernel.registers[0] > 256
    assert kernel.occupancy.blocks[0] == 1


def test_a_kernel_of_several_blocks_keeps_rows_in_shared_memory() -> None:
    func = ops.softmax(16, 256)
    space = space_of(func)
    (index,) = [i for i, sketch in enumerate(space.sketches) if sketch.name == "staged_rows"]
    choices = space.draw(index, 4, np.random.default_rng(0))
    batch = CudaBatch(space.sketches[index], choices, H200)
    assert (len(batch.kernels), batch.num_launches) == (4, 1)
    # The input and the powers are read by all threads of a row; the output goes to memory.
    on_chip = [read.access.buffer for read in batch.kernel.accesses if read.on_chip]
    assert on_chip == ["powers", "largest"]
    for number in range(len(choices)):
        program = lowered(func, space.sketches[index], choices[number : number + 1])
        for kernel in batch.kernels:
            # Lowering may also keep the partial results of warps, at most a word each. It may
            # keep two results of up to eight rows in the same words.
            extra = program.shared_bytes - kernel.shared_bytes[number]
            assert -8 * 4 <= extra <= 32 * 4
