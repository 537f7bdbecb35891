"""Permuted chunks in shared memory: tensor cores read all banks at once."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from tests.tensor_core_matmul import BF16, EmulatedProduct, Tiles, emulate_product, scheduled
from tests.unit.compiler.passes.device.checked_lowering import LIMITS


def run(block_k: int, *, is_b_transposed: bool, is_swizzled: bool) -> EmulatedProduct:
    tiles = Tiles((64, 64, block_k), (32, 64), is_b_transposed, is_swizzled=is_swizzled)
    func = scheduled((64, 64, block_k), BF16, tiles).func
    return emulate_product(func, is_b_transposed=is_b_transposed)


def conflicts(product: EmulatedProduct) -> list[float]:
    """Return the degree of conflicts of each access to shared memory."""
    return [access.ratio for access in product.report.accesses if access.memory == "shared"]


# Rows of A have 32, 64 and 128 bytes.
@pytest.mark.parametrize(("block_k", "is_b_transposed"), [(16, True), (32, False), (64, False)])
def test_permuted_chunks_have_no_bank_conflicts(block_k: int, is_b_transposed: bool) -> None:
    product = run(block_k, is_b_transposed=is_b_transposed, is_swizzled=True)
    assert not product.report.faults
    assert np.array_equal(product.result, product.expected)
    assert set(conflicts(product)) == {1.0}


def test_without_the_annotation_eight_rows_lie_in_the_same_banks() -> None:
    product = run(64, is_b_transposed=False, is_swizzled=False)
    assert max(conflicts(product)) == 8.0


@pytest.mark.parametrize("stages", [2, 3])
def test_asynchronous_copies_permute_the_chunks_of_each_stage(stages: int) -> None:
    sch = scheduled((32, 32, 128), BF16, Tiles((32, 32, 32), (32, 16), is_swizzled=True))
    chunk = sch.get_loops("A_shared")[3]
    sch.annotate(chunk, "software_pipeline_stage", [0, 0, stages - 1])
    sch.annotate(chunk, "software_pipeline_order", [0, 1, 2])
    sch.annotate(chunk, "software_pipeline_async_stages", [0])
    product = emulate_product(sch.func)
    assert not product.report.faults
    assert np.array_equal(product.result, product.expected)
    assert set(conflicts(product)) == {1.0}
    copies = [a for a in product.report.accesses if a.instruction.startswith("cp.async")]
    assert copies


def test_rows_of_other_lengths_are_refused() -> None:
    sch = scheduled((32, 48, 16), BF16, Tiles((32, 48, 16), (32, 48), is_swizzled=True))
    with pytest.raises(LoweringError, match="its rows have 6 chunks of 16 bytes"):
        lower_for_device(sch.func, LIMITS)


def test_memory_of_a_thread_is_refused() -> None:
    sch = scheduled((32, 32, 16), BF16, Tiles((32, 32, 16), (32, 32)))
    sch.annotate("A_wmma.matrix_a_o", "permuted_layout", 1)
    with pytest.raises(LoweringError, match="chunks are permuted in shared memory"):
        lower_for_device(sch.func, LIMITS)
