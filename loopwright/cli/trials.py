"""`loopwright trials`: the trials of a job."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from loopwright.cli.shared.options import JobArgument, JsonOption, TokenOption, UrlOption
from loopwright.cli.shared.output import console, print_json, print_table, secs, size
from loopwright.cli.shared.where import server
from service.wire.models import ResourcesRead, TrialRead
from service.wire.times import is_estimated


def trials(
    job: JobArgument,
    *,
    outcome: Annotated[
        list[str] | None,
        typer.Option(help="Only trials with this outcome: ok, or an error kind; may be repeated."),
    ] = None,
    sketch: Annotated[str | None, typer.Option(help="Only trials of this sketch.")] = None,
    sort: Annotated[
        str | None, typer.Option(help="Sort by number, -number, best_secs or -best_secs.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of trials.")] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the trials of a job; failed ones with their error."""
    with server(url, token) as client:
        handle = client.job(job)
        is_estimate = is_estimated(handle.read().target)
        listed = list(handle.trials(outcome=outcome or (), sketch=sketch, sort=sort, limit=limit))
    if as_json:
        print_json(listed)
    elif listed:
        print_table(_table(listed, is_estimate=is_estimate))
    else:
        console.print("no matching trials" if outcome or sketch else "no trials yet")


def _table(trials: list[TrialRead], *, is_estimate: bool) -> Table:
    search_time = "estimated" if is_estimate else "provisional"
    times = (search_time, "confirmed", "error", "build", "check")
    is_of_device = any(trial.resources for trial in trials)
    resources = ("registers", "spills", "shared", "occupancy") if is_of_device else ()
    table = Table("trial", "sketch", *times, *resources, "worker")
    for trial in trials:
        table.add_row(
            str(trial.number),
            trial.sketch,
            secs(trial.provisional_secs),
            "" if trial.final is None else f"{secs(trial.final.run_secs)} {trial.final.outcome}",
            trial.error or "",
            secs(trial.build_secs),
            secs(trial.check_secs),
            *(_resources(trial.resources) if is_of_device else ()),
            trial.worker,
        )
    return table


def _resources(used: ResourcesRead | None) -> tuple[str, str, str, str]:
    if used is None:
        return "", "", "", ""
    occupancy = "" if used.occupancy is None else f"{used.occupancy:.0%}"
    return str(used.registers), size(used.spill_bytes), size(used.shared_bytes), occupancy
