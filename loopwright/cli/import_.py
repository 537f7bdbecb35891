"""`loopwright import`: the records of a file, into a server or a database."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.failure import InputError
from loopwright.cli.options import DbOption, JsonOption, TokenOption, UrlOption
from loopwright.cli.output import console, print_json
from loopwright.client import DEFAULT_URL, Client
from loopwright.server_models import ImportRead
from service.records.check import lines_of
from service.records.merge import import_records
from service.store.database import open_database


def import_(
    file: Annotated[
        Path, typer.Argument(help="What was exported; - for the standard input.", metavar="FILE")
    ],
    *,
    db: DbOption = None,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the records of a file: all of them, or none if a line of it is wrong.

    What is there already stays as it is, so that a file may be imported twice. Sends the file to a
    server, or with --db adds it to a database.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = file
        if str(file) == "-":
            path = Path(folder) / "stdin"
            with path.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        elif not file.is_file():
            reason = "it is no regular file" if file.exists() else "there is none"
            raise InputError(f"the file {file} cannot be read: {reason}")
        added = _import(path, db, url, token)
    if as_json:
        print_json(added)
        return
    console.print(
        f"added {added.jobs} job(s), {added.trials} trial(s) and {added.workloads} workload(s);"
        f" {added.updated_jobs} job(s) brought up to date, {added.skipped_jobs} that run left"
        " alone;"
        f" {added.best_schedules} best schedule(s) are new",
        highlight=False,
        soft_wrap=True,
    )


def _import(path: Path, db: str | None, url: str, token: str | None) -> ImportRead:
    if db is None:
        with Client(url, token) as client:
            return client.import_records(path)
    with closing(open_database(db)) as database, path.open("rb") as opened:
        return import_records(database, lines_of(opened))
