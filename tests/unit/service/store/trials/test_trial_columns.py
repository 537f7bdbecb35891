"""The fields of a measurement are one list: a field that is added on one side only fails here.

`Measurement` is the list. Rows, models of the API and lines of records are written out: a column
has its SQL type, the API reads what newer servers send, and a record is checked as a stranger's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from pydantic import BaseModel

from compiler.runtime.conditions import TimingConditions
from compiler.runtime.measurement import (
    STORED_FIELDS,
    ErrorKind,
    LibraryFacts,
    Measurement,
    Setting,
)
from compiler.runtime.resources import KernelResources
from service.records.lines import (
    BaselineLine,
    ConditionsLine,
    FinalLine,
    ResourcesLine,
    SettingLine,
    TrialLine,
)
from service.store.database.base import Base
from service.store.jobs.baselines import BaselineRow
from service.store.results.finals import FinalRow
from service.store.trials.trial_columns import PACKED, SOURCES, TrialColumns
from service.store.trials.trials import TrialRow
from service.wire.baselines import BaselineTimes, SettingRead
from service.wire.models import ConditionsRead, ResourcesRead, TrialRead

OF_TRIAL = {
    *("job_id", "number", "candidate_key", "round", "sketch", "trace", "predicted", "created_at")
}
"""What a trial has besides its measurement."""
REPEATED = {"best_secs", "decisions"}
"""Columns that repeat `run_secs` and `trace`, for SQL and for plots."""

STORED_AS: Mapping[Any, type] = {
    ErrorKind: str,
    **dict.fromkeys((KernelResources, ResourcesRead, ResourcesLine), dict),
    **dict.fromkeys((TimingConditions, ConditionsRead, ConditionsLine), dict),
}
"""Types that are texts and objects of JSON."""


def columns(row: type[Base]) -> set[str]:
    return set(row.__table__.columns.keys())


def types(hints: Mapping[str, Any]) -> dict[str, set[type]]:
    """Return the types of fields without what constrains them."""
    return {name: plain(hint) for name, hint in hints.items()}


def plain(hint: Any) -> set[type]:
    """Return the classes of a type; a text and a text of certain values are alike."""
    origin = get_origin(hint)
    if origin is Annotated:
        return plain(get_args(hint)[0])
    if origin is tuple:
        return {tuple, *plain(get_args(hint)[0])}
    if args := get_args(hint):
        return set().union(*map(plain, args))
    return {STORED_AS.get(hint, hint)}


MEASURED = {name: get_type_hints(Measurement)[name] for name in STORED_FIELDS}


def test_each_field_of_a_measurement_is_stored_but_a_librarys_facts() -> None:
    assert {each.name for each in fields(Measurement)} - set(STORED_FIELDS) == {"library"}


def test_the_columns_of_a_trial_are_its_own_and_those_of_its_measurement() -> None:
    assert columns(TrialRow) == OF_TRIAL | set(STORED_FIELDS) | REPEATED


def test_a_trial_over_http_has_the_whole_measurement() -> None:
    # A client knows the job, and has no use for the key; `final` comes from another table.
    own = OF_TRIAL - {"job_id", "candidate_key"} | {"final"}
    assert set(TrialRead.model_fields) == own | set(STORED_FIELDS)


def test_a_record_has_all_columns_of_a_trial() -> None:
    assert set(TrialLine.model_fields) == columns(TrialRow) - REPEATED | {"kind"}


@pytest.mark.parametrize("model", [TrialRead, TrialLine])
def test_a_field_of_a_measurement_has_one_type_everywhere(model: type[BaseModel]) -> None:
    hints = get_type_hints(model, include_extras=True)
    assert types({name: hints[name] for name in STORED_FIELDS}) == types(MEASURED)


@pytest.mark.parametrize(("line", "row"), [(FinalLine, FinalRow), (BaselineLine, BaselineRow)])
def test_a_record_of_a_finish_has_all_columns(line: type[BaseModel], row: type[Base]) -> None:
    assert set(line.model_fields) == columns(row) | {"kind"}


def test_a_library_over_http_has_what_its_row_has() -> None:
    own = {"job_id", "trial_number", "worker", "toolchain", "created_at"}  # `BaselineRead` has some
    bounds = {"low", "high"}
    assert set(BaselineTimes.model_fields) == columns(BaselineRow) - own - bounds | {"interval"}


def test_what_a_library_reports_is_stored() -> None:
    # A share of the peak follows from the peak and the time.
    reported = {each.name for each in fields(LibraryFacts)} - {"peak_flops"} | {"share_of_peak"}
    assert reported <= columns(BaselineRow)


@pytest.mark.parametrize("model", [SettingRead, SettingLine])
def test_a_setting_of_a_library_has_the_same_fields_everywhere(model: type[BaseModel]) -> None:
    assert types(get_type_hints(model, include_extras=True)) == types(get_type_hints(Setting))


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        (ResourcesRead, KernelResources),
        (ResourcesLine, KernelResources),
        (ConditionsRead, TimingConditions),
        (ConditionsLine, TimingConditions),
    ],
)
def test_the_facts_of_a_gpu_have_the_same_fields_everywhere(
    model: type[BaseModel], facts: type
) -> None:
    hints = {name: get_type_hints(model, include_extras=True)[name] for name in model.model_fields}
    assert types(hints) == types(get_type_hints(facts))


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
