"""The accounts of the simulated fleet, and the answers of its workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from benchmarks.fleet import accounts, table
from benchmarks.fleet.accounts import JobAccount
from benchmarks.fleet.fleet import Size
from benchmarks.fleet.measure import Measured
from benchmarks.fleet.processes import Usage
from benchmarks.fleet.recorded import RecordedAnswers
from benchmarks.fleet.simulated_workers import WorkClock
from benchmarks.service.http_load import Load
from service.store.database.base import utc_now
from service.store.database.database import Database, open_database
from service.wire.requests import Strategy
from tests.integration.service.driving import TRIALS, drive, submit
from workers.measure.compare import CompareRequest
from workers.wire.answers import read_batch, read_rounds
from workers.wire.request import MeasureRequest

PROGRAM = "def f(): ..."
SIZE = Size(10, 2, 10.0, 1, 2, 1.0, 60.0, Strategy.RANDOM)


def test_nothing_is_lost_if_only_the_last_round_has_gaps() -> None:
    numbers = (*range(16), 18, 17, 31)
    assert JobAccount(numbers, tuple(map(str, numbers)), 19, num_seen=19).num_lost == 0


@pytest.mark.parametrize(
    "account",
    [
        JobAccount((0, 2, *range(3, 18)), tuple("abcdefghijklmnopq"), 17),  # number 1
        JobAccount((0, 1), ("a", "b"), 3),  # counted by the job
        JobAccount((0, 1), ("a", "b"), 2, num_seen=3),  # shown to a client
    ],
)
def test_a_missing_trial_is_lost(account: JobAccount) -> None:
    assert (account.num_lost, account.num_repeated) == (1, 0)


def test_a_second_trial_of_a_number_or_of_a_candidate_is_repeated() -> None:
    assert JobAccount((0, 1, 1), ("a", "b", "c"), 3).num_repeated == 1
    assert JobAccount((0, 1, 2), ("a", "b", "b"), 3).num_repeated == 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{tmp_path}/fleet.db")) as opened:
        yield opened


def test_the_accounts_of_a_database_are_those_of_its_jobs(database: Database) -> None:
    begin = utc_now()
    job_ids = [submit(database, seed=seed) for seed in range(2)]
    for _ in job_ids:
        drive(database)
    seen = {job_ids[0]: TRIALS + 1}
    read = accounts.read_accounts(database, seen)
    assert [read[job_id].num_lost for job_id in job_ids] == [1, 0]
    end = utc_now() + timedelta(seconds=1)
    assert accounts.num_stored(database, begin, end) == 2 * TRIALS
    assert accounts.num_stored(database, end, end) == 0
    assert accounts.shares(database, begin, end) == {"None": 1.0}
    first = accounts.first_trial_at(database, job_ids[1])
    assert first is not None
    assert begin < first < end


def test_workers_answer_in_the_protocol_and_always_alike() -> None:
    answers = RecordedAnswers({PROGRAM: [0.5, 0.25, "timeout"]}, trial_secs=2.0)
    request = MeasureRequest(PROGRAM, "cpu", tuple(f"trace {n}" for n in range(40)))
    measured = read_batch(answers.answer(request.to_json(), "w1"), 40)
    assert measured == read_batch(answers.answer(request.to_json(), "w1"), 40)
    assert {m.best_secs for m in measured} == {0.5, 0.25, float("inf")}
    assert {m.worker for m in measured} == {"w1"}
    spent = sum(m.build_secs + m.check_secs + m.time_secs for m in measured)
    assert spent == pytest.approx(answers.secs(request.to_json()))
    assert spent / 40 == pytest.approx(2.0, rel=0.2)
    race = CompareRequest(PROGRAM, "cpu", request.traces[:3], num_rounds=12, seed=0, first_round=9)
    rounds = read_rounds(answers.answer(race.to_json(), "w1"), 3, 3)
    assert rounds == [measured[:3]] * 3


def test_a_clock_counts_work_and_gaps_also_across_reports() -> None:
    clock = WorkClock(started_at=0.0)
    clock.begin(2.0)
    assert clock.take(5.0) == (3.0, [])
    clock.end(6.0)
    clock.begin(6.5)
    assert clock.take(7.5) == (2.0, [0.5])
    assert clock.first_secs == 2.0


def test_the_processor_time_of_a_window_and_the_growth_of_memory() -> None:
    usage = Usage(samples=[(float(at), 2.0 * at, 100 + at) for at in range(41)])
    assert usage.cpu_between(10.0, 20.0) == 20.0
    assert usage.growth(0.0, 40.0) == pytest.approx(138 / 112, abs=0.02)


def test_a_row_says_whether_its_bar_is_met() -> None:
    reports = [
        {"at": at, "busy_secs": 9.8, "gaps": [0.01, 0.02], "host": "report-0"}
        for at in range(1, 11)
    ]
    measured = Measured(
        begin=0.0,
        end=10.0,
        num_stored=100,
        reports=reports,
        lookups=Load(500.0, (0.001, 0.03), (0.0, 0.002), 0),
        shares={"many": 0.52, "few": 0.48},
        usage={
            role: Usage(samples=[(0.0, 0.0, 10), (10.0, 5.0, 10)])
            for role in ("scheduler", "coordinator", "database", "api")
        },
        accounts={UUID(int=1): JobAccount((0,), ("a",), 1)},
    )
    found = {row.item: (row.value, row.is_met) for row in table.rows(SIZE, measured)}
    assert found["trials stored a second"] == ("10.0", True)
    assert found["workers busy"] == ("98.0%", True)
    assert found["look-up, p99"] == ("30 ms", False)
    assert found["cores of coordinators and database"] == ("1.00", True)
    assert found["CPU a trial, scheduler"] == ("50.00 ms", None)
    assert found["share of the owner of a quarter of the jobs"] == ("48%", True)
    assert json.dumps(found)
