"""Programs and kernels of others call no function that the owner of a worker did not allow."""

from __future__ import annotations

import pytest

from compiler.runtime.measurement import ErrorKind
from tests.faults.requests import DEFAULT_TRACE, LIMITS
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureRequest

PRODUCT = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    with T.block("call"):
        T.reads(A[0:16, 0:16])
        T.writes(B[0:16, 0:16])
        T.call_packed("blas.matmul", A, A, B)
"""
SYSTEM = PRODUCT.replace(
    'T.call_packed("blas.matmul", A, A, B)',
    'T.evaluate(T.call_extern("int32", "system", A.data, B.data))',
)


def test_a_worker_calls_only_what_its_owner_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [
        MeasureRequest(text, "cpu -num-cores=1", (DEFAULT_TRACE,), limits=LIMITS)
        for text in (PRODUCT, SYSTEM)
    ]
    monkeypatch.delenv("LOOPWRIGHT_ALLOWED_FUNCTIONS", raising=False)
    with ChildRunner() as runner:
        found = [measured for request in requests for _, measured in runner.measure(request)]
    assert [measured.error for measured in found] == [ErrorKind.BUILD_ERROR] * 2
    for measured, name in zip(found, ("blas.matmul", "system"), strict=True):
        assert f"'{name}' is not allowed here" in measured.message
    monkeypatch.setenv("LOOPWRIGHT_ALLOWED_FUNCTIONS", "blas.matmul,system")
    with ChildRunner() as runner:
        found = [measured for request in requests for _, measured in runner.measure(request)]
    assert found[0].ok, found[0].message
    # Allowed is not registered: no name is looked up in the C library.
    assert "no function is registered as 'system'" in found[1].message
