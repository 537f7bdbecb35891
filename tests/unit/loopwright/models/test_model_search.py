from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import text

import loopwright as lw
from compiler import ops
from loopwright.models.model_search import (
    PLATEAU,
    TimedProgram,
    alternatives,
    search_model,
    worth_tuning,
)
from loopwright.models.records import TuningRecords, open_records
from service.wire.requests import MAX_SCRIPT_CHARS
from tests.unit.loopwright.models.killed_searches import IDENTITY, MAX_TRIALS, TARGET, cost
from tuner.candidate import default_candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task


@pytest.mark.slow
def test_a_search_that_is_killed_ends_like_one_that_is_not(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.loopwright.models.killed_searches", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert 0 < result["found"][0] < result["found"][-1] < MAX_TRIALS
    assert result["killed"] == result["whole"]
    assert sum(map(len, result["whole"].values())) == MAX_TRIALS


def _program(rows: int, secs: float) -> TimedProgram:
    return TimedProgram(Task(ops.softmax(rows, 16), TARGET), default_candidate(), secs)


def _search(
    programs: list[TimedProgram], records: TuningRecords, max_trials: int | None
) -> list[tuple[int, float]]:
    """Search, and return the reports of progress."""
    reports: list[tuple[int, float]] = []
    search_model(
        programs,
        MemoryMeasurer(cost),
        records,
        max_trials=max_trials,
        seed=0,
        cost_model=None,
        on_progress=lambda num_measured, secs: reports.append((num_measured, secs)),
    )
    return reports


def test_programs_that_matter_are_tuned() -> None:
    programs = [_program(8, 1e-3), _program(16, 1e-6), _program(24, 2e-3), _program(32, 5e-4)]
    first, tiny, largest, small = programs

    def chosen(max_trials: int | None, *begun: TimedProgram) -> list[TimedProgram]:
        keys = {program.task.key for program in begun}
        return worth_tuning(programs, max_trials, lambda task: task.key in keys)

    assert chosen(None) == [first, largest, small]
    assert chosen(32) == [first, largest]
    assert chosen(1) == [largest]
    assert chosen(32, tiny) == [tiny, largest]


def test_a_program_that_is_too_large_to_be_stored_is_not_tuned() -> None:
    large = replace(ops.softmax(8, 16), name="f" * MAX_SCRIPT_CHARS)
    program = TimedProgram(Task(large, TARGET), default_candidate(), 1e-3)
    assert worth_tuning([program], None, lambda _: 0) == []


def test_trials_are_shared_and_counted_with_earlier_ones(tmp_path: Path) -> None:
    programs = [_program(8, 1e-3), _program(16, 2e-3)]
    with open_records(tmp_path, IDENTITY) as records:
        reports = _search(programs, records, 40)
        assert reports[-1][0] == sum(len(records.trials(p.task)) for p in programs) == 40
        assert all(later <= earlier for (_, earlier), (_, later) in pairwise(reports))
        assert 1e-4 < reports[-1][1] < 3e-3
    with open_records(tmp_path, IDENTITY) as records:
        assert len(_search(programs, records, 40)) == len(programs)  # nothing is measured
        assert _search(programs[:1], records, 40)[-1][0] == 40
        best = min(records.trials(programs[0].task), key=lambda trial: trial.best_secs)
        assert alternatives(programs[0], records)[0] == best.candidate


def test_a_search_without_a_limit_ends_on_plateaus(tmp_path: Path) -> None:
    matmul = TimedProgram(Task(ops.matmul(32, 32, 32), TARGET), default_candidate(), 1e-3)
    small = _program(8, 1e-3)
    with open_records(tmp_path, IDENTITY) as records:
        _search([matmul, small], records, None)
        secs = [trial.best_secs for trial in records.trials(matmul.task)]
        assert len(secs) > PLATEAU
        assert min(secs) > 0.99 * min(secs[:-PLATEAU])
        assert 16 < len(records.trials(small.task)) < PLATEAU  # its space has no more schedules
        _search([], records, None)


def test_two_processes_do_not_tune_one_program_at_a_time(tmp_path: Path) -> None:
    task = _program(8, 1e-3).task
    with (
        open_records(tmp_path, IDENTITY) as records,
        open_records(tmp_path, IDENTITY) as others,
        records.searching([task], 16, 0),
    ):
        refused = pytest.raises(lw.LoopwrightError, match=f"process {os.getpid()} tunes softmax")
        with refused, others.searching([task], 16, 0):
            pass
        with open_records(tmp_path, "another seed") as apart, apart.searching([task], 16, 0):
            pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(lw.LoopwrightError, match=r"stored in .*file/tuning.db: .*LOOPWRIGHT_CACHE"),
        open_records(tmp_path / "file", IDENTITY),
    ):
        pass


def _fill(directory: Path) -> None:
    with open_records(directory, IDENTITY) as records, records._database.write() as session:
        session.execute(text("PRAGMA max_page_count = 1"))
        session.execute(text("CREATE TABLE large AS SELECT zeroblob(1000000)"))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(lw.LoopwrightError, match=r"tuning.db: database or disk is full; set"):
        _fill(tmp_path)
