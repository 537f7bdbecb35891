"""`loopwright export`: jobs with all their measurements, to a file."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from uuid import UUID

import typer

from compiler.ir.analysis.structural import structural_hash
from compiler.target.target import Target
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.gzipped import gzip_file, is_to_be_gzipped
from loopwright.cli.shared.options import (
    DbOption,
    OptionalTargetOption,
    TokenOption,
    UrlOption,
    complete_job,
    read_workload,
)
from loopwright.cli.shared.output import err_console, waiting
from loopwright.cli.shared.where import server
from loopwright.extras import load_extra
from loopwright.workload import to_func


def export(
    file: Annotated[
        Path,
        typer.Argument(
            help="Output file, gzipped if it ends in .gz; - for standard output.",
            metavar="FILE",
        ),
    ],
    *,
    job: Annotated[
        list[UUID] | None,
        typer.Option(help="Only this job; may be repeated.", autocompletion=complete_job),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Only jobs of this script or operator.")
    ] = None,
    target: OptionalTargetOption = None,
    db: DbOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
) -> None:
    """Write jobs with all their measurements to a file of JSON lines, for `loopwright import`.

    The jobs come from a server, or with --db directly from a database.
    """
    key = None if workload is None else structural_hash(to_func(read_workload(workload)))
    target_name = None if target is None else Target(target).name
    is_piped = str(file) == "-"
    try:
        # A file is written atomically, which standard output cannot be.
        with TemporaryDirectory() as folder:
            is_temporary = is_piped or is_to_be_gzipped(file)
            records_path = Path(folder, "records.jsonl") if is_temporary else file
            if db is None:
                with server(url, token) as client, waiting(f"writing the records of {client.url}"):
                    client.export_records(
                        records_path, jobs=job or (), workload_key=key, target=target_name
                    )
            else:
                records = load_extra(
                    "loopwright.cli.shared.database_records", "loopwright export --db"
                )
                with waiting(f"writing the records of {db}"):
                    records.export_from(
                        db, records_path, jobs=job or (), workload_key=key, target=target_name
                    )
            if is_to_be_gzipped(file):
                gzip_file(records_path, file)
            if is_piped:
                with records_path.open("rb") as opened:
                    shutil.copyfileobj(opened, sys.stdout.buffer)
                sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader closed the pipe; without this, Python's final flush would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from error
    if not is_piped:
        err_console.print(f"written: {file}", highlight=False, soft_wrap=True)
