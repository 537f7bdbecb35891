from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import loopwright as lw
from examples.serving import Server, free_port, serving
from loopwright.cli.shared import where


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A real server with real workers, shared: tests leave its other jobs alone."""
    with serving(options=["--remotes"]) as running:
        yield running


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the default address of commands, at which no server answers now."""
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.delenv("LOOPWRIGHT_URL", raising=False)
    monkeypatch.setattr(where, "DEFAULT_URL", url)
    return url


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[lw.Client]:
    with lw.Client(server.url, cache=tmp_path / "cache") as opened:
        yield opened
