"""The jobs that come with the service, so that its pages can be looked at without waiting."""

from __future__ import annotations

import lzma
from importlib import resources

from service.records.merge import import_records
from service.store.database.database import Database


def import_recorded(database: Database) -> None:
    """Put the jobs that come with the service into an empty store."""
    packed = resources.files("service.demo").joinpath("records.jsonl.xz").read_bytes()
    lines = lzma.decompress(packed).splitlines()
    import_records(database, lines)
