"""Exit codes by the kind of failure."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from examples.serving import Server
from loopwright.cli.main import COMMANDS
from tests.public.cli.commands import UNREACHABLE, run


@pytest.mark.parametrize(
    ("args", "exit_code", "words"),
    [
        (("jobs", "--url", UNREACHABLE), 3, "loopwright serve"),
        (("workers", "--url", UNREACHABLE), 3, "loopwright serve"),
        (("trials", str(UUID(int=1)), "--url", UNREACHABLE), 3, "loopwright serve"),
        (("export", "records.jsonl", "--url", UNREACHABLE), 3, "loopwright serve"),
        (("jobs", "--state", "asleep"), 2, "asleep"),
        (("import", "no/such/file"), 2, "no such file"),
        (("import", "."), 2, "not a regular file"),
        (("export", "x.jsonl", "--db", "sqlite:///typo.db"), 1, "no database"),
        (("train", "--db", "sqlite:///typo.db"), 1, "no database"),
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


def test_a_job_that_is_not_there_is_exit_code_1(server: Server) -> None:
    ran = run("trials", str(UUID(int=1)), server=server)
    assert ran.exit_code == 1
    assert "no job" in ran.stderr


def test_the_exit_codes_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    for code in ("| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 130 |"):
        assert code in page
    for command in COMMANDS:
        assert f"`loopwright {command}" in page, command
