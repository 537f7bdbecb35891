"""The packaged recorded jobs, which fill the dashboard without any measurement."""

from __future__ import annotations

import lzma
from importlib import resources

from service.records.merge import import_records
from service.store.database.database import Database


def import_recorded(database: Database) -> None:
    """Import the packaged jobs into an empty store."""
    packed = resources.files("service.demo").joinpath("records.jsonl.xz").read_bytes()
    lines = lzma.decompress(packed).splitlines()
    import_records(database, lines)
