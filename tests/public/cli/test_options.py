"""Options of the commands that read: JSON, old spellings, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import loopwright as lw
from examples.serving import Server
from loopwright.cli.main import COMMANDS
from tests.public.cli.commands import OPERATOR, TARGET, UNREACHABLE, run


def complete(line: str, env: dict[str, str] | None = None) -> list[str]:
    """Return what a shell would offer at the end of a line."""
    words = line.split(" ")
    ran = subprocess.run(
        [sys.executable, "-m", "loopwright"],
        env={
            **os.environ,
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_LOOPWRIGHT_COMPLETE": "complete_bash",
            **(env or {}),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


def test_every_read_prints_json(server: Server, job: str) -> None:
    def read(*args: str) -> Any:
        ran = run(*args, "--json", server=server)
        assert ran.exit_code == 0, ran.stderr
        return json.loads(ran.stdout)

    listed = read("jobs", "--state", "succeeded", "--operator", "matmul", "--sort", "-created_at")
    assert job in [entry["id"] for entry in listed]
    assert read("jobs", "--search", "no such thing") == []
    assert [t["number"] for t in read("trials", job, "--sort", "-number", "--limit", "2")] == [3, 2]
    assert {t["error"] for t in read("trials", job, "--outcome", "ok")} <= {None}
    assert read("best", OPERATOR, "--target", TARGET)["job_id"] == job
    assert {"name", "label", "state"} <= set(read("workers")[0])
    shown = run("workers", server=server)
    assert "measures for" in shown.stdout


def test_the_spellings_of_options_before_0_2_are_still_read(server: Server) -> None:
    limits = ("--trials", "2", "--seconds", "900", "--plateau=77")
    options = ("--target", TARGET, *limits, "--cold", "--json")
    tuned = run("tune", "matmul:16,16,40", *options, server=server)
    assert tuned.exit_code == 0, tuned.stderr
    with lw.Client(server.url) as client:
        job = client.job(json.loads(tuned.stdout)["job_id"]).read()
        assert (job.max_trials, job.max_secs, job.plateau) == (2, 900, 77)
    listed = run("jobs", "--text", "no such thing", "--json", server=server)
    assert (listed.exit_code, listed.stdout.strip()) == (0, "[]")
    for command in (("tune",), ("jobs",), ("jobs", "extend")):
        shown = run(*command, "--help").stdout
        assert not {"--cold", "--plateau", "--text", "--trials", "--seconds"} & set(shown.split())


def test_a_shell_completes_commands_options_and_jobs(server: Server, job: str) -> None:
    assert set(complete("loopwright ")) == set(COMMANDS)
    assert complete("loopwright tri") == ["trials"]
    assert "--sketch" in complete("loopwright trials --")
    assert "succeeded" in complete("loopwright jobs --state succ")
    offered = complete(f"loopwright trials {job[:6]}", {"LOOPWRIGHT_URL": server.url})
    assert job in offered
    assert complete("loopwright trials ab", {"LOOPWRIGHT_URL": UNREACHABLE}) == []
