"""`llvm`, as TVM and the notes spell it, is the CPU wherever a target is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from typer.testing import CliRunner

import loopwright as lw
from examples.serving import Server
from loopwright.cli.main import app
from tests.patience import PATIENCE_SECS

# No other test tunes it: the best schedule of the label is then that of the test's own job.
OPERATOR = "relu:38"
LLVM, CPU = "llvm -num-cores=1", "cpu -num-cores=1"


@pytest.mark.parametrize("text", ["llvm", " llvm ", "llvm -mcpu=x86-64-v3", "llvm --num-cores=3"])
def test_a_target_is_the_same_in_both_spellings(text: str) -> None:
    assert lw.Target(text) == lw.Target(text.replace("llvm", "cpu"))
    assert lw.Target(text).name.startswith("cpu ")


def test_a_kind_that_only_begins_so_is_none() -> None:
    with pytest.raises(lw.TargetError, match="unknown target kind 'llvmlite'"):
        lw.Target("llvmlite")


def test_a_program_is_built_and_tuned_here_for_it() -> None:
    func = lw.ops.from_spec("relu:8")
    a, b = np.linspace(-1, 1, 8, dtype="float32"), np.empty(8, "float32")
    lw.build(func, target="llvm")(a, b)
    np.testing.assert_array_equal(b, np.maximum(a, 0))
    assert lw.design_space(func, "llvm").target == lw.Target("cpu")
    assert lw.tune(func, target=LLVM, max_trials=1).target == lw.Target(CPU)


def test_a_server_takes_it_from_every_side(server: Server, client: lw.Client) -> None:
    job = client.tune(OPERATOR, target=LLVM, max_trials=1).wait()
    assert job.target == lw.Target(CPU).name
    assert client.best(OPERATOR, target=LLVM).record.job_id == job.id
    assert client.kernel(OPERATOR, target=LLVM, fallback=False).artifact.target == job.target
    assert job.id in [found.id for found in client.jobs(target="llvm", limit=1000)]

    def get(path: str, **params: str) -> Any:
        return httpx2.get(f"{server.url}/api/v1{path}", params=params, timeout=PATIENCE_SECS).json()

    assert str(job.id) in [found["id"] for found in get("/jobs", target="llvm")["items"]]
    one = get("/schedules/best", workload_key=job.workload_key, target=LLVM)
    assert one["job_id"] == str(job.id)
    keys = [found["workload_key"] for found in get("/schedules", target="llvm")["items"]]
    assert job.workload_key in keys
    assert job.target in [found["name"] for found in get("/targets")["items"]]


@pytest.mark.parametrize("target", [LLVM, CPU])
def test_records_of_it_are_exported(client: lw.Client, tmp_path: Path, target: str) -> None:
    job = client.tune(OPERATOR, target=target, max_trials=1).wait()
    client.export_records(tmp_path / "a.jsonl", workload_key=job.workload_key, target=target)
    assert str(job.id) in (tmp_path / "a.jsonl").read_text()


def test_the_command_line_takes_it(server: Server) -> None:
    def run(*args: str) -> Any:
        ran = CliRunner().invoke(app, [*args, "--url", server.url, "--json"])
        assert ran.exit_code == 0, ran.stderr
        return json.loads(ran.stdout)

    job = run("tune", OPERATOR, "--target", LLVM, "--max-trials", "1")
    assert job["target"] == lw.Target(CPU).name
    assert run("best", OPERATOR, "--target", LLVM)["target"] == job["target"]
    assert job["job_id"] in [found["id"] for found in run("jobs", "--target", "llvm")]
