"""Every operator of the library runs on an emulated GPU by its default binding.

One case of each operator; `python -m tests.unit.compiler.backends.cuda.operator_kernels` runs all.
"""

from __future__ import annotations

from functools import cache

import pytest

from compiler.target.cuda import CudaTarget
from tests.unit.compiler.backends.cuda.operator_kernels import (
    CompiledPrograms,
    compile_operators,
    first_of_each_operator,
)
from tests.unit.compiler.ops.specs import SPECS

CASES = first_of_each_operator(SPECS)
# Programs a source: compilations stay below a second each.
BATCH = 13


@cache
def compiled(batch: int) -> CompiledPrograms:
    specs = CASES[batch * BATCH : (batch + 1) * BATCH]
    return compile_operators(specs, CudaTarget("cuda -gpu=h200 -emulated"))


@pytest.mark.parametrize("spec", CASES)
def test_an_operator_equals_the_oracle(spec: str) -> None:
    assert compiled(CASES.index(spec) // BATCH).largest_error(spec) < 1
