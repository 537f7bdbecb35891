"""A job that has ended."""

from __future__ import annotations

import pytest

import loopwright as lw
from examples.serving import Server
from tests.patience import PATIENCE_SECS
from tests.public.cli.commands import OPERATOR, TARGET


@pytest.fixture(scope="session")
def job(server: Server) -> str:
    """Return a job that has ended."""
    with lw.Client(server.url) as client:
        handle = client.tune(OPERATOR, target=TARGET, max_trials=4)
        handle.wait(timeout_secs=PATIENCE_SECS)
    return str(handle.id)
