"""`loopwright tune` of several workloads."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from examples.serving import Server
from loopwright.cli.main import app

TARGET = "cpu -num-cores=1"


SPECS = ("matmul:48,40,64:float32", "matmul:56,40,64:float32")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.usefixtures("no_server")
def test_several_workloads_are_tuned(server: Server, is_there: bool) -> None:
    at = ("--url", server.url) if is_there else ()
    weights = ("--weight", "1", "--weight", "3")
    ran = run("tune", *SPECS, *weights, "--target", TARGET, "--max-trials", "32", "--json", *at)
    assert ran.exit_code == 0, ran.stderr
    tasks = json.loads(ran.stdout)["tasks"]
    assert [task["num_measured"] for task in tasks] == [16, 16]
    assert [task["shape"] for task in tasks] == ["48 x 40 x 64", "56 x 40 x 64"]
    assert all(task["best_secs"] <= task["default_secs"] for task in tasks)


def test_several_workloads_that_cannot_share_are_refused() -> None:
    for more, words in (
        (("--weight", "1"), "1 weights for 2 workloads"),
        (("--max-trials", "31"), "too few for 2 tasks"),
        (("--output", "kernel"), "tune them one at a time"),
    ):
        ran = run("tune", *SPECS, "--target", TARGET, *more)
        assert (ran.exit_code, words in ran.stderr) == (2, True), ran.stderr
