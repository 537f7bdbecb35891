"""All test cases of ONNX by the reference, and a part of them by kernels."""

import zlib
from functools import cache

import pytest

from tests.integration.compiler.graph.onnx_backend.cases import all_cases
from tests.integration.compiler.graph.onnx_backend.compute import by_kernels, by_reference
from tests.integration.compiler.graph.onnx_backend.expected import deviations
from tests.integration.compiler.graph.onnx_backend.run import run_case

KERNEL_SHARE = 16
"""One of so many cases is compiled here; `make onnx-cases ARGS='--by kernels'` compiles all."""


@cache
def _outcomes() -> dict[str, str]:
    return {case.name: run_case(case, by_reference) for case in all_cases()}


def test_each_case_has_the_expected_outcome() -> None:
    assert deviations(_outcomes()) == []


@pytest.mark.parametrize(
    ("kind", "least"), [("node", 1645), ("pytorch-converted", 82), ("pytorch-operator", 35)]
)
def test_so_many_cases_pass(kind: str, least: int) -> None:
    passed = [case for case in all_cases() if _outcomes()[case.name] == "passed"]
    assert sum(case.kind == kind for case in passed) >= least


def test_kernels_compute_what_onnx_computes() -> None:
    outcomes = {
        case.name: run_case(case, by_kernels)
        for case in all_cases()
        if zlib.crc32(case.name.encode()) % KERNEL_SHARE == 0 and _outcomes()[case.name] == "passed"
    }
    assert deviations(outcomes) == []
