"""Models of the whole store: what they learn from, who gets them, training in the background."""

from __future__ import annotations

import json
from datetime import timedelta

import psutil
import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from compiler.target.target import Target
from loopwright.cli.main import app
from service.learning import retrain, training
from service.learning.retrain import Retrainer
from service.store import cost_models
from service.store.cost_models import CostModelRow, NewCostModel
from service.store.database.database import Database
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow
from tests.integration.service.tuned import task_of, tuned
from tests.patience import PATIENCE_SECS
from tuner.cost_model.cost_model import CostModelError
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import packaged_samples, packaged_sets
from tuner.space.features.features import SCHEMA_VERSION

LABEL = Target("cpu").label


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train at the usual priority: on a busy host the lowest would take for ever."""
    monkeypatch.setattr(retrain, "NICENESS", 0)


@pytest.fixture
def store(database: Database) -> Database:
    """Return a store with three small tasks."""
    for size in (64, 96, 128):
        tuned(database, f"matmul:{size},{size},{size}")
    return database


@pytest.fixture
def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every twelfth of the recorded sets: each model of a held-out task trains on them."""
    sets, samples = packaged_sets()[::12], packaged_samples()[::12]
    monkeypatch.setattr(training, "packaged_sets", lambda: sets)
    monkeypatch.setattr(training, "packaged_samples", lambda: samples)


def num_tuned(database: Database) -> int:
    with database.read() as session:
        return len(session.scalars(select(TrialRow).where(TrialRow.number > 0)).all())


def test_a_model_of_the_store_is_kept_and_found(store: Database) -> None:
    with store.read() as session:
        trained = training.train_on_store(session, LABEL)
    row = training.keep(store, LABEL, trained)
    assert (row.version, row.job_id, row.num_tasks, row.trained_on) == (
        1,
        None,
        3,
        num_tuned(store),
    )
    assert row.fingerprint == trained.fingerprint
    with store.read() as session:
        found = cost_models.newest_usable(session, LABEL)
        assert cost_models.newest_usable(session, "cpu/other") is None
        shown = cost_models.newest_first(session, limit=5)
    assert found is not None
    assert found.id == row.id
    assert XGBoostModel(base=found.blob).is_trained
    assert (shown[0].job_id, shown[0].num_tasks) == (None, 3)
    assert shown[0].quality["skipped"] == 0


def test_cold_times_train_no_warm_model(database: Database) -> None:
    tuned(database, "matmul:64,64,64", target="cpu -num-cores=1 -cache=cold")
    with database.read() as session, pytest.raises(CostModelError):
        training.train_on_store(session, LABEL)
    tuned(database, "matmul:96,96,96")
    with database.read() as session:
        warm = training.train_on_store(session, LABEL)
        cold = training.train_on_store(session, f"{LABEL}-cold")
        new = [training.num_new_trials(session, label) for label in (LABEL, f"{LABEL}-cold")]
    assert {key.partition(" -num")[2] for key in warm.by_task} == {"-cores=1"}
    assert len(cold.by_task) == 2
    assert new[0] == new[1] > 0
    assert cold.num_samples == 2 * warm.num_samples
    training.keep(database, LABEL, warm)
    with database.read() as session:
        assert cost_models.newest_usable(session, f"{LABEL}-cold") is None


def test_what_cannot_be_read_is_skipped_and_counted(store: Database) -> None:
    _, told = tuned(store, "matmul:80,80,80")
    key = task_of("matmul:80,80,80").workload_key
    before = num_tuned(store)
    with store.write() as session:
        session.execute(
            update(WorkloadRow).where(WorkloadRow.key == key).values(script="no program")
        )
    with store.read() as session:
        trained = training.train_on_store(session, LABEL)
    assert trained.num_tasks == 3
    assert trained.num_skipped == len(told)
    assert trained.num_samples == before - (len(told) - 1)  # its default is no sample anyway


def test_an_empty_store_has_nothing_to_train_on(database: Database) -> None:
    with database.read() as session, pytest.raises(CostModelError, match="no training data"):
        training.train_on_store(session, LABEL)


