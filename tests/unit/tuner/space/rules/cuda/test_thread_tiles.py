"""Products by tiles of blocks and threads."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.backends.cuda.nvrtc import CompiledSource, compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.ir.core.nodes import BlockRealize
from compiler.ir.core.visit import walk
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from tests.unit.tuner.space.gpu_sketches import row
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes, draw, names, space_of
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

ALL = ["wide_tiles", "wide_tiles_async", "tiles", "tiles_async"]
SPECS = {
    "matmul_bias_relu:24,40,33": ALL,
    "matmul:37,41,13": ["tiles"],
    "dense:13,40,19": ["wide_tiles", "tiles"],
    "batch_matmul:2,17,12,20": ["tiles"],
    "conv2d:1,4,9,9,8,3,1,1": ["window_tiles", "window_tiles_async", "tiles"],
}


@pytest.mark.parametrize(("spec", "sketches"), SPECS.items())
def test_products_have_sketches(spec: str, sketches: list[str]) -> None:
    assert names(ops.from_spec(spec)) == sketches


@pytest.mark.parametrize(
    ("spec", "sketch"),
    [
        ("matmul_bias_relu:24,40,33", "wide_tiles"),
        ("matmul_bias_relu:24,40,33", "wide_tiles_async"),
        ("dense:13,40,19", "wide_tiles"),
        ("matmul_bias_relu:24,40,33", "tiles_async"),
        ("matmul:37,41,13", "tiles"),
        ("batch_matmul:2,17,12,20", "tiles"),
        ("conv2d:1,4,9,9,8,3,1,1", "tiles"),
    ],
)
def test_random_schedules_compute_the_program(spec: str, sketch: str) -> None:
    func = ops.from_spec(spec)
    assert_computes(func, draw(func, sketch, 1))


def sgemm_row(sketch: Sketch) -> Ints:
    """Return the decisions of a block of 128 x 128 x 16 by 8 warps, 8 rows of blocks a group."""
    decided = iter([4, 8, 8, 2, 8, 2, 8])
    # Placeholders, the first options, decide the copies.
    chosen = [next(decided, int(knob.options[0, -1])) for knob in sketch.knobs]
    return row(
        sketch,
        *(
            knob.options[:, -1].tolist().index(n)
            for knob, n in zip(sketch.knobs, chosen, strict=True)
        ),
    )


@pytest.fixture(scope="module", params=["wide_tiles", "wide_tiles_async"])
def sgemm(request: pytest.FixtureRequest) -> tuple[SketchKernel, DeviceKernel, CompiledSource]:
    """The tables and the compiled kernel of a large product, in blocks of 128 x 128."""
    func = ops.matmul(4096, 4096, 4096)
    sketch = next(s for s in space_of(func).sketches if s.name == request.param)
    choices = sgemm_row(sketch)
    assert CUDA_SPACE.passes(sketch, choices, H200).all()
    schedule = sketch.candidate(choices[0]).trace.apply_to(func)
    program = lower_for_device(schedule.func, H200.limits)
    (kernel,) = program.kernels
    table = CudaBatch(sketch, choices, H200).kernel
    return table, kernel, compile_cuda(emit_cuda(program), "sm_90a")


def test_a_large_product_has_a_block_of_eight_warps(
    sgemm: tuple[SketchKernel, DeviceKernel, CompiledSource],
) -> None:
    table, kernel, compiled = sgemm
    assert (kernel.grid, kernel.block) == ((1024, 1, 1), (32, 8, 1))
    # Each step reads 8 + 8 operands as four vectors for 64 multiply-adds.
    text = compiled.ptx
    assert text.count("fma.rn.f32") == 16 * text.count("ld.shared.v4.f32") == 8 * 64
    assert "ld.shared.f32" not in text
    assert text.count("st.global.v4.f32") == 16
    assert text.count("bar.sync") == 1
    (resources,) = compiled.resources.values()
    assert resources.registers <= 168
    assert resources.spill_bytes == resources.stack_bytes == 0
    assert kernel.shared_bytes == table.shared_bytes[0]
    assert table.accumulators[0] == 64


def test_a_large_product_reads_shared_memory_without_conflicts(
    sgemm: tuple[SketchKernel, DeviceKernel, CompiledSource],
) -> None:
    table, *_ = sgemm
    assert [read.read_conflicts[0] for read in table.staged] == [1, 1]


def test_a_product_of_a_vector_is_no_tile() -> None:
    assert names(ops.from_spec("dense:1,40,64")) == ["cross_thread"]


def test_padding_and_epilogue_need_no_memory_of_their_own() -> None:
    func = ops.from_spec("conv2d:1,4,9,9,8,3,1,1,activation=relu")
    (schedule,) = draw(func, "tiles", 1)
    blocks = {n.block.name for n in walk(schedule.func.body) if isinstance(n, BlockRealize)}
    assert "pad_temp" not in blocks
    outputs = {p.name for p in func.buffers}
    scopes = {
        buffer.scope
        for node in walk(schedule.func.body)
        if isinstance(node, BlockRealize)
        for buffer in node.block.alloc_buffers
        if buffer.name not in outputs
    }
    assert scopes == {"local", "shared"}


def test_vectors_of_copies_divide_the_rows_of_their_source() -> None:
    (sketch,) = space_of(ops.from_spec("matmul:40,42,24")).sketches
    # Rows of the larger operand, the right one, have 42 elements, those of the left one 24.
    assert [knob.options[:, 0].tolist() for knob in sketch.knobs[-2:]] == [[2, 1], [4, 2, 1]]
