"""Packed trials say what the trials say, whatever came when, on both databases."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from compiler.runtime.measurement import ErrorKind
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.trials import trial_chunks, trial_index
from service.store.trials.trial_chunks import PackedTrialsRow
from service.store.trials.trial_columns import TrialColumns, joined, of_rows
from service.store.trials.trials import TrialRow
from tests.service_fixtures import add_job

pytestmark = pytest.mark.on_both_databases

SIZE, LATE = 8, 3


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_chunks, "SIZE", SIZE)
    monkeypatch.setattr(trial_chunks, "LATE", LATE)


def trial(job_id: UUID, number: int, rng: np.random.Generator) -> dict[str, Any]:
    secs = float(rng.lognormal())
    is_right = rng.random() < 0.7
    return {
        "job_id": job_id,
        "number": number,
        "candidate_key": str(number),
        "round": number // 4,
        "sketch": f"sketch {rng.integers(4)}",
        "trace": {},
        "predicted": float(rng.normal()) if rng.random() < 0.8 else None,
        "error": None if is_right else list(ErrorKind)[rng.integers(len(ErrorKind))],
        "message": "",
        "run_secs": [secs] if is_right else [],
        "best_secs": secs if is_right else None,
        "max_error": None,
        "build_secs": float(rng.random()),
        "check_secs": float(rng.random()),
        "time_secs": float(rng.random()),
        "worker": "w",
        "toolchain": "t",
        "created_at": utc_now(),
    }


def from_trials(session: Session, job_id: UUID, after: int) -> TrialColumns:
    return joined(map(of_rows, trial_index.between(session, job_id, after)))


def assert_same(found: TrialColumns, expected: TrialColumns) -> None:
    assert (found.sketches, found.outcomes) == (expected.sketches, expected.outcomes)
    for (name, left), (_, right) in zip(found.arrays(), expected.arrays(), strict=True):
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left, right, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_packed_trials_are_the_trials(database: Database, seed: int) -> None:
    rng = np.random.default_rng(seed)
    job_id = add_job(database)
    other = add_job(database)
    # Within a few numbers of their turn, and some never.
    order = np.argsort(np.arange(70) + rng.uniform(0, 6, 70))
    lost = set(rng.choice(70, size=int(rng.integers(3)), replace=False).tolist())
    numbers = [number for number in order.tolist() if number not in lost]
    there = 0
    for begin in range(0, len(numbers), 5):
        with database.write() as session:
            rows = [trial(job_id, number, rng) for number in numbers[begin : begin + 5]]
            session.execute(insert(TrialRow), [*rows, trial(other, begin, rng)])
            if trial_chunks.is_due(there, there + len(rows)):
                trial_chunks.pack(session, job_id, there + len(rows))
            there += len(rows)
        with database.read() as session:
            for after in (-1, 0, 7, 8, 30, 69):
                found = joined(trial_chunks.after(session, job_id, after))
                assert_same(found, from_trials(session, job_id, after))
    with database.read() as session:
        firsts = set(session.scalars(select(PackedTrialsRow.first)))
    whole = {f for f in range(0, 57, SIZE) if not lost & set(range(f, f + SIZE))}
    # The last one may have become whole after it was looked at.
    assert whole - {56} <= firsts <= whole


def test_a_range_is_packed_once_what_may_come_late_is_there() -> None:
    due = [number for number in range(1, 40) if trial_chunks.is_due(number - 1, number)]
    assert due == [SIZE + LATE, 2 * SIZE + LATE, 3 * SIZE + LATE, 4 * SIZE + LATE]
    assert trial_chunks.is_due(0, 100)
