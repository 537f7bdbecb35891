"""The contract of `Scheduled`. Subclass `ScheduledContract` and define `new`."""

from __future__ import annotations

import numpy as np

from compiler.driver import Scheduled, compile_kernel
from compiler.executor.kernel import LoadedKernel
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.verify.verify import verify
from tests.targets import level

N = 12


class ScheduledContract:
    """Tests of a schedule of `D = A + 1` over `N` elements of float32, in parts of 4."""

    def new(self) -> Scheduled:
        raise NotImplementedError

    def test_its_program_is_legal_and_the_same_each_time(self) -> None:
        scheduled = self.new()
        verify(scheduled.func)
        assert structural_equal(scheduled.func, scheduled.func)

    def test_its_kernel_is_that_of_its_program(self) -> None:
        scheduled = self.new()
        artifact = compile_kernel(scheduled, level(2))
        assert artifact.code == compile_kernel(scheduled.func, level(2)).code
        a, d = np.arange(N, dtype="float32"), np.zeros(N, "float32")
        LoadedKernel(artifact)(a, d)
        np.testing.assert_array_equal(d, a + 1)
