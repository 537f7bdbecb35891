"""Products on tensor cores."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.ir.core.nodes import For
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.device.lower import lower_for_device
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import ARCHS
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, MMA_INSTRUCTIONS
from tests.tensor_core_matmul import matmul
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.tensor_tiles import TensorTiles
from tuner.space.rules.sketch_builder import SketchBuilder


def product(name: str, *, is_b_transposed: bool = False) -> PrimFunc:
    instruction = MMA_INSTRUCTIONS[name]
    return matmul((32, 64, 64), instruction, is_b_transposed=is_b_transposed)


def rectified() -> PrimFunc:
    """Return a product with sums of 32 bits, a bias, and a result of 16 bits."""
    a = te.placeholder((32, 32), "float16", name="A")
    b = te.placeholder((32, 32), "float16", name="B")
    bias = te.placeholder((32,), "float32", name="bias")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute(
        (32, 32),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    d = te.compute(
        (32, 32), lambda i, j: te.max(c[i, j] + bias[j], 0.0).astype("float16"), name="D"
    )
    return te.create_prim_func([a, b, bias, d])


@pytest.mark.parametrize(
    "func",
    [
        product("mma.m16n8k16.bf16.f32"),
        product("mma.m16n8k32.s8.s32", is_b_transposed=True),
        ops.batch_matmul(2, 32, 32, 32, dtype="float16"),
        rectified(),
    ],
    ids=["bf16", "s8", "batch", "epilogue"],
)
def test_the_first_schedule_computes_the_program(func: PrimFunc) -> None:
    assert_runs_on_tensor_cores(func)


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:33,17,23,acc_dtype=float32:float16",
        "matmul:60,40,40,acc_dtype=float32,out_dtype=float16,bias=true,activation=relu:bfloat16",
        "matmul:40,20,36,acc_dtype=float32,transpose_a=true:bfloat16",
        "dense:17,33,40,acc_dtype=float32:float16",
        "batch_matmul:2,20,12,24,acc_dtype=float32:float16",
        "matmul:40,20,72,acc_dtype=int32:int8",
        "dense:24,20,72,acc_dtype=float32:float8_e4m3fn",
        "matmul:24,20,40,acc_dtype=float32,out_dtype=bfloat16:float8_e5m2",
    ],
)
def test_a_product_of_any_extents_is_padded(spec: str) -> None:
    assert_runs_on_tensor_cores(ops.from_spec(spec))


@pytest.mark.parametrize(
    "spec",
    [
        "conv2d:2,8,6,6,12,3,1,1,bias=true,activation=relu,acc_dtype=float32,out_dtype=float16:float16",
        "conv2d:1,8,9,9,16,3,2,1,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:2,12,4,4,8,1,acc_dtype=float32:float16",
        # Tiles of columns that are no whole image, and cut rows of pixels.
        "conv2d:2,8,5,6,8,3,2,1,bias=true,acc_dtype=float32:float16",
    ],
)
def test_a_convolution_is_a_product_of_matrices(spec: str) -> None:
    assert_runs_on_tensor_cores(ops.from_spec(spec))


def assert_runs_on_tensor_cores(func: PrimFunc) -> None:
    """Compare the first schedule with the program; exactly one loop is an instruction."""
    (draft,) = AutoInline().apply(SketchBuilder.begin(func, H200))
    with_tensor_cores, without = TensorTiles().apply(draft)
    assert (with_tensor_cores.name, without.name) == (("tensor_tiles",), ())
    schedule = with_tensor_cores.schedule
    notes = [
        dict(loop.annotations)[DEVICE_INSTRUCTION]
        for loop in walk_stmts(schedule.func.body)
        if isinstance(loop, For) and DEVICE_INSTRUCTION in dict(loop.annotations)
    ]
    assert len(notes) == 1
    assert_computes(func, [schedule])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_rows_whose_ends_are_no_vectors_are_copied_asynchronously(arch: str) -> None:
    # 40 steps are five vectors of a row; the chunks of 32 steps are padded.
    func = ops.matmul(60, 40, 40, dtype="bfloat16", acc_dtype="float32", out_dtype="float32")
    draft = TensorTiles().apply(SketchBuilder.begin(func, H200))[0]
    text = emit_cuda(lower_for_device(draft.schedule.func, ARCHS[arch]))
    assert "A_pad_shared_vec" not in text
    assert "B_pad_shared_vec" not in text
    assert "async_copy<16>(&A_pad_shared" in text
    assert compile_cuda(text, arch).resources["matmul_kernel"].spill_bytes == 0


@pytest.mark.parametrize(
    "func",
    [
        ops.matmul(64, 64, 64),  # tf32 would round the operands
        ops.matmul(64, 64, 64, "bfloat16", acc_dtype="bfloat16"),  # sums of 16 bits
        ops.dense(4, 64, 64, dtype="float16"),  # padding for the most part
        ops.depthwise_conv2d(1, 16, 8, 8, 3, dtype="float16"),  # no operand has rows of its own
    ],
)
def test_other_products_are_left_alone(func: PrimFunc) -> None:
    assert [draft.name for draft in TensorTiles().apply(SketchBuilder.begin(func, H200))] == [()]


def test_products_of_8_bit_floats_need_their_instruction() -> None:
    func = ops.dense(64, 64, 64, dtype="float8_e4m3fn", acc_dtype="float32", out_dtype="float32")
    for gpu, names in (("a100", [()]), ("l40s", [("tensor_tiles",), ()])):
        draft = SketchBuilder.begin(func, CudaTarget(f"cuda -gpu={gpu}"))
        assert [each.name for each in TensorTiles().apply(draft)] == names


def test_rows_of_single_elements_go_through_registers() -> None:
    func = ops.matmul(48, 33, 67, dtype="float16", acc_dtype="float32", out_dtype="float32")
    draft = TensorTiles().apply(SketchBuilder.begin(func, H200))[0]
    text = emit_cuda(lower_for_device(draft.schedule.func, H200.limits))
    assert "async_copy" not in text
    # Elements arrive while the instructions compute the chunk before theirs.
    loop = text[text.index("for (int k_0 = 0;") :]
    load, product, store = (loop.index(part) for part in ("? A[", "mma_m16n8k16", "] = A_pad_"))
    assert load < product < store
