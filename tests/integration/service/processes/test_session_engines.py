"""Sessions of remote clients with workers: each part on their way keeps the contract."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.processes.cluster_sessions import ClusterSessions
from service.processes.coordinator_thread import CoordinatorThread
from service.processes.engine_supervisor import EngineSupervisor
from service.store.database.database import Database
from tests.contracts.session_engine import SessionEngineContract
from tests.patience import PATIENCE_SECS
from workers.engine.dask_engine import DaskEngine
from workers.engine.engine import ClusterAddress, NoSessionError


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    with closing(DaskEngine.embedded()) as engine:
        yield engine


class TestDaskEngine(SessionEngineContract):
    @pytest.fixture
    def sessions(self, engine: DaskEngine) -> DaskEngine:
        return engine


class TestEngineSupervisor(SessionEngineContract):
    @pytest.fixture
    def sessions(self, database: Database, engine: DaskEngine) -> EngineSupervisor:
        # Not closed here: it would end the engine, which the next test uses.
        return EngineSupervisor(database, lambda: engine, rest_after_secs=3600)


class TestClusterSessions(SessionEngineContract):
    @pytest.fixture
    def sessions(self, engine: DaskEngine, monkeypatch: pytest.MonkeyPatch) -> ClusterSessions:
        # The workers of the engine are the cluster: its certificates are not in files.
        monkeypatch.setattr(DaskEngine, "connected", lambda _: engine)
        return ClusterSessions(ClusterAddress("tls://127.0.0.1:1", Path("unused")))


class TestCoordinatorThread(SessionEngineContract):
    @pytest.fixture
    def sessions(self, database: Database) -> Iterator[CoordinatorThread]:
        thread = CoordinatorThread(database, 1)
        with pytest.raises(NoSessionError, match="the workers are starting"):
            thread.open_session("cpu", "a")
        thread.start()
        deadline = time.monotonic() + PATIENCE_SECS
        while True:
            try:
                thread.close_session(thread.open_session("cpu", "a"), "a")
                break
            except NoSessionError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield thread
        thread.stop(PATIENCE_SECS)
