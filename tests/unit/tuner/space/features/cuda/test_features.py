"""Features of whole candidates for GPUs, and the order in which their estimate puts them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from compiler import ops
from compiler.target.cuda import CudaTarget
from tests.unit.tuner.space.gpu_sketches import product_sketch, row
from tests.unit.tuner.space.gpu_spaces import H200, space_of
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.features import (
    FEATURE_NAMES,
    NUM_FEATURES,
    features,
    named_features,
)
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

SPECS = [
    "conv2d:1,4,6,6,8,3,1,1",
    "softmax:8,32",
    "transpose:16,32",
    "matmul:64,64,64:float16",
    "attention:1,1,64,64,32",
    "attention:1,1,64,64,32:float16",
]
GOOD = ((32, 2, 16, 4), (32, 2, 16, 4), (256, 8, 2), 0)
"""Tiles of 128 x 128 x 16, by 256 threads: the usual ones of libraries."""


@cache
def large() -> Sketch:
    return product_sketch(ops.matmul(4096, 4096, 4096), H200)


def secs(sketch: Sketch, *decisions: tuple[int, ...] | int) -> float:
    column = features(sketch, row(sketch, *decisions), H200)[0, CUDA_SPACE.estimate_column]
    return float(2.0**column)


@pytest.mark.parametrize("spec", SPECS)
def test_every_column_is_a_number_and_has_its_name(spec: str) -> None:
    space = space_of(ops.from_spec(spec))
    rng = np.random.default_rng(0)
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 32, rng)
        matrix = space.features(index, choices)
        assert matrix.shape == (len(choices), NUM_FEATURES)
        assert matrix.dtype == np.float32
        assert np.isfinite(matrix).all()
        assert tuple(named_features(sketch, choices, H200)) == FEATURE_NAMES


def test_rows_that_no_gpu_can_run_have_features_too() -> None:
    choices: Ints = large().draw(500, np.random.default_rng(0))
    assert not CUDA_SPACE.passes(large(), choices, H200).all()
    assert np.isfinite(features(large(), choices, H200)).all()


def test_a_candidate_has_the_same_features_in_any_batch() -> None:
    choices = large().draw(64, np.random.default_rng(1))
    batch = features(large(), choices, H200)
    for position in (0, 20, 63):
        alone = features(large(), choices[position : position + 1], H200)
        assert alone[0].tolist() == batch[position].tolist()


def test_a_product_by_hand() -> None:
    columns = named_features(large(), row(large(), *GOOD), H200)
    found = {name: float(column[0]) for name, column in columns.items()}
    assert (found["threads"], found["blocks"], found["warps"]) == (8, 10, 3)
    assert found["occupancy"] == 2 * 8 / 64
    assert found["resident"] == 2
    # 1,024 blocks in rounds of 2 x 132: the fourth round is nearly full.
    assert found["waves"] == pytest.approx(np.log2(1024 / 264))
    assert found["tail"] == pytest.approx(1024 / 264 / 4)
    # 64 multiply-adds for ten loads.
    assert found["flops_per_shared_load"] == pytest.approx(np.log2(1 + 6.4))
    # A thread reads 8 + 8 floats for 64 multiply-adds; 128 x 16 floats of each for 128 x 128 x 16.
    assert found["intensity.shared"] == pytest.approx(np.log2(1 + 128 / 64))
    assert found["shared_bytes"] == pytest.approx(np.log2(1 + 2 * 128 * 16 * 4))
    copied = 2 * 2 * 128 * 16 * 4 * 256 * 1024 / 2
    assert 2 ** found["bytes.issued"] * 4096**3 == pytest.approx(copied + 4096**2 * 4)
    coalescing = {found[f"buffer{i}.coalescing"] for i in range(3)}
    assert coalescing == {1.0}


def test_the_estimate_orders_known_kernels() -> None:
    good = secs(large(), *GOOD)
    one_point = secs(large(), (256, 1, 16, 1), (256, 1, 16, 1), (256, 8, 2), 0)
    few_threads = secs(large(), (128, 2, 4, 4), (128, 2, 4, 4), (256, 8, 2), 0)
    few_blocks = secs(large(), (4, 8, 32, 4), (4, 8, 16, 8), (1024, 2, 2), 0)
    short_pieces = secs(large(), (32, 2, 16, 4), (32, 2, 16, 4), (4096, 1, 1), 2)
    assert good < few_threads < one_point
    assert good < short_pieces
    assert good < few_blocks
    # The H200 computes 67 TFLOP/s; cuBLAS reaches 45 of an H100's.
    assert 2 * 4096**3 / 67e12 < good < 2 * 4096**3 / 30e12


def test_the_estimate_prefers_neighbouring_addresses() -> None:
    space = space_of(ops.from_spec("relu:4096,4096"))
    choices = space.enumerate(0)
    estimates = 2.0 ** space.features(0, choices)[:, CUDA_SPACE.estimate_column]
    # Read and write 64 MiB each at 4.3 TB/s.
    assert estimates.min() == pytest.approx(2 * 2**26 / 4.32e12 + 2.5e-6, rel=0.05)


def test_another_gpu_has_other_estimates() -> None:
    choices = row(large(), *GOOD)
    column = CUDA_SPACE.estimate_column
    times = [
        float(features(large(), choices, CudaTarget(text))[0, column])
        for text in ("cuda -gpu=h200", "cuda -gpu=a100", "cuda -arch=sm_80", "cuda -arch=sm_86")
    ]
    assert times[0] < times[1] == times[2]
    assert np.isfinite(times[3])
