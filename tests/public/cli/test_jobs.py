"""`loopwright jobs`: jobs that are stopped and extended."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner, Result

import loopwright as lw
from examples.serving import Server
from loopwright.cli.main import app
from service.wire.models import JobState
from tests.patience import PATIENCE_SECS

TARGET = "cpu -num-cores=1"


SPECS = ("matmul:48,40,64:float32", "matmul:56,40,64:float32")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def test_a_job_is_stopped_and_extended(server: Server, client: lw.Client) -> None:
    handle = client.tune(SPECS[0], target=TARGET, max_trials=5000)
    next(e for e in handle.events() if e.kind == "trials")
    at = (str(handle.id), "--url", server.url)
    asked = run("jobs", "stop", *at)
    assert (asked.exit_code, "is stopping" in asked.stderr) == (0, True)
    job = handle.wait(timeout_secs=PATIENCE_SECS)
    assert job.stop_reason == "stopped"
    refused = run("jobs", "extend", *at, "--max-trials", "1")
    assert refused.exit_code == 1
    assert "raise its limit" in refused.stderr
    assert run("jobs", "extend", *at).exit_code == 2
    extended = run("jobs", "extend", *at, "--max-trials", "4000", "--priority", "-3", "--json")
    assert json.loads(extended.stdout)["priority"] == -3
    asked = run("jobs", "cancel", *at, "--json")
    is_final = json.loads(asked.stdout)["state"] == "cancelled"
    assert (asked.exit_code, "is being cancelled" in asked.stderr) == (0, not is_final)
    assert handle.wait(timeout_secs=PATIENCE_SECS).state == "cancelled"
    assert json.loads(run("jobs", "resume", *at, "--json").stdout)["state"] == "queued"
    assert "cancelled" in run("jobs", "cancel", *at).stdout + str(
        handle.wait(timeout_secs=PATIENCE_SECS)
    )


def test_a_job_is_found_by_the_texts_that_it_was_given(server: Server, client: lw.Client) -> None:
    at = ("--url", server.url)
    tuned = run("tune", SPECS[1], "--target", TARGET, "--max-trials", "2", *at, "--json", "--name",
                "first layer", "--tag", "nightly", "--tag", "model:bert")  # fmt: skip
    assert tuned.exit_code == 0, tuned.stderr
    job_id = json.loads(tuned.stdout)["job_id"]
    (listed,) = json.loads(run("jobs", "--tag", "model:bert", *at, "--json").stdout)
    assert (listed["id"], listed["name"]) == (job_id, "first layer")
    shown = run("jobs", "describe", job_id, "--note", "to be repeated", "--tag", "done", *at)
    assert "first layer #done" in shown.stdout
    (job,) = client.jobs(text="to be rep", tag="done")
    assert (str(job.id), job.note) == (job_id, "to be repeated")
    removed = client.job(job_id).describe(name="", tags=[])
    assert (removed.name, removed.note, removed.tags) == (None, "to be repeated", ())
    assert run("jobs", "describe", job_id, "--tag", "Done", *at).exit_code == 2


def test_a_job_that_has_ended_is_not_cancelled(server: Server, client: lw.Client) -> None:
    job = client.tune(SPECS[1], target=TARGET, max_trials=2, window="00:00-00:01")
    at = (str(job.id), "--url", server.url)
    assert "had ended already" not in run("jobs", "cancel", *at).stderr
    assert job.wait(timeout_secs=PATIENCE_SECS).state == "cancelled"
    again = run("jobs", "cancel", *at)
    assert again.exit_code == 0
    assert f"job {job.id} had ended already: cancelled" in again.stderr


def test_a_failed_job_says_why_in_short(client: lw.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = client.tune(SPECS[1], target=TARGET, max_trials=2, window="00:00-00:01")
    reason = f"internal error: IndexError: {'x' * 100}[0]"
    failed = job.cancel().model_copy(update={"state": JobState.FAILED, "error": f"{reason}\nmore"})
    monkeypatch.setattr(lw.Client, "jobs", lambda *_, **__: iter([failed]))
    shown = run("jobs", "--url", client.url).stdout
    assert f"{reason[:79]}…" in shown
    assert "more" not in shown


def test_a_missing_schedule_is_named_as_it_was_typed(server: Server) -> None:
    ran = run("best", "matmul:13,11,7", "--target", TARGET, "--url", server.url)
    assert ran.exit_code == 1
    assert "no schedule of matmul:13,11,7 on target" in ran.stderr
    assert "`--nearest`" in ran.stderr


def test_texts_without_a_server_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.cli.tune.find_server", lambda url, token: None)
    ran = run("tune", SPECS[1], "--name", "first layer")
    assert ran.exit_code == 2
    assert "require a server" in ran.stderr


def test_a_job_outside_of_its_window_says_why_it_waits(server: Server, client: lw.Client) -> None:
    now = datetime.now(UTC)
    opens, closes = (now + timedelta(hours=hours) for hours in (2, 3))
    window = f"{opens:%H:%M}-{closes:%H:%M}"
    job = client.tune(SPECS[1], target=TARGET, max_trials=2, window=window)
    shown = run("jobs", "--state", "queued", "--url", server.url)
    assert f"queued, window {window} UTC" in shown.stdout
    assert job.cancel().state == "cancelled"


def test_a_webhook_requires_a_strong_secret_which_no_error_shows(client: lw.Client) -> None:
    ran = run("tune", SPECS[1], "--webhook", "https://ci.example/")
    assert ran.exit_code == 2
    assert "openssl rand -base64 32" in ran.stderr
    with pytest.raises(lw.InvalidRequestError, match=r"^webhook\.secret: ") as refused:
        client.tune(SPECS[1], webhook={"url": "https://ci.example/", "secret": "whsec_word"})
    assert "whsec_word" not in str(refused.value)
    secret = "whsec_" + "QUJD" * 8
    with pytest.raises(lw.InvalidRequestError, match="not public"):
        client.tune(SPECS[1], webhook={"url": "https://127.0.0.1/", "secret": secret})
