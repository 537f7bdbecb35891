"""`loopwright lock`: write the best schedules of workloads to a lock file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.options import (
    TargetOption,
    TokenOption,
    UrlOption,
    read_workload,
)
from loopwright.cli.shared.output import err_console
from loopwright.cli.shared.where import server
from loopwright.client.progress import format_secs
from loopwright.locks.lock import lock as write_lock
from loopwright.locks.lock import rebuild_lock
from loopwright.locks.lock_file import LOCK_NAME


def lock(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(
            help="Script files or operators such as matmul:512,512,512:float32.",
            metavar="WORKLOAD",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The lock file.")] = Path(
        LOCK_NAME
    ),
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Keep the schedules, and accept the code that this version builds."
        ),
    ] = False,
    target: TargetOption = "cpu",
    url: UrlOption = None,
    token: TokenOption = None,
) -> None:
    """Write the best schedules of workloads to a lock file, for `lw.kernel(..., lock=FILE)`.

    Kernels that the file already has are replaced, others stay. The schedules come from a server.

    With --rebuild, no server is needed: all kernels of the file are built by the compiler that is
    installed here. Do so after an update of Loopwright, and review the difference.
    """
    if rebuild == bool(workloads):
        raise InputError("expected workloads to lock, or --rebuild for those of the file")
    try:
        if rebuild:
            _print_lines(rebuild_lock(output) or [f"{output} is up to date"])
        else:
            _print_lines(_lock_best(workloads or [], output, target, url, token))
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error


def _lock_best(
    workloads: list[str], path: Path, target: str, url: str | None, token: str | None
) -> list[str]:
    texts = [read_workload(workload) for workload in workloads]
    with server(url, token) as client:
        tuned = [(text, client.best(text, target=target)) for text in texts]
    return [
        f"locked {kernel.label}"
        + ("" if kernel.record is None else f": {format_secs(kernel.record.run_secs)}")
        for kernel in write_lock(path, *tuned)
    ]


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        err_console.print(line, highlight=False, soft_wrap=True, markup=False)
