"""All test cases of ONNX by the reference, and a part of them by kernels."""

import zlib
from functools import cache

from tests.integration.compiler.graph.onnx_backend.cases import all_cases
from tests.integration.compiler.graph.onnx_backend.compute import by_kernels, by_reference
from tests.integration.compiler.graph.onnx_backend.run import run_case

KERNEL_SHARE = 8
"""One of so many cases is compiled here; `make onnx-cases ARGS='--by kernels'` compiles all."""


@cache
def _outcomes() -> dict[str, str]:
    return {case.name: run_case(case, by_reference) for case in all_cases()}


def _wrong(outcomes: dict[str, str]) -> dict[str, str]:
    return {name: x for name, x in outcomes.items() if x.startswith(("wrong", "failed"))}


def test_the_reference_computes_what_onnx_computes() -> None:
    assert _wrong(_outcomes()) == {}
    assert list(_outcomes().values()).count("passed") >= 1300


def test_kernels_compute_what_onnx_computes() -> None:
    outcomes = {
        case.name: run_case(case, by_kernels)
        for case in all_cases()
        if zlib.crc32(case.name.encode()) % KERNEL_SHARE == 0 and _outcomes()[case.name] == "passed"
    }
    assert _wrong(outcomes) == {}
