"""`loopwright tune` in this process and on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import loopwright as lw
from compiler.runtime.measurement import Measurement
from examples.serving import Server
from loopwright.cli.main import app
from loopwright.local import tuning
from service.wire.models import JobState
from tests.public.cli.commands import SCRIPT, TARGET, loopwright
from tuner.loop.search_result import NothingMeasuredError


def test_a_workload_is_tuned_here_and_its_kernel_written(no_server: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    ran = CliRunner().invoke(
        app,
        [
            "tune",
            "matmul:16,16,16",
            "--target",
            TARGET,
            "--max-trials",
            "4",
            "--json",
            "-o",
            str(path),
        ],
    )
    assert ran.exit_code == 0, ran.stderr
    assert f"no server responds at {no_server}: tuning in this process" in ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["num_measured"] == 4
    assert outcome["best_secs"] <= outcome["default_secs"]
    a = np.ones((16, 16), "float32")
    c = np.empty_like(a)
    lw.Module.load(path)(a, a, c)
    np.testing.assert_array_equal(c, a @ a)


def test_a_schedule_may_call_a_library(no_server: str) -> None:
    tune = ["tune", "matmul:8,8,8", "--target", TARGET, "--max-trials", "2", "--library"]
    ran = CliRunner().invoke(app, [*tune, "blas", "--json"])
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["num_measured"] == 2
    wrong = CliRunner().invoke(app, [*tune, "blass"])
    assert (wrong.exit_code, "did you mean 'blas'?" in wrong.stderr) == (2, True), wrong.stderr


def test_a_library_is_refused_with_a_server(server: Server) -> None:
    ran = CliRunner().invoke(
        app, ["tune", "matmul:8,8,8", "--library", "blas", "--url", server.url]
    )
    assert (ran.exit_code, "--library runs without a server" in ran.stderr) == (2, True), ran.stderr


def test_a_script_file_is_tuned_on_a_server_and_found_there(server: Server) -> None:
    at = ("--url", server.url)
    ran = loopwright("tune", str(SCRIPT), "--target", TARGET, "--max-trials", "4", *at)
    assert ran.returncode == 0, ran.stderr
    assert "GFLOP/s" in ran.stdout
    job = ran.stderr.split()[1]

    best = loopwright("best", str(SCRIPT), "--target", TARGET, *at, "--json")
    assert json.loads(best.stdout)["job_id"] == job
    shown = loopwright("best", str(SCRIPT), "--target", TARGET, *at)
    assert "get_block" in shown.stdout or "default" in shown.stdout

    jobs = loopwright("jobs", *at, "--json", "--limit", "1000")
    assert job in [entry["id"] for entry in json.loads(jobs.stdout)]
    assert job in loopwright("jobs", *at, "--limit", "1000").stdout

    trials = loopwright("trials", job, *at, "--json")
    assert [trial["number"] for trial in json.loads(trials.stdout)] == [0, 1, 2, 3]
    assert "default" in loopwright("trials", job, *at).stdout


def test_a_kernel_that_could_not_be_written_is_told_before_tuning() -> None:
    ran = loopwright("tune", "matmul:8,8,8", "-o", "no/such/folder/kernel")
    assert ran.returncode == 2
    assert "the directory does not exist" in ran.stderr
    ran = loopwright("tune", "matmul:8,8,8", "-o", "kernel.c")
    assert ran.returncode == 2
    assert "a kernel can't be written as .c" in ran.stderr


@pytest.mark.usefixtures("no_server")
def test_tuning_that_is_interrupted_shows_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = lw.Schedule(lw.ops.from_spec("matmul:8,8,8")).trace

    def tune(*_: object, on_trial: Callable[[lw.Trial], None], **__: object) -> None:
        for number, secs in ((1, 1.0), (0, 2.0)):
            on_trial(lw.Trial(number, "sketch", trace, Measurement(run_secs=(secs,))))
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "--max-trials", "9", "--json"])
    assert ran.exit_code == 130
    assert "interrupted after 2 of 9 trials; the best so far:" in ran.stderr
    outcome = json.loads(ran.stdout)
    assert outcome["was_interrupted"]
    assert (outcome["default_secs"], outcome["best_secs"]) == (2.0, 1.0)


@pytest.mark.usefixtures("no_server")
def test_tuning_that_is_interrupted_at_once_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def tune(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "--max-trials", "9"])
    assert ran.exit_code == 130
    assert "interrupted after 0 of 9 trials: no correct candidate yet" in ran.stderr


@pytest.mark.usefixtures("no_server")
def test_tuning_several_that_is_interrupted_at_once_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tune(*_: object, **__: object) -> None:
        raise NothingMeasuredError("tuning matmul was stopped before the first measurement")

    monkeypatch.setattr(tuning, "tune", tune)
    ran = CliRunner().invoke(app, ["tune", "matmul:8,8,8", "relu:8"])
    assert ran.exit_code == 130
    assert "interrupted: tuning matmul was stopped before the first measurement" in ran.stderr


def test_a_job_that_others_cancelled_before_anything_ran_says_so(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lw.Client(server.url) as client:
        job = client.tune("relu:23", target=TARGET, max_trials=1).wait()
    gone = job.model_copy(update={"state": JobState.CANCELLED, "best_secs": None})
    monkeypatch.setattr(lw.JobHandle, "wait", lambda _: gone)
    ran = CliRunner().invoke(app, ["tune", "relu:29", "--max-trials", "1", "--url", server.url])
    assert ran.exit_code == 1
    assert ran.stderr.endswith(f"error: job {job.id} is cancelled: no candidate ran\n")


def test_what_is_piped_has_a_line_for_each_job(server: Server) -> None:
    with lw.Client(server.url) as client:
        job = client.tune("matmul:8,8,8", target=TARGET, max_trials=1)
        job.wait()
    ran = CliRunner(env={"COLUMNS": "40"}).invoke(app, ["jobs", "--url", server.url])
    [line] = [line for line in ran.stdout.splitlines() if str(job.id) in line]
    assert "matmul 8 x 8 x 8" in line
