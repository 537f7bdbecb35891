"""What `loopwright serve` refuses."""

from __future__ import annotations

from pathlib import Path

from examples.serving import Server, free_port
from tests.public.cli.commands import loopwright


def test_a_second_server_on_a_port_says_so(server: Server, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    ran = loopwright("serve", "--port", port, "--db", f"sqlite:///{tmp_path}/x.db")
    assert ran.returncode == 1
    assert port in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    ran = loopwright("serve", "--port", str(free_port()), "--db", f"sqlite:///{path}")
    assert ran.returncode == 1
    assert "notes.txt" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert path.read_text() == "not a database, " * 100


def test_beyond_loopback_a_token_is_needed(tmp_path: Path) -> None:
    ran = loopwright(
        "serve", "--host", "0.0.0.0", "--port", "0", "--db", f"sqlite:///{tmp_path}/x.db"
    )
    assert ran.returncode == 1
    assert "token" in ran.stderr
