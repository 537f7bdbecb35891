"""The text of kernels on tensor cores: it compiles for each generation, without spills."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.effects import EFFECTS, helper_of
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.cuda.text.prelude import HELPERS
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.target.gpus import ARCHS
from compiler.target.tensor_cores import MMA_INSTRUCTIONS
from tests.tensor_core_matmul import BF16, Tiles, emulate_product, scheduled


def text_of(name: str, *, is_b_transposed: bool = False) -> str:
    instruction = MMA_INSTRUCTIONS[name]
    k = instruction.shape[2]
    tiles = Tiles((32, 32, k), (32, 32), is_b_transposed)
    sch = scheduled((32, 32, 2 * k), instruction, tiles)
    return emit_cuda(lower_for_device(sch.func, ARCHS["sm_80"]))


@pytest.fixture(scope="module")
def bf16_text() -> str:
    return text_of(BF16.name)


def test_each_call_of_lowering_has_a_helper() -> None:
    assert set(map(helper_of, EFFECTS)) <= HELPERS.keys()


def test_operands_are_loaded_by_matrices_and_multiplied_in_registers(bf16_text: str) -> None:
    lines = [line.strip() for line in bf16_text.splitlines()]
    assert "uint32 A_wmma_matrix_a[8];" in lines
    assert "float C_wmma_accumulator[32];" in lines
    assert any(
        line.startswith("ldmatrix_x4(&A_wmma_matrix_a[ax0_0 * 4], &A_shared[") for line in lines
    )
    assert any(
        line.startswith("ldmatrix_x4_trans(&B_wmma_matrix_b[ax1_0_pair * 4], ") for line in lines
    )
    assert (
        "mma_m16n8k16_bf16_f32(&C_wmma_accumulator[i_2 * 16 + j_2 * 4], &A_wmma_matrix_a[i_2 * 4], "
        "&B_wmma_matrix_b[j_2 * 2]);"
    ) in lines


def test_an_operand_of_rows_along_k_is_not_transposed() -> None:
    text = text_of("mma.m16n8k32.s8.s32", is_b_transposed=True)
    assert "ldmatrix_x4(&B_wmma_matrix_b[" in text
    assert "_trans(&" not in text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_the_text_compiles_without_spills(bf16_text: str, arch: str) -> None:
    resources = compile_cuda(bf16_text, arch).resources["main_kernel"]
    assert resources.spill_bytes == resources.stack_bytes == 0
    # 32 sums, 16 registers of operands, 32 of copies, and addresses.
    assert resources.registers <= 128


@pytest.mark.parametrize(
    ("name", "is_b_transposed", "family"),
    [
        ("mma.m16n8k16.f16.f32", False, "wmma"),
        ("mma.m16n8k16.f16.f16", True, "wmma"),
        ("mma.m16n8k8.tf32.f32", False, "mma"),
        ("mma.m16n8k32.s8.s32", False, "mma"),
        ("mma.m16n8k32.s8.s32", True, "mma"),
        ("mma.m16n8k32.e4m3.f32", True, "mma"),
        ("mma.m16n8k32.e5m2.f32", False, "mma"),
    ],
)
def test_a_product_on_tensor_cores_is_exact(name: str, is_b_transposed: bool, family: str) -> None:
    instruction = MMA_INSTRUCTIONS[name]
    k = instruction.shape[2]
    tiles = Tiles((32, 32, k), (32, 32), is_b_transposed, family=family)
    func = scheduled((32, 32, 2 * k), instruction, tiles).func
    product = emulate_product(func, instruction, is_b_transposed=is_b_transposed, arch="sm_120")
    assert not product.report.faults
    assert np.array_equal(product.result.astype(np.int64), product.expected)


def test_warps_and_blocks_share_the_work_without_races() -> None:
    func = scheduled((64, 64, 32), tiles=Tiles((64, 32, 16), (32, 16))).func
    product = emulate_product(func)
    assert not product.report.faults
    assert np.array_equal(product.result.astype(np.int64), product.expected)


def test_an_architecture_without_the_instruction_is_named() -> None:
    instruction = MMA_INSTRUCTIONS["mma.m16n8k32.e4m3.f32"]
    func = scheduled((32, 32, 32), instruction, Tiles((32, 32, 32), (32, 32))).func
    with pytest.raises(LoweringError, match=r"runs mma\.m16n8k32\.e4m3\.f32, .* from sm_89 on"):
        lower_for_device(func, ARCHS["sm_80"])
    assert lower_for_device(func, ARCHS["sm_89"]).kernels
