"""What `serve` refuses before anything has started."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.common.errors import ServeError
from service.processes.serve import serve


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_is_taken(tmp_path: Path, taken_port: int) -> None:
    database = tmp_path / "new.db"
    with pytest.raises(ServeError, match=rf"port {taken_port} of 127.0.0.1 is in use"):
        serve("127.0.0.1", taken_port, f"sqlite:///{database}")
    assert not database.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize("token", [None, ""])
def test_a_public_address_without_a_token(tmp_path: Path, host: str, token: str | None) -> None:
    with pytest.raises(ServeError, match="without a token"):
        serve(host, 0, f"sqlite:///{tmp_path}/new.db", token)


def test_an_empty_address(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="cannot listen on"):
        serve("", 0, f"sqlite:///{tmp_path}/new.db")


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"cannot listen on no.such.host.invalid"):
        serve("no.such.host.invalid", 0, f"sqlite:///{tmp_path}/new.db")


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"cannot listen on 192.0.2.1:0"):
        serve("192.0.2.1", 0, f"sqlite:///{tmp_path}/new.db", "token")


def test_a_database_that_is_none(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("these are my notes, and no database")
    with pytest.raises(ServeError, match="is not an SQLite database"):
        serve("127.0.0.1", 0, f"sqlite:///{notes}")
    assert notes.read_text() == "these are my notes, and no database"
