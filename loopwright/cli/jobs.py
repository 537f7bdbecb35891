"""`loopwright jobs`: list, stop, cancel, resume and extend the jobs of a server."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.options import (
    JobArgument,
    JobNameOption,
    JobNoteOption,
    JsonOption,
    OptionalTargetOption,
    TagOption,
    TokenOption,
    UrlOption,
)
from loopwright.cli.shared.output import (
    console,
    err_console,
    labelled,
    moment,
    print_json,
    print_table,
    times_faster,
)
from loopwright.cli.shared.where import server
from service.wire.models import JobRead, JobState
from service.wire.requests import MAX_SECONDS
from service.wire.trial_limit import MAX_TRIALS

_MAX_REASON_CHARS = 80
"""Of the reason of a failure in a table: `--json` has all of it. Chosen."""

jobs = typer.Typer(
    name="jobs",
    help="List jobs, newest first; stop, cancel, resume or extend a job.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@jobs.callback()
def listed(
    context: typer.Context,
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
    search: Annotated[
        str | None, typer.Option(help="Only jobs with this text in their texts or shape.")
    ] = None,
    tag: TagOption = None,
    sort: Annotated[
        str | None, typer.Option(help="Sort by a field, such as best_secs or -num_measured.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of jobs.")] = 20,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    if context.invoked_subcommand is not None:
        return
    with server(url, token) as client:
        matching = list(
            client.jobs(
                state=state,
                operator=operator,
                target=target,
                owner=owner,
                text=search,
                tag=tag,
                sort=sort,
                limit=limit,
            )
        )
    if as_json:
        print_json(matching)
    elif matching:
        print_table(_table(matching))
    else:
        console.print("no jobs")


@jobs.command()
def stop(
    job: JobArgument,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a job's search; compare its fastest trials and keep the winner."""
    with server(url, token) as client:
        changed = client.job(job).stop()
    _show(changed, as_json=as_json)
    _say_if_open(changed, "is stopping: it compares its fastest trials first")


@jobs.command()
def cancel(
    job: JobArgument,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a job; keep its trials."""
    with server(url, token) as client:
        handle = client.job(job)
        before = handle.read().state
        changed = handle.cancel()
    _show(changed, as_json=as_json)
    if before.is_final:
        err_console.print(f"job {changed.id} had ended already: {before.value}", soft_wrap=True)
    _say_if_open(changed, "is being cancelled; this takes a few seconds")


@jobs.command()
def resume(
    job: JobArgument,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume a cancelled, stopped or failed job."""
    with server(url, token) as client:
        _show(client.job(job).resume(), as_json=as_json)


@jobs.command()
def extend(
    job: JobArgument,
    *,
    max_trials: Annotated[
        int | None, typer.Option(min=1, max=MAX_TRIALS, help="New total trial limit.")
    ] = None,
    max_secs: Annotated[
        float | None, typer.Option(min=1e-3, max=MAX_SECONDS, help="New total time limit.")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_TRIALS, help="Stop after this many trials without improvement."
        ),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="Queued jobs of higher priority start first.")
    ] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a job's limits or priority; a finished job continues."""
    has_budget = (max_trials, max_secs, patience) != (None, None, None)
    if not has_budget and priority is None:
        raise InputError(
            "nothing to change: expected --max-trials, --max-secs, --patience or --priority"
        )
    with server(url, token) as client:
        handle = client.job(job)
        if priority is not None:
            handle.prioritize(priority)
        if has_budget:
            changed = handle.extend(max_trials=max_trials, max_secs=max_secs, plateau=patience)
        else:
            changed = handle.read()
        _show(changed, as_json=as_json)


@jobs.command()
def describe(
    job: JobArgument,
    *,
    name: JobNameOption = None,
    note: JobNoteOption = None,
    tag: TagOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a job's name, note or tags; an empty text removes the current one."""
    tags = None if tag is None else [text for text in tag if text]
    with server(url, token) as client:
        _show(client.job(job).describe(name=name, note=note, tags=tags), as_json=as_json)


def _say_if_open(job: JobRead, change: str) -> None:
    """Describe the change to a job that its coordinator has not finished yet."""
    if not job.state.is_final:
        err_console.print(f"job {job.id} {change}", highlight=False, soft_wrap=True)


def _show(job: JobRead, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
    else:
        print_table(_table([job]))


def _state(job: JobRead) -> str:
    waits = job.state is JobState.QUEUED and job.window is not None
    return f"{job.state.value}, window {job.window}" if waits else job.state.value


def _reason(job: JobRead) -> str:
    """Return the first line of the reason why a job failed, shortened."""
    line = next(iter((job.error or "").splitlines()), "")
    return line if len(line) <= _MAX_REASON_CHARS else f"{line[: _MAX_REASON_CHARS - 1]}…"


def _table(jobs: list[JobRead]) -> Table:
    table = Table(
        *("job", "name", "state", "workload", "trials", "default", "best", "speed-up", "owner"),
        "created",
        *(["error"] if (has_errors := any(job.error for job in jobs)) else []),
    )
    for job in jobs:
        table.add_row(
            str(job.id),
            " ".join([*filter(None, [job.name]), *(f"#{tag}" for tag in job.tags)]),
            _state(job),
            f"{job.workload_name} {job.shape or ''}".rstrip(),
            f"{job.num_measured}/{job.max_trials}",
            labelled(job.default_secs, job.default_kind),
            labelled(job.best_secs, job.best_kind),
            times_faster(job.speedup, job.speedup_kind),
            job.owner or "",
            moment(job.created_at),
            *([escape(_reason(job))] if has_errors else []),
        )
    return table
