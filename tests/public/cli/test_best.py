"""`loopwright best`: without a result, without a server."""

from __future__ import annotations

from typer.testing import CliRunner

from examples.serving import Server, free_port
from loopwright.cli.main import app
from tests.public.cli.commands import loopwright


def test_a_server_that_is_not_there_is_exit_code_3() -> None:
    ran = loopwright("jobs", "--url", f"http://127.0.0.1:{free_port()}")
    assert ran.returncode == 3
    assert "loopwright serve" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_wrong_protocol_gets_the_advice_that_fits(server: Server) -> None:
    """The server runs: to start one would not help."""
    ran = CliRunner().invoke(app, ["jobs", "--url", server.url.replace("http:", "https:")])
    assert ran.exit_code == 3
    assert ran.stderr.endswith(f"try {server.url}\n")


def test_what_was_not_tuned_is_exit_code_1(server: Server) -> None:
    ran = loopwright("best", "relu:54321", "--url", server.url)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
