"""`loopwright tune A B`: several workloads that share a budget."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.table import Table

from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.output import (
    err_console,
    labelled,
    print_json,
    print_table,
    times_faster,
)
from loopwright.cli.shared.where import TUNE_HERE
from loopwright.cli.tuning.outcome import Several, TuneOutcome
from loopwright.client.client import Client
from loopwright.errors import JobFailedError
from loopwright.extras import load_extra
from service.wire.stop_reasons import stop_reason_in_words


def tune_several(
    several: Several, *, warm_start: bool, url: str | None, token: str | None, as_json: bool
) -> None:
    """Tune the workloads, here or on a server, and print the best schedule of each."""
    if several.weights is not None and len(several.weights) != len(several.workloads):
        raise InputError(
            f"{len(several.weights)} weights for {len(several.workloads)} workloads: "
            "expected one weight for each workload"
        )
    try:
        if url is None:
            tune_here = load_extra("loopwright.cli.tuning.tune_here", TUNE_HERE)
            outcomes: list[TuneOutcome] = tune_here.tune_several_here(
                several, warm_start=warm_start
            )
        else:
            with Client(url, token) as client:
                outcomes = _tune_there(client, several, warm_start=warm_start)
    except ValueError as error:  # weights and trials that do not fit the workloads
        raise InputError(str(error)) from error
    if as_json:
        print_json({"tasks": [outcome.to_json() for outcome in outcomes]})
    else:
        print_table(_table(outcomes))
    if any(outcome.was_interrupted for outcome in outcomes):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _tune_there(client: Client, several: Several, *, warm_start: bool) -> list[TuneOutcome]:
    handle = client.tune(
        several.workloads,
        weights=several.weights,
        target=several.target,
        warm_start=warm_start,
        **several.options,
        **several.texts,
    )
    for job in handle.read().jobs:
        err_console.print(f"job {job.id}", highlight=False)
    try:
        group = handle.wait()
    except KeyboardInterrupt:
        err_console.print(
            f"the jobs continue; see: loopwright jobs --url {client.url}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    outcomes = []
    for workload, job in zip(several.workloads, group.jobs, strict=True):
        if job.best_secs is None:
            raise JobFailedError(f"job {job.id} is {job.state}: no candidate ran")
        outcomes.append(
            TuneOutcome(
                job.workload_name,
                job.shape,
                job.target,
                str(job.id),
                job.num_measured,
                job.default_time,
                job.best_time,
                job.stop_reason or "",
                client.best(workload, target=job.target).trace,
                job.baseline,
            )
        )
    return outcomes


def _table(outcomes: Sequence[TuneOutcome]) -> Table:
    table = Table("workload", "trials", "finished", "default", "best", "speed-up")
    for outcome in outcomes:
        table.add_row(
            f"{outcome.workload} {outcome.shape or ''}".rstrip(),
            str(outcome.num_measured),
            stop_reason_in_words(outcome.stop_reason),
            labelled(outcome.default.secs, outcome.default.kind),
            labelled(outcome.best.secs, outcome.best.kind),
            times_faster(*(outcome.speedup or (None, None))),
        )
    return table
