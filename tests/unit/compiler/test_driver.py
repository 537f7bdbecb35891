from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build, compile_artifact
from compiler.ir.core.program import IRModule
from compiler.ops import matmul
from compiler.schedule.schedule import Schedule


def test_the_module_of_a_schedule_is_built() -> None:
    kernel = build(Schedule(matmul(4, 4, 4)).mod)
    out = np.empty((4, 4), "float32")
    kernel(np.eye(4, dtype="float32"), np.full((4, 4), 2, "float32"), out)
    np.testing.assert_array_equal(out, np.full((4, 4), 2))


def test_a_module_of_several_functions_is_no_kernel() -> None:
    func = matmul(4, 4, 4)
    module = IRModule((func, func.with_attr("global_symbol", "other")))
    with pytest.raises(BuildError, match="the module holds matmul, other"):
        compile_artifact(module)


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a PrimFunc or a Schedule, not a str"):
        compile_artifact("matmul:4,4,4")  # type: ignore[arg-type]
