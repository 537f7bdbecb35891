"""`loopwright import`: the records of a file, into a server or a database."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.gzipped import plain_file
from loopwright.cli.shared.options import DbOption, JsonOption, TokenOption, UrlOption
from loopwright.cli.shared.output import console, print_json, waiting
from loopwright.cli.shared.where import server
from loopwright.extras import load_extra
from service.wire.server_models import ImportRead


def import_(
    file: Annotated[
        Path,
        typer.Argument(help="Exported file, gzipped or not; - for standard input.", metavar="FILE"),
    ],
    *,
    db: DbOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import the records of a file: all of them, or none if a line is invalid.

    Existing records do not change, so importing a file twice is safe. The records go to a server,
    or with --db directly to a database.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = file
        if str(file) == "-":
            path = Path(folder) / "stdin"
            with path.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        elif not file.is_file():
            reason = "no such file"
            if file.exists():
                reason = "not a regular file (use - to read a pipe from standard input)"
            raise InputError(f"the file {file} cannot be read: {reason}")
        added = _import(plain_file(path, Path(folder)), db, url, token)
    if as_json:
        print_json(added)
        return
    console.print(
        f"added {added.jobs} job(s), {added.trials} trial(s), {added.workloads} workload(s) and"
        f" {added.groups} group(s);"
        f" updated {added.updated_jobs} job(s); skipped {added.skipped_jobs} running job(s);"
        f" {added.best_schedules} new best schedule(s)",
        highlight=False,
        soft_wrap=True,
    )


def _import(path: Path, db: str | None, url: str | None, token: str | None) -> ImportRead:
    if db is None:
        size = decimal(path.stat().st_size)
        with server(url, token) as client, waiting(f"{client.url} accepts {size}"):
            return client.import_records(path)
    records = load_extra("loopwright.cli.shared.database_records", "loopwright import --db")
    added: ImportRead = records.import_into(db, path)
    return added
