from __future__ import annotations

from collections.abc import Iterator

import pytest
import stamina

from loopwright.client.connection import Connection
from tests.unit.loopwright.fake_server import FakeServer


@pytest.fixture(autouse=True)
def _retries_without_waiting() -> Iterator[None]:
    """Keep the number of attempts and drop the pauses between them."""
    stamina.set_testing(True, attempts=3, cap=True)
    yield
    stamina.set_testing(False)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.close()


@pytest.fixture
def connection(fake: FakeServer) -> Iterator[Connection]:
    opened = Connection(fake.url, "secret", timeout_secs=5.0, attempts=3)
    yield opened
    opened.close()
