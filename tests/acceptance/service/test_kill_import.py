"""`kill -9` of a server amid an import: nothing of it is there, and the file may be sent again."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from tests.acceptance.service.server import serving
from tests.integration.service.recorded import (
    NUM_TRIALS,
    SPECS,
    TARGETS,
    History,
    content_of,
    file_of,
)
from tests.patience import PATIENCE_SECS

pytestmark = pytest.mark.slow

FILE = file_of(
    [(History(UUID(int=n), SPECS[n % 2], TARGETS[0], seed=n), NUM_TRIALS, True) for n in range(4)]
)
HEADERS = {"Content-Type": "application/x-ndjson"}
# Dies where the trials of the third job were just moved into the store.
DIES = """
import os, signal
from loopwright_start import main
from service.records.staging import Staging

moved = []
move = Staging.move_trials

def move_and_die(self, job_id):
    moved.append(move(self, job_id))
    if len(moved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return moved[-1]

Staging.move_trials = move_and_die
main()
"""


def test_a_server_that_is_killed_amid_an_import_has_nothing_of_it(tmp_path: Path) -> None:
    database = tmp_path / "loopwright.db"
    with serving(database, part="api", program=("-c", DIES)) as server:
        with pytest.raises(httpx2.TransportError):
            server.http.post("/import", content=FILE, headers=HEADERS)
        assert server.process.wait(PATIENCE_SECS) == -signal.SIGKILL
    with closing(sqlite3.connect(database)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        for table in ("jobs", "trials", "workloads", "events"):
            assert table in tables
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert not [name for name in tables if name.startswith("import_")]
    with serving(database, part="api") as server:
        added = server.http.post("/import", content=FILE, headers=HEADERS).raise_for_status().json()
        assert (added["jobs"], added["trials"]) == (4, 4 * NUM_TRIALS)
        assert content_of(server.http.get("/export").content) == content_of(FILE)
