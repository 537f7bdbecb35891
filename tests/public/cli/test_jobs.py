"""`loopwright jobs`: jobs that are stopped and extended."""

from __future__ import annotations

import json

from typer.testing import CliRunner, Result

import loopwright as lw
from examples.serving import Server
from loopwright.cli.main import app
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
