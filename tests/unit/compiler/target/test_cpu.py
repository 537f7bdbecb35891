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
        (
            "cpu -cache=hot",
            "bad state of caches 'hot' in target 'cpu -cache=hot': expected cold or",
        ),
        ("cpu -mcpu=spacemit-x60 -cache=cold", "no instruction that evicts"),
        ("cuda -gpu=h200 -cache=cold", "is for CPUs: leave it out"),
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


def test_cold_caches_make_another_target_on_the_same_machine() -> None:
    warm, cold = (
        Target("cpu -mcpu=znver3 -num-cores=2"),
        Target("cpu -cache=cold -mcpu=znver3 -num-cores=2"),
    )
    assert cold.name == "cpu -mcpu=znver3 -num-cores=2 -cache=cold"
    assert Target(cold.name) == cold != warm == Target(f"{warm.name} -cache=warm")
    assert (cold.is_cold, warm.is_cold) == (True, False)
    assert cold.label == warm.label == warm.timing_label == "cpu/znver3"
    assert cold.timing_label == "cpu/znver3-cold"