@pytest.mark.parametrize("how", ["damaged", "old"])
def test_a_model_that_cannot_be_used_is_passed_over(store: Database, how: str) -> None:
    with store.read() as session:
        trained = training.train_on_store(session, LABEL)
    usable = training.keep(store, LABEL, trained)
    blob = trained.model[:-1] if how == "damaged" else trained.model
    with store.write() as session:
        row = cost_models.add(session, NewCostModel(LABEL, blob, trained_on=1))
        row.feature_version = SCHEMA_VERSION - (how == "old")
    with store.read() as session:
        found = cost_models.newest_usable(session, LABEL)
    assert found is not None
    assert found.id == usable.id


def test_newer_measurements_and_those_of_here_count_more(store: Database) -> None:
    """The same data with other ages are another model."""
    with store.read() as session:
        new = training.train_on_store(session, LABEL)
    with store.write() as session:
        for trial in session.scalars(select(TrialRow)).all():
            if trial.number % 2:
                trial.created_at -= timedelta(days=720)
    with store.read() as session:
        old = training.train_on_store(session, LABEL)
    assert (old.num_samples, old.num_tasks) == (new.num_samples, new.num_tasks)
    assert old.model != new.model


def test_training_in_the_background_keeps_a_model(store: Database) -> None:
    retrainer = Retrainer(store, min_new_trials=8, min_pause_secs=0.0, with_packaged=False)
    assert retrainer.offer(LABEL)
    assert not retrainer.offer(LABEL), "one at a time"
    assert retrainer.wait(PATIENCE_SECS)
    with store.read() as session:
        row = session.scalars(select(CostModelRow)).one()
        assert training.num_new_trials(session, LABEL) == 0
    assert (row.num_tasks, row.trained_on) == (3, num_tuned(store))
    assert not retrainer.offer(LABEL), "nothing is new"
    tuned(store, "matmul:32,64,64")
    elsewhere = Retrainer(store, min_new_trials=8, min_pause_secs=600.0, with_packaged=False)
    assert not elsewhere.offer(LABEL), "another process trained a model just now"
    with store.write() as session:
        row = session.scalars(select(CostModelRow)).one()
        row.created_at -= timedelta(seconds=601)
    assert elsewhere.offer(LABEL)
    assert elsewhere.wait(PATIENCE_SECS)


def test_a_base_model_delays_no_training(store: Database) -> None:
    with store.write() as session:
        base = NewCostModel(LABEL, b"", trained_on=1, quality={"is_base": True})
        cost_models.add(session, base)
        assert training.trained_at(session, LABEL) is None


def test_training_waits_for_enough_that_is_new_and_for_its_turn(store: Database) -> None:
    assert not Retrainer(store, min_new_trials=10_000).offer(LABEL)
    assert not Retrainer(store).offer("cpu/other")
    stopped = Retrainer(store, min_new_trials=1)
    stopped.stop()
    assert not stopped.offer(LABEL)


def test_a_training_without_data_harms_nothing(store: Database) -> None:
    with store.write() as session:
        session.execute(update(TrialRow).values(sketch="of_an_old_version"))
    retrainer = Retrainer(store, min_new_trials=1, min_pause_secs=0.0, with_packaged=False)
    assert retrainer.offer(LABEL)
    assert retrainer.wait(PATIENCE_SECS)
    with store.read() as session:
        assert session.scalars(select(CostModelRow)).all() == []


def test_a_stop_kills_the_training(store: Database) -> None:
    others = psutil.Process().children()
    retrainer = Retrainer(store, min_new_trials=1, min_pause_secs=0.0, with_packaged=False)
    assert retrainer.offer(LABEL)
    retrainer.stop()
    assert retrainer.wait(0)
    assert psutil.Process().children() == others


@pytest.mark.usefixtures("few_sets")
def test_the_command_trains_and_shows_the_quality(database: Database) -> None:
    tuned(database, "matmul:64,64,64")
    ran = CliRunner().invoke(app, ["train", "--db", database.url, "--json"])
    assert ran.exit_code == 0, ran.output
    shown = json.loads(ran.stdout)
    assert (shown["label"], shown["version"], shown["job_id"]) == (LABEL, 1, None)
    assert shown["num_tasks"] == 1
    with database.read() as session:
        found = cost_models.newest_usable(session, LABEL)
    assert found is not None
    assert found.fingerprint == shown["fingerprint"]


def test_the_command_says_that_there_is_nothing_to_train_on(database: Database) -> None:
    ran = CliRunner().invoke(app, ["train", "--db", database.url])
    assert ran.exit_code == 1
    assert "no training data for a cost model" in ran.output
