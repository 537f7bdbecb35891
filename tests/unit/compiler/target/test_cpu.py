"""CPUs by name: equal targets, and texts that are refused."""

from __future__ import annotations

import pytest

from compiler.target.cpu import CpuTarget
from compiler.target.error import TargetError
from compiler.target.target import Target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu", "unknown target kind 'tpu'"),
        ("", "unknown target kind ''"),
        ("cpu -mcpu=znver9", "did you mean 'znver"),
        ("cpu -num-cores=0", "bad number of cores '0'"),
        ("cpu -num-cores=99999", "expected 1 to 1024"),
        ("cpu fast", "unknown option 'fast'"),
    ],
)
def test_a_target_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        Target(text)


def test_equal_targets_are_equal_however_they_are_written() -> None:
    target = CpuTarget("cpu -num-cores=2 -mcpu=znver3")
    assert target == Target("llvm -num-cores=2 -mcpu=znver3")
    assert target == Target("cpu -mcpu=znver3 -num-cores=2")
    assert Target(target.name) == target
    assert Target("cpu -mcpu=native") == Target()
    assert target.vector_bits == 256
    assert target.num_vector_registers == 16
    assert target.label == "cpu/znver3"
