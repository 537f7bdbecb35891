"""The data of a long-running service: worker health, cost models, a tuned model and a range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from service.coordinator.coordinator import Coordinator
from service.models.submit import submit_model
from service.shapes.submit import submit_shapes
from service.store import cost_models, workers
from service.store.cost_models import NewCostModel
from service.store.database.database import open_database
from service.wire.requests import ModelCreate, ModelSource, ShapesCreate, Strategy
from tests.integration.service.driving import cost
from tests.integration.service.models.networks import network, skeleton
from tests.integration.service.shapes.test_shapes import BODY, Timer
from tuner.measurer.memory import MemoryMeasurer
from workers.engine.engine import WorkerFacts

LABEL = "cpu/earlier"
WORKER = "earlier/0"
MODEL = "network" + 12 * "_with_a_long_name"
RANGE = "product"
SLOW_RATIO = 1.5
ACCURACIES = (0.7, 0.9, 0.8)
_SECS = 2e-5


def write(file: Path) -> None:
    """Write this data into a new database."""
    database = open_database(f"sqlite:///{file}")
    now = datetime.now(UTC)
    with database.write() as session:
        for ago in range(30, -1, -1):
            at = (now - timedelta(minutes=ago)).timestamp()
            secs = _SECS * (1 + 0.01 * (ago % 3)) if ago else _SECS * SLOW_RATIO
            sample = {"at": at, "secs": secs, "noise": 0.02, "utilisation": 0.75}
            # The process of five minutes ago went away while it worked.
            facts = WorkerFacts(
                WORKER, "earlier", LABEL, 1 + (ago < 5), is_busy=True, last_seen=at,
                facts={"sample": sample, "utilisation": 0.75, "versions": {"python": "3.11.2"}},
            )  # fmt: skip
            workers.record_facts(session, [facts])
        workers.record_resting(session, [WORKER])
        for accuracy in ACCURACIES:
            cost_models.add(session, _model(accuracy))
    database.close()


def tune_model(file: Path) -> None:
    """Tune a small model in a new database, by times that are made up."""
    database = open_database(f"sqlite:///{file}")
    request = ModelCreate(
        name=MODEL,
        model=ModelSource(graph=skeleton(network())),
        target="cpu -num-cores=1",
        max_trials=96,
        strategy=Strategy.RANDOM,
        warm_start=False,
    )
    submit_model(database, request)
    Coordinator(database, MemoryMeasurer(lambda candidate: cost(candidate) / 1e4)).run_one()
    database.close()


def tune_range(file: Path) -> None:
    """Tune a product over a range in a database, by times that are made up."""
    database = open_database(f"sqlite:///{file}")
    request = ShapesCreate.model_validate(
        {**BODY, "name": RANGE, "ranges": {"M": [1, 48]}, "max_trials": 48}
    )
    submit_shapes(database, request)
    Coordinator(database, Timer()).run_one()
    database.close()


def _model(accuracy: float) -> NewCostModel:
    figures = {"pairwise_accuracy": accuracy, "top1": 0.85, "top5": 0.95, "trials_saved": 12.0}
    return NewCostModel(
        label=LABEL,
        blob=b"",
        trained_on=1200,
        num_tasks=2,
        fingerprint="f" * 64,
        quality={**figures, "held_out_tasks": 1, "by_task": {f"{'k' * 64}@cpu": figures}},
    )
