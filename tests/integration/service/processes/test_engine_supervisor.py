"""An `EngineSupervisor`, and a seat at it, keep the contract of all that measures requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from service.processes.engine_seat import EngineSeat
from service.processes.engine_supervisor import EngineSupervisor
from service.store.database.database import Database
from tests.contracts.request_measurer import RequestMeasurerContract
from workers.engine.dask_engine import DaskEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    with closing(DaskEngine.embedded()) as engine:
        yield engine


@pytest.mark.parametrize("has_seat", [False, True], ids=["supervisor", "seat"])
class TestEngineSupervisor(RequestMeasurerContract):
    @pytest.fixture
    def measurer(
        self, database: Database, engine: DaskEngine, *, has_seat: bool
    ) -> EngineSupervisor | EngineSeat:
        # Not closed here: it would end the engine, which the next test uses.
        supervisor = EngineSupervisor(database, lambda: engine, rest_after_secs=3600)
        return EngineSeat(supervisor) if has_seat else supervisor
