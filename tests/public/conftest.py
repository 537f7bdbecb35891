from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import loopwright as lw
from examples.serving import Server, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A real server with real workers, shared: tests leave its other jobs alone."""
    with serving() as running:
        yield running


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[lw.Client]:
    with lw.Client(server.url, cache=tmp_path / "cache") as opened:
        yield opened
