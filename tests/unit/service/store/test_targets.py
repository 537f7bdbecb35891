"""Targets, and what they can reach."""

from __future__ import annotations

import pytest

from service.store import targets
from service.store.database.database import Database
from service.store.targets import TargetRow

pytestmark = pytest.mark.on_both_databases
ONE, TWO = ("cpu -mcpu=znver3 -num-cores=1", "cpu -mcpu=znver3 -num-cores=2")


def test_peaks_are_learned_once_by_the_number_of_cores(database: Database) -> None:
    with database.write() as session:
        for name in (ONE, TWO, ONE):
            targets.ensure(session, name, "cpu/znver3")
        targets.ensure(session, "cpu -mcpu=znver4 -num-cores=1", "cpu/znver4")
        targets.learn_peaks(session, "cpu/znver3", {"1": 1e11})
        targets.learn_peaks(session, "cpu/znver3", {"1": 5e11, "2": 2e11})
    with database.read() as session:
        peaks = {row.name: row.peak_flops for row in session.query(TargetRow)}
    assert peaks == {ONE: 1e11, TWO: 2e11, "cpu -mcpu=znver4 -num-cores=1": None}


def test_the_peak_depends_on_the_type() -> None:
    with_dots = "cpu -mcpu=znver4 -num-cores=1"
    assert targets.peak_of(ONE, 1e11, "float32") == 1e11
    assert targets.peak_of(ONE, 1e11, "float64") == 5e10
    assert targets.peak_of(ONE, 1e11, "int8") is None
    assert targets.peak_of(with_dots, 1e11, "int8") == 4e11
    assert targets.peak_of(ONE, None, "float32") is None
    assert targets.peak_of(ONE, 1e11, None) is None
