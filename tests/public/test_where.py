"""One rule says which server a command asks, and the command says which one it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from examples.serving import Server, serving
from loopwright.cli.main import app
from loopwright.cli.shared import where

TARGET = "cpu -num-cores=1"
OPERATOR = "matmul:24,16,16"


def run(*args: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "140", **(env or {})}).invoke(app, args)


@pytest.fixture
def default(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the default address of commands, at which a server answers now."""
    monkeypatch.delenv("LOOPWRIGHT_URL", raising=False)
    monkeypatch.setattr(where, "DEFAULT_URL", server.url)
    return server.url


def test_what_tune_found_is_found_by_the_other_commands(default: str, tmp_path: Path) -> None:
    """None of them names a server: all ask the one at the default address."""
    said = f"using the server at {default}\n"
    tuned = run("tune", OPERATOR, "--target", TARGET, "--max-trials", "2")
    assert tuned.exit_code == 0, tuned.stderr
    assert tuned.stderr.startswith(f"{said}job ")
    job = tuned.stderr.removeprefix(said).split()[1]
    for args, found in (
        (("jobs", "--limit", "1000"), job),
        (("best", OPERATOR, "--target", TARGET), job),
        (("trials", job), "default"),
        (("workers",), "measures for"),
        (("export", "-", "--job", job), job),
    ):
        ran = run(*args)
        assert ran.exit_code == 0, ran.stderr
        assert found in ran.stdout, args
        assert ran.stderr == said, args


def test_a_server_in_the_environment_comes_before_the_default(
    server: Server, no_server: str
) -> None:
    ran = run("jobs", env={"LOOPWRIGHT_URL": server.url})
    assert ran.exit_code == 0
    assert ran.stderr == f"using the server at {server.url} (from $LOOPWRIGHT_URL)\n"
    assert no_server not in ran.stderr


def test_a_server_of_the_command_itself_comes_first(server: Server, no_server: str) -> None:
    ran = run("jobs", "--url", server.url, env={"LOOPWRIGHT_URL": no_server})
    assert (ran.exit_code, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    "args", [("jobs",), ("best", OPERATOR), ("workers",), ("jobs", "stop", str(UUID(int=1)))]
)
def test_without_a_server_a_command_says_how_to_start_one(
    args: tuple[str, ...], no_server: str
) -> None:
    ran = run(*args)
    assert ran.exit_code == 3
    assert f"no server responds at {no_server}" in ran.stderr
    assert "loopwright serve" in ran.stderr


@pytest.fixture
def something_else(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the default address, at which another program answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>a page</h1>")

        def log_message(self, *_: object) -> None:
            pass

    other = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{other.server_port}"
    monkeypatch.delenv("LOOPWRIGHT_URL", raising=False)
    monkeypatch.setattr(where, "DEFAULT_URL", url)
    yield url
    other.shutdown()
    other.server_close()


def test_another_program_at_the_default_address_is_no_server(something_else: str) -> None:
    ran = run("jobs")
    assert ran.exit_code == 3
    assert f"no server responds at {something_else}" in ran.stderr


def test_a_server_that_wants_a_token_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To tune in this process instead would hide the mistake."""
    monkeypatch.delenv("LOOPWRIGHT_URL", raising=False)
    monkeypatch.delenv("LOOPWRIGHT_TOKEN", raising=False)
    with serving(tmp_path / "a.db", command="api") as running:
        made = run("token", "create", "somebody", "--db", f"sqlite:///{tmp_path}/a.db")
        assert made.exit_code == 0, made.stderr
        monkeypatch.setattr(where, "DEFAULT_URL", running.url)
        ran = run("tune", OPERATOR, "--max-trials", "1")
    assert ran.exit_code == 2
    assert "pass one with --token" in ran.stderr
