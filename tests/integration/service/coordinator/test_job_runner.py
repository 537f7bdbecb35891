"""The driver of jobs, and the player of recorded ones, keep the contract of `JobDriver`."""

from __future__ import annotations

import pytest

from service.coordinator.coordinator import Coordinator
from service.coordinator.job_runner import JobRunner
from service.demo import player
from service.demo.player import Player
from service.store.database.database import Database
from tests.contracts.job_driver import JobDriverContract
from tests.integration.service.driving import cost, drive, submit
from tuner.measurer.memory import MemoryMeasurer


class TestJobRunner(JobDriverContract):
    @pytest.fixture
    def coordinator(self, database: Database) -> Coordinator:
        submit(database)
        coordinator = Coordinator(database, MemoryMeasurer(cost))
        assert isinstance(coordinator.driver, JobRunner)
        return coordinator


class TestPlayer(JobDriverContract):
    @pytest.fixture
    def coordinator(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
        monkeypatch.setattr(player, "MAX_PAUSE_SECS", 0.0)
        submit(database)
        drive(database)
        coordinator = Coordinator(database, MemoryMeasurer(cost))
        plays = Player(database, coordinator.owner, coordinator.driver)
        plays.submit_all()
        coordinator.driver = plays
        return coordinator
