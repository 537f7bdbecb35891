"""What other programs and shells read of the command line: JSON, exit codes, files, completion."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

import loopwright as lw
from examples.serving import Server, free_port
from loopwright.cli.main import COMMANDS, app
from tests.patience import PATIENCE_SECS

OPERATOR = "matmul:16,16,24"
TARGET = "cpu -num-cores=1"


@pytest.fixture(scope="module")
def job(server: Server) -> str:
    """Return a job that has ended."""
    with lw.Client(server.url) as client:
        handle = client.tune(OPERATOR, target=TARGET, trials=4)
        handle.wait(timeout_secs=PATIENCE_SECS)
    return str(handle.id)


def run(*args: str, server: Server | None = None, stdin: bytes | None = None) -> Any:
    env = {"COLUMNS": "140"} | ({} if server is None else {"LOOPWRIGHT_URL": server.url})
    return CliRunner(env=env).invoke(app, args, input=stdin)


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
    options = ("--target", TARGET, "--trials", "2", "--cold", "--plateau=77", "--json")
    tuned = run("tune", "matmul:16,16,40", *options, server=server)
    assert tuned.exit_code == 0, tuned.stderr
    with lw.Client(server.url) as client:
        assert client.job(json.loads(tuned.stdout)["job_id"]).read().plateau == 77
    listed = run("jobs", "--text", "no such thing", "--json", server=server)
    assert (listed.exit_code, listed.stdout.strip()) == (0, "[]")
    for command in (("tune",), ("jobs",), ("jobs", "extend")):
        shown = run(*command, "--help").stdout
        assert not {"--cold", "--plateau", "--text"} & set(shown.split())


def test_records_go_from_a_server_to_a_database_and_back(
    server: Server, job: str, tmp_path: Path
) -> None:
    file, db = tmp_path / "records.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert run("export", str(file), "--job", job, server=server).exit_code == 0
    added = run("import", str(file), "--db", db, "--json")
    assert added.exit_code == 0, added.stderr
    assert json.loads(added.stdout)["trials"] == 4
    piped = run("export", "-", "--db", db, "--workload", OPERATOR, "--target", TARGET)
    assert _measured_lines(piped.stdout_bytes) == _measured_lines(file.read_bytes())
    sent = run("export", "-", "--job", job, server=server)
    assert _measured_lines(sent.stdout_bytes) == _measured_lines(file.read_bytes())
    again = run("import", "-", "--json", server=server, stdin=piped.stdout_bytes)
    assert again.exit_code == 0, again.stderr
    assert set(json.loads(again.stdout).values()) == {0}
    shown = run("import", str(file), server=server)
    assert "added 0 job(s), 0 trial(s)" in shown.stdout


def _measured_lines(records: bytes) -> list[bytes]:
    """The lines after the header, without the peak of the CPU.

    A worker measures the peak when it is idle, so a second export may hold it and the first not.
    """
    return [re.sub(rb'"peak_flops":[^,}]+', b"", line) for line in records.splitlines()[1:]]


def test_records_may_be_gzipped(server: Server, job: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "records.jsonl", tmp_path / "records.jsonl.gz"
    for file in (plain, packed):
        assert run("export", str(file), "--job", job, server=server).exit_code == 0
    unpacked = gzip.decompress(packed.read_bytes())
    assert unpacked.splitlines()[1:] == plain.read_bytes().splitlines()[1:]
    for number, stdin in enumerate([None, packed.read_bytes()]):
        db = f"sqlite:///{tmp_path}/{number}.db"
        added = run("import", "-" if stdin else str(packed), "--db", db, "--json", stdin=stdin)
        assert added.exit_code == 0, added.stderr
        assert json.loads(added.stdout)["trials"] == 4
    packed.write_bytes(packed.read_bytes()[:-100])
    refused = run("import", str(packed), server=server)
    assert refused.exit_code == 2
    assert "is gzipped and cannot be unpacked" in " ".join(refused.stderr.split())


def test_an_export_replaces_no_device_or_link(server: Server, job: str, tmp_path: Path) -> None:
    pipe, file, link = tmp_path / "pipe", tmp_path / "file", tmp_path / "link"
    os.mkfifo(pipe)
    refused = run("export", str(pipe), "--job", job, server=server)
    assert refused.exit_code == 2
    assert "not a regular file" in refused.stderr
    assert pipe.is_fifo()
    link.symlink_to(file)
    assert run("export", str(link), "--job", job, server=server).exit_code == 0
    assert link.is_symlink()
    assert file.read_bytes()


def test_a_reader_that_has_enough_ends_an_export_in_silence(server: Server, job: str) -> None:
    ran = subprocess.run(
        f"{sys.executable} -m loopwright export - --job {job} --url {server.url} | head -c 10",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert (len(ran.stdout), ran.stderr) == (10, b"")


NOBODY = f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize(
    ("args", "exit_code", "words"),
    [
        (("jobs", "--url", NOBODY), 3, "loopwright serve"),
        (("workers", "--url", NOBODY), 3, "loopwright serve"),
        (("trials", str(UUID(int=1)), "--url", NOBODY), 3, "loopwright serve"),
        (("export", "records.jsonl", "--url", NOBODY), 3, "loopwright serve"),
        (("jobs", "--state", "asleep"), 2, "asleep"),
        (("import", "no/such/file"), 2, "no such file"),
        (("import", "."), 2, "not a regular file"),
        (("export", "x.jsonl", "--db", "sqlite:///typo.db"), 1, "there is no database"),
        (("train", "--db", "sqlite:///typo.db"), 1, "there is no database"),
        (("export", "no/such/folder/file", "--db", "sqlite://"), 1, "sqlite"),
        (("coordinator", "--scheduler", "foo"), 2, "expected tls://HOST:PORT"),
        (("coordinator", "--scheduler", "tls://a.example"), 2, "expected tls://HOST:PORT"),
        (("worker", "tcp://a.example:8786"), 2, "expected tls://HOST:PORT"),
        (("worker", "tls://a.example:8786/x"), 2, "expected tls://HOST:PORT"),
        (("worker", "tls://a.example:87860"), 2, "expected tls://HOST:PORT"),
        (("scheduler", "--log-format", "xml"), 2, "json"),
        (("coordinator", "--db", "sqlite:///no/such/folder/x.db"), 1, "no/such/folder"),
        (("worker", "tls://127.0.0.1:1", "--certificates", "no/such"), 1, "loopwright scheduler"),
        (
            ("coordinator", "--scheduler", "tls://127.0.0.1:1", "--certificates", "no/such"),
            1,
            "loopwright scheduler",
        ),
        (("scheduler", "--host", "no.invalid", "--certificates", "c"), 2, "cannot listen on no."),
    ],
)
def test_exit_codes_say_what_kind_of_failure_it_was(
    args: tuple[str, ...],
    exit_code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*args)
    assert ran.exit_code == exit_code, ran.output
    assert words in ran.stderr
    assert "Traceback" not in ran.output


def test_a_wrong_file_is_refused_with_its_line(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"kind": "job"}\n')
    for where in (("--db", f"sqlite:///{tmp_path}/x.db"), ("--url", server.url)):
        ran = run("import", str(file), *where)
        assert ran.exit_code == 2
        assert "line 1: " in ran.stderr


def test_a_job_that_is_not_there_is_exit_code_1(server: Server) -> None:
    ran = run("trials", str(UUID(int=1)), server=server)
    assert ran.exit_code == 1
    assert "there is no job" in ran.stderr


def test_a_shell_completes_commands_options_and_jobs(server: Server, job: str) -> None:
    assert set(complete("loopwright ")) == set(COMMANDS)
    assert complete("loopwright tri") == ["trials"]
    assert "--sketch" in complete("loopwright trials --")
    assert "succeeded" in complete("loopwright jobs --state succ")
    offered = complete(f"loopwright trials {job[:6]}", {"LOOPWRIGHT_URL": server.url})
    assert job in offered
    assert complete("loopwright trials ab", {"LOOPWRIGHT_URL": NOBODY}) == []


def test_the_exit_codes_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for code in ("| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 130 |"):
        assert code in page
    for command in COMMANDS:
        assert f"`loopwright {command}" in page, command
