"""A few pairs of `make fuzz-cuda`, and the code that it prints for a failure."""

from __future__ import annotations

import pytest

from compiler.backends.trial_arrays import WrongResultError
from compiler.target.cuda import CudaTarget
from tests.property.fuzz_cuda import check, explain, run_pairs, target_of
from tests.property.generators.gpu_schedules import GpuPair, draw_pair

SEED = 1


NUM_PAIRS, CHUNK = 60, 3


def test_pairs_are_drawn_for_each_architecture() -> None:
    assert {target_of(number).arch for number in range(CHUNK)} == {"sm_80", "sm_90a", "sm_120"}


@pytest.mark.parametrize("first", range(0, NUM_PAIRS, CHUNK))
def test_emulated_kernels_of_random_schedules_are_equal_to_the_oracle(first: int) -> None:
    for number in range(first, first + CHUNK):
        target = target_of(number)
        check(draw_pair(SEED, number, target), target)


def test_a_pair_is_compiled_for_all_architectures() -> None:
    assert run_pairs(SEED, [0]) == []


def test_a_pair_that_fails_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(pair: GpuPair, target: CudaTarget) -> None:
        raise WrongResultError(f"{pair.operator} is wrong")

    monkeypatch.setattr("tests.property.fuzz_cuda.check", fault)
    (failed,) = run_pairs(SEED, [0])
    assert "is wrong" in failed.code
    assert "lw.inspect(sch" in failed.code


def test_the_code_of_a_failure_inspects_its_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    target = target_of(0)
    code = explain(0, draw_pair(SEED, 0, target), SEED, target, "it went wrong\nhere")
    assert code.endswith("# it went wrong\n# here\n")
    exec(compile(code, "<failure>", "exec"), {})
    shown = capsys.readouterr().out
    assert "no faults; equal to the oracle" in shown
    assert target.name in shown
