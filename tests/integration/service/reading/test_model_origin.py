"""The origin of a job's cost model, over a real database."""

from __future__ import annotations

from typing import Any

import pytest

from service.reading.model_origin import model_origin
from service.store import cost_models, warm_starts
from service.store.cost_models import NewCostModel
from service.store.database.database import Database
from service.wire.readings import ModelOrigin
from service.wire.requests import Strategy
from tests.integration.service.tuned import claimed


@pytest.mark.parametrize(
    ("quality", "origin"),
    [
        ({"is_base": True}, ModelOrigin.RECORDED),
        ({"pairwise": 0.8}, ModelOrigin.MEASUREMENTS),
    ],
)
def test_a_stored_model_is_of_recorded_sets_or_of_measurements(
    database: Database, quality: dict[str, Any], origin: ModelOrigin
) -> None:
    job = claimed(database)
    new = NewCostModel(label="cpu/any", blob=b"", trained_on=1, quality=quality)
    with database.write() as session:
        model = cost_models.add(session, new)
        warm_starts.keep(session, job.id, cost_model_id=model.id)
        assert model_origin(session, job) is origin


def test_a_job_without_a_model_starts_from_the_estimate(database: Database) -> None:
    job = claimed(database)
    with database.write() as session:
        assert model_origin(session, job) is ModelOrigin.ESTIMATE
        warm_starts.keep(session, job.id)
        assert model_origin(session, job) is ModelOrigin.ESTIMATE


def test_a_strategy_without_a_model_starts_from_nothing(database: Database) -> None:
    job = claimed(database)
    job.strategy = Strategy.RANDOM
    with database.read() as session:
        assert model_origin(session, job) is ModelOrigin.NOTHING
