"""Several vectors side by side."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler.driver import emit
from compiler.target.cpu import CpuTarget
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import (
    calling,
    errors,
)
from tests.unit.compiler.backends.cpu.codegen.programs import run

AVX2 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")


@pytest.mark.parametrize("size", [3, 8, 31, 32, 45, 64, 150])
def test_chains_of_several_vectors_run_side_by_side(size: int) -> None:
    x = np.random.default_rng(size).uniform(-9, 9, size).astype(np.float32)
    program = calling("exp", size)
    lanes = {int(n) for n in re.findall(r"@llvm\.fma\.v(\d+)f32", emit(program, AVX2).text)}
    assert max(lanes, default=1) == min(32, 1 << size.bit_length() - 1)
    assert errors(run(program, x), np.exp(x.astype(np.float64))).max() < 1
