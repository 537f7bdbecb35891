"""The fields of a measurement are one list: a new one that is forgotten somewhere fails here."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from compiler.runtime.measurement import STORED_FIELDS, Measurement
from service.records.lines import TrialLine
from service.store.trials.trial_columns import PACKED, SOURCES, TrialColumns
from service.store.trials.trials import TrialRow
from service.wire.models import TrialRead

# What a trial has besides its measurement.
OF_TRIAL = {
    *("job_id", "number", "candidate_key", "round", "sketch", "trace", "predicted", "created_at")
}


def test_each_field_of_a_measurement_is_stored_but_a_librarys_facts() -> None:
    assert {each.name for each in fields(Measurement)} - set(STORED_FIELDS) == {"library"}


def test_the_columns_of_a_trial_are_its_own_and_those_of_its_measurement() -> None:
    columns = set(TrialRow.__table__.columns.keys())
    assert columns == OF_TRIAL | set(STORED_FIELDS) | {"best_secs"}


def test_a_trial_over_http_has_the_whole_measurement() -> None:
    assert set(STORED_FIELDS) <= set(TrialRead.model_fields)


def test_a_record_has_all_columns_of_a_trial() -> None:
    columns = set(TrialRow.__table__.columns.keys()) - {"best_secs"}  # which repeats `run_secs`
    assert set(TrialLine.model_fields) == columns | {"kind"}


def test_what_is_packed_comes_from_the_index_of_trials() -> None:
    table = TrialRow.metadata.tables["trials"]
    (index,) = (each for each in table.indexes if each.name == "ix_trials_narrow")
    assert [column.name for column in index.columns] == ["job_id", *SOURCES]
    assert set(SOURCES) <= set(TrialRow.__table__.columns.keys())


def test_the_packed_form_is_the_one_that_is_stored() -> None:
    """Databases hold chunks in this form: another one needs a migration."""
    assert PACKED.itemsize == 60
    assert PACKED.descr == [
        *(("number", "<i4"), ("round", "<i4"), ("sketch", "<u2"), ("outcome", "<u2")),
        *((name, "<f8") for name in ("best_secs", "predicted", "build_secs", "check_secs")),
        *(("time_secs", "<f8"), ("at", "<f8")),
    ]
    arrays = {each.name for each in fields(TrialColumns)} - {"sketches", "outcomes"}
    assert arrays == set(np.dtype(PACKED).names or ())
