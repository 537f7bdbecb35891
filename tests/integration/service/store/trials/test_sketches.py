"""The labels of sketches and the decisions of trials, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pytest
from sqlalchemy import select, text

from compiler.schedule.trace.trace_json import decided_numbers
from service.store.database import migrate
from service.store.database.database import Database
from service.store.trials.sketches import SketchRow
from service.store.trials.trials import TrialRow
from tests.integration.service.recorded import get, put
from tests.integration.service.tuned import SPEC, task_of, tuned
from tuner.space.tables.labels import axis_labels

pytestmark = pytest.mark.on_both_databases
Stored: TypeAlias = tuple[Mapping[tuple[str, str], Sequence[str]], Mapping[int, Sequence[int]]]


def stored(database: Database) -> Stored:
    """Return the labels of all sketches, and the decisions of all trials."""
    with database.read() as session:
        sketches = session.scalars(select(SketchRow)).all()
        trials = session.execute(select(TrialRow.number, TrialRow.decisions)).all()
        labels = {(str(row.job_id), row.name): row.labels for row in sketches}
        return labels, {row[0]: row[1] for row in trials}


def test_each_sketch_is_labelled_once_and_each_trial_has_its_numbers(database: Database) -> None:
    job_id, measured = tuned(database, SPEC)
    labels, decisions = stored(database)
    func = task_of(SPEC).func
    assert len({trial.candidate.sketch for trial in measured}) > 2
    assert labels == {
        (str(job_id), trial.candidate.sketch): list(axis_labels(trial.candidate.trace, func))
        for trial in measured
    }
    assert decisions == {
        trial.number: decided_numbers(trial.candidate.trace.to_json()) for trial in measured
    }


def test_a_migration_finds_them_in_the_traces(database: Database) -> None:
    tuned(database, SPEC)
    expected = stored(database)
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0014")
        assert connection.execute(text("SELECT count(trace) FROM trials")).scalar_one() > 8
        migrate.upgrade(connection)
    assert stored(database) == expected


def test_records_need_none_of_them(database: Database) -> None:
    tuned(database, SPEC)
    expected, records = stored(database), get(database)
    assert put(database, records).trials == 0  # the store has them already
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection)
        migrate.upgrade(connection)
    put(database, records)
    assert stored(database) == expected
