"""An import that has to wait: the client is patient, and the server answers others meanwhile."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import UUID

from loopwright.client.client import Client
from tests.acceptance.service.server import serving
from tests.integration.service.recorded import NUM_TRIALS, SPECS, TARGETS, History, file_of


def test_an_import_may_take_longer_than_other_answers(tmp_path: Path) -> None:
    database, file = tmp_path / "loopwright.db", tmp_path / "records.jsonl"
    file.write_bytes(file_of([(History(UUID(int=1), SPECS[0], TARGETS[0], 1), NUM_TRIALS, True)]))
    patience_secs = 2.0
    with (
        serving(database, part="api") as server,
        Client(str(server.http.base_url.join("/")), timeout_secs=patience_secs) as client,
        ThreadPoolExecutor(1) as pool,
        closing(sqlite3.connect(database, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")  # there is one writer at a time
        coming = pool.submit(client.import_records, file)
        end = time.monotonic() + 2 * patience_secs
        while time.monotonic() < end:
            assert server.http.get("/jobs").json()["items"] == []
            time.sleep(0.1)
        assert not coming.done()
        other.execute("COMMIT")
        assert coming.result(60).trials == NUM_TRIALS
