"""`loopwright jobs`: the jobs of a server."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from loopwright.cli.options import JsonOption, OptionalTargetOption, TokenOption, UrlOption
from loopwright.cli.output import console, moment, print_json, print_table, secs, speed_up
from loopwright.client import DEFAULT_URL, Client
from loopwright.models import JobRead, JobState


def jobs(
    *,
    state: Annotated[
        list[JobState] | None, typer.Option(help="Only jobs in this state; may be repeated.")
    ] = None,
    operator: Annotated[
        str | None, typer.Option(help="Only jobs of this operator, such as matmul.")
    ] = None,
    target: OptionalTargetOption = None,
    owner: Annotated[
        str | None, typer.Option(help="Only jobs submitted with the token of this name.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Only jobs with this in their words.")] = None,
    sort: Annotated[
        str | None, typer.Option(help="By a column, such as best_secs or -num_measured.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, the newest first."""
    with Client(url, token) as client:
        found = list(
            client.jobs(
                state=state,
                operator=operator,
                target=target,
                owner=owner,
                text=text,
                sort=sort,
                limit=limit,
            )
        )
    if as_json:
        print_json(found)
    elif found:
        print_table(_table(found))
    else:
        console.print("no jobs")


def _table(found: list[JobRead]) -> Table:
    table = Table(
        "job", "state", "workload", "trials", "default", "best", "speed-up", "owner", "created"
    )
    for job in found:
        table.add_row(
            str(job.id),
            job.state.value,
            job.workload_name,
            f"{job.num_measured}/{job.trials}",
            secs(job.default_secs),
            secs(job.best_secs),
            speed_up(job.default_secs, job.best_secs),
            job.owner or "",
            moment(job.created_at),
        )
    return table
