"""`loopwright import`: the records of a file, into a server or a database."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from loopwright.cli.failure import InputError
from loopwright.cli.gzipped import plain_file
from loopwright.cli.options import DbOption, JsonOption, TokenOption, UrlOption
from loopwright.cli.output import console, print_json, waiting
from loopwright.cli.where import server
from loopwright.extras import load_extra
from service.wire.server_models import ImportRead


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="What was exported, gzipped or not; - for the standard input.", metavar="FILE"
        ),
    ],
    *,
    db: DbOption = None,
    url: UrlOption = None,
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
            reason = "there is none"
            if file.exists():
                reason = "it is no regular file (a pipe is read from the standard input, as -)"
            raise InputError(f"the file {file} cannot be read: {reason}")
        added = _import(plain_file(path, Path(folder)), db, url, token)
    if as_json:
        print_json(added)
        return
    console.print(
        f"added {added.jobs} job(s), {added.trials} trial(s), {added.workloads} workload(s) and"
        f" {added.groups} group(s);"
        f" {added.updated_jobs} job(s) brought up to date, {added.skipped_jobs} that run left"
        " alone;"
        f" {added.best_schedules} best schedule(s) are new",
        highlight=False,
        soft_wrap=True,
    )


def _import(path: Path, db: str | None, url: str | None, token: str | None) -> ImportRead:
    if db is None:
        size = decimal(path.stat().st_size)
        with server(url, token) as client, waiting(f"{client.url} takes in {size}"):
            return client.import_records(path)
    records = load_extra("loopwright.cli.database_records", "loopwright import --db")
    added: ImportRead = records.import_into(db, path)
    return added
