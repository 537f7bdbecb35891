"""`loopwright prefetch`: make the kernels of a manifest ready before the first request."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from loopwright.cli.shared.failure import ExitCode
from loopwright.cli.shared.options import JsonOption, TokenOption, UrlOption
from loopwright.cli.shared.output import console, print_json
from loopwright.cli.shared.where import server
from loopwright.prefetching.manifest import read_manifest
from loopwright.prefetching.prefetch import PrefetchedKernel, each_prefetched


def prefetch(
    manifest: Annotated[
        Path, typer.Argument(help="A TOML file of workloads.", metavar="FILE", show_default=False)
    ],
    *,
    lock: Annotated[
        Path | None, typer.Option("--lock", help="Build from this lock file, without a server.")
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Accept the schedule of the nearest shape.")
    ] = False,
    enqueue: Annotated[
        bool, typer.Option("--enqueue", help="Queue jobs for workloads that were not tuned.")
    ] = False,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the kernels of a manifest into the cache, or build those of a lock file.

    Prints which schedule each has. The exit code is 1 if one has the default schedule, or none.
    """
    wanted = read_manifest(manifest)
    kernels = []
    with nullcontext() if lock is not None else server(url, token) as client:
        for kernel in each_prefetched(wanted, client, lock, nearest=nearest, enqueue=enqueue):
            kernels.append(kernel)
            if not as_json:
                _show(kernel)
    num_tuned = sum(kernel.is_tuned for kernel in kernels)
    if as_json:
        print_json({"ready": num_tuned == len(kernels), "kernels": [*map(_fields, kernels)]})
    else:
        console.print(f"{num_tuned} of {len(kernels)} kernels are tuned", highlight=False)
    if num_tuned < len(kernels):
        raise typer.Exit(ExitCode.NO_RESULT)


def _show(kernel: PrefetchedKernel) -> None:
    color = "green" if kernel.is_tuned else "red"
    advised = kernel.problem.replace("(`nearest`)", "(`--nearest`)")
    problem = f"  {advised}" if advised else ""
    console.print(
        f"[{color}]{kernel.schedule or 'missing':8}[/] {escape(kernel.wanted.workload)}"
        f" for {escape(kernel.wanted.target)}{escape(problem)}",
        highlight=False,
        soft_wrap=True,
    )


def _fields(kernel: PrefetchedKernel) -> dict[str, object]:
    return {
        "workload": kernel.wanted.workload,
        "target": kernel.wanted.target,
        "schedule": kernel.schedule,
        "problem": kernel.problem or None,
    }
