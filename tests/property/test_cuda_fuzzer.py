"""A few pairs of `make fuzz-cuda`, and the code that it prints for a failure."""

from __future__ import annotations

from functools import cache

import pytest

from compiler.backends.trial_arrays import WrongResultError
from compiler.target.cuda import CudaTarget
from tests.property.fuzz_cuda import (
    CheckedPair,
    check,
    explain,
    run_pairs,
    summary,
    target_of,
)
from tests.property.generators.gpu_schedules import GpuPair, draw_pair
from tests.property.generators.gpu_workloads import ROUND

SEED = 1

NUM_PAIRS, CHUNK = 60, 3
MIN_OPERATORS = 9


@cache
def drawn_pair(number: int) -> GpuPair:
    return draw_pair(SEED, number, target_of(number))


def test_pairs_are_drawn_for_each_architecture() -> None:
    assert {target_of(number).arch for number in range(CHUNK)} == {"sm_80", "sm_90a", "sm_120"}


@pytest.mark.parametrize("first", range(0, NUM_PAIRS, CHUNK))
def test_emulated_kernels_of_random_schedules_are_equal_to_the_oracle(first: int) -> None:
    for number in range(first, first + CHUNK):
        check(drawn_pair(number), target_of(number))


def test_each_rule_gets_its_share() -> None:
    drawn = [drawn_pair(number) for number in range(len(ROUND))]
    sketches = {pair.sketch for pair in drawn}
    assert len({pair.operator for pair in drawn}) >= MIN_OPERATORS
    assert {"tiles", "tensor_tiles", "cross_thread", "transposed"} <= sketches
    assert sketches & {"rows", "staged_rows"}
    assert sketches & {"attention_tiles", "online_attention"}
    assert "online_tensor_attention" in sketches


def test_a_pair_is_compiled_for_all_architectures() -> None:
    (pair,) = run_pairs(SEED, [0])
    assert pair.failure is None


def test_pairs_are_counted_by_sketch_and_operator() -> None:
    pairs = [*(CheckedPair("flat", name) for name in ("add", "add", "relu"))]
    assert summary([*pairs, CheckedPair("rows", "softmax", "# wrong")]) == (
        "    3 flat: add 2, relu 1\n    1 rows: softmax 1\n4 pairs, 1 failed\n"
    )


def test_a_pair_that_fails_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(pair: GpuPair, target: CudaTarget) -> None:
        raise WrongResultError(f"{pair.operator} is wrong")

    monkeypatch.setattr("tests.property.fuzz_cuda.check", fault)
    (failure,) = (pair.failure for pair in run_pairs(SEED, [0]))
    assert failure is not None
    assert "is wrong" in failure
    assert f'make fuzz-cuda ARGS="--seed {SEED} --only 0"' in failure
    assert "lw.inspect(sch" in failure


def test_the_code_of_a_failure_inspects_its_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    number = ROUND.index("row_chain")
    target = target_of(number)
    code = explain(number, drawn_pair(number), SEED, target, "it went wrong\nhere")
    assert code.endswith("# it went wrong\n# here\n")
    exec(compile(code, "<failure>", "exec"), {})
    shown = capsys.readouterr().out
    assert "no faults; equal to the oracle" in shown
    assert target.name in shown
