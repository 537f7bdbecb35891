"""The ways in which the oracle runs programs: tests that import `way` run in each."""

import pytest

from compiler.ir.interpret.oracle.oracle_plan import OraclePlan
from compiler.ir.interpret.oracle.scalar_eval import can_run


@pytest.fixture(autouse=True, params=["arrays", "scalars", "as planned"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run programs as arrays and one scalar at a time: what is planned depends on their size."""
    if request.param == "arrays":
        monkeypatch.setattr(OraclePlan, "is_scalar", lambda *_: False)
    if request.param == "scalars":
        monkeypatch.setattr(OraclePlan, "is_scalar", lambda _, loop: can_run(loop))
