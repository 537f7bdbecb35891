"""Export and import the records of a database without a server (`--db`)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from uuid import UUID

from rich.progress import wrap_file

from loopwright.atomic_file import atomic_file
from loopwright.cli.shared.output import err_console
from service.records.check import lines_of
from service.records.merge import import_records
from service.records.write import Selection, check, export
from service.store.database.database import open_database
from service.wire.server_models import ImportRead


def export_from(
    db: str, file: Path, *, jobs: Collection[UUID], workload_key: str | None, target: str | None
) -> None:
    """Write the records of some jobs to a file, atomically.

    Args:
        db: The address of the database.
        file: The file to write.
        jobs: Only these jobs; all jobs if empty.
        workload_key: Only jobs of this workload.
        target: Only jobs for this target.
    """
    selection = Selection(jobs, workload_key, target)
    with closing(open_database(db, must_exist=True)) as database:
        check(database, selection)
        pieces = export(database, selection)
        with atomic_file(file) as opened:
            opened.writelines(piece.encode() for piece in pieces)


def import_into(db: str, file: Path) -> ImportRead:
    """Add the records of a file to a database, with a progress bar on a terminal."""
    with (
        closing(open_database(db)) as database,
        file.open("rb") as opened,
        wrap_file(
            opened,
            file.stat().st_size,
            description="reading",
            console=err_console,
            transient=True,
            disable=not err_console.is_terminal,
        ) as read,
    ):
        return import_records(database, lines_of(read))
