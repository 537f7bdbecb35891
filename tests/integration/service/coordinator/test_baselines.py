"""What was timed beside the best kernels: kept, replaced, shown, and part of an answer's tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from compiler.runtime.measurement import ErrorKind, Measurement, Setting
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.store.jobs import baselines, jobs
from tests.integration.service.driving import act, cost, read, submit
from tuner.finish.baseline import Baseline
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial

CRASH = Measurement(error=ErrorKind.CRASH, message="the first run died of SIGSEGV")


class TimedLibraries:
    """Libraries that take a given multiple of the kernel's time, or do not run."""

    def __init__(self, **ratios: float | Measurement) -> None:
        self.ratios = ratios
        self.asked: list[int] = []

    def measure_baselines(
        self, task: Task, trial: MeasuredTrial, num_rounds: int, seed: int
    ) -> Iterator[tuple[Measurement, Mapping[str, Measurement]]]:
        self.asked.append(trial.number)
        own = Measurement((trial.best_secs,), worker="w", toolchain="ours")
        others = {
            name: ratio
            if isinstance(ratio, Measurement)
            else Measurement((ratio * trial.best_secs,), toolchain=f"{name.title()} 1.2")
            for name, ratio in self.ratios.items()
        }
        yield from [(own, others)] * num_rounds


class Broken(TimedLibraries):
    def measure_baselines(self, *_: Any) -> Iterator[Any]:
        raise OSError("there is no such library")
        yield


def opened(database: Database) -> TestClient:
    return TestClient(create_app(Dependencies(database)), base_url="http://testserver/api/v1")


def driven(
    database: Database, libraries: TimedLibraries | None, job_id: UUID | None = None
) -> UUID:
    job_id = job_id or submit(database, max_trials=16)
    assert Coordinator(database, MemoryMeasurer(cost), baselines=libraries).run_one()
    return job_id


@pytest.mark.on_both_databases
def test_the_fastest_library_is_shown_with_the_job_and_its_best(database: Database) -> None:
    job_id = driven(database, TimedLibraries(numpy=1.5, torch=1.25, none=CRASH))
    with opened(database) as client:
        job = client.get(f"/jobs/{job_id}").json()
        listed = client.get("/jobs").json()["items"][0]
        (best,) = client.get("/schedules?sort=-baseline").json()["items"]
        query = {"workload_key": job["workload_key"], "target": job["target"]}
        answer = client.get("/schedules/best", params=query).json()
    baseline = job["baseline"]
    assert (baseline["library"], baseline["version"]) == ("torch", "Torch 1.2")
    assert baseline["speedup"] == pytest.approx(1.25)
    assert baseline["interval"] == pytest.approx([1.25, 1.25])
    assert baseline["run_secs"] == pytest.approx(1.25 * baseline["kernel_secs"])
    assert listed["baseline"] == best["baseline"] == answer["baseline"] == baseline


@pytest.mark.parametrize(
    "libraries", [None, TimedLibraries(), TimedLibraries(numpy=CRASH), Broken(numpy=1.0)]
)
def test_without_a_library_the_job_ends_as_it_would(
    database: Database, libraries: TimedLibraries | None
) -> None:
    job = read(database, driven(database, libraries))
    assert (job.state, job.baseline) == ("succeeded", None)
    assert job.best_interval is not None


def test_libraries_change_neither_trials_nor_the_winner(database: Database) -> None:
    with_them, without = (
        driven(database, libraries) for libraries in (TimedLibraries(numpy=0.1), None)
    )
    one, other = (read(database, job_id) for job_id in (with_them, without))
    assert one.baseline is not None
    kept = {"best_secs", "best_interval", "default_secs", "num_measured", "sparkline"}
    assert one.model_dump(include=kept) == other.model_dump(include=kept)


@pytest.mark.on_both_databases
def test_how_a_library_ran_is_kept_and_shown(database: Database) -> None:
    job_id = driven(database, TimedLibraries(numpy=2.0))
    with database.read() as session:
        (row,) = jobs.get(session, job_id).baselines
    assert (row.kernel_set, row.tried) == (None, None)
    tried = (
        Setting("1 thread", "Haswell", 2.0),
        Setting("OPENBLAS_CORETYPE=SkylakeX", "", None),
    )
    found = Baseline(
        "numpy", "NumPy 3", 2.0, 1.0, 2.0, (1.9, 2.1), "w", "ours",
        kernel_set="Haswell", setting="1 thread", tried=tried, is_below_cpu=True,
        share_of_peak=0.45,
    )  # fmt: skip
    with database.write() as session:
        baselines.keep(session, job_id, row.trial_number, [found])
    shown = read(database, job_id).baseline
    assert shown is not None
    assert (shown.kernel_set, shown.setting, shown.share_of_peak) == ("Haswell", "1 thread", 0.45)
    assert [(one.name, one.secs) for one in shown.tried] == [(s.name, s.secs) for s in tried]
    assert shown.verdict == "no_claim"


def test_a_new_baseline_is_another_answer(database: Database) -> None:
    job_id = driven(database, TimedLibraries(numpy=2.0))
    job = read(database, job_id)
    assert job.baseline is not None
    query = {"workload_key": job.workload_key, "target": job.target}
    with opened(database) as client:
        first = client.get("/schedules/best", params=query)
        number = first.json()["trial_number"]
        found = Baseline("numpy", "NumPy 3", 1.0, 0.5, 3.0, (2.9, 3.1), "w", "ours")
        with database.write() as session:
            baselines.keep(session, job_id, number, [found])
        second = client.get("/schedules/best", params=query)
        tags = {"If-None-Match": first.headers["ETag"]}
        asked = client.get("/schedules/best", params=query, headers=tags)
    assert first.headers["ETag"] != second.headers["ETag"]
    assert asked.status_code == 200
    assert second.json()["baseline"]["speedup"] == 3.0


def test_a_baseline_is_of_the_kernel_that_it_was_timed_beside(database: Database) -> None:
    job_id = driven(database, TimedLibraries(numpy=2.0))
    with database.read() as session:
        (row,) = jobs.get(session, job_id).baselines
    found = Baseline("numpy", "NumPy 3", 1.0, 0.5, 3.0, None, "w", "ours")
    with database.write() as session:
        baselines.keep(session, job_id, row.trial_number, [])
    assert read(database, job_id).baseline is not None, "the same kernel, not timed again"
    with database.write() as session:
        baselines.keep(session, job_id, row.trial_number + 1, [found])
    with opened(database) as client:
        (best,) = client.get("/schedules").json()["items"]
    assert best["baseline"] is None, "another kernel is the best of the task"
    with database.write() as session:
        baselines.keep(session, job_id, row.trial_number, [])
    assert read(database, job_id).baseline is None


def test_more_trials_are_compared_anew(database: Database) -> None:
    libraries = TimedLibraries(numpy=2.0)
    job_id = driven(database, libraries)
    act(database, "change", job_id, max_trials=32)
    libraries.ratios["numpy"] = 4.0
    driven(database, libraries, job_id)
    baseline = read(database, job_id).baseline
    assert baseline is not None
    assert baseline.speedup == pytest.approx(4.0)
    assert len(libraries.asked) == 2
