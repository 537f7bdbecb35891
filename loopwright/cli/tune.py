"""`loopwright tune`: search for a fast schedule, here or on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from compiler.backends.backend import host_labels
from compiler.driver import compile_kernel
from compiler.executor.artifact import check_suffix
from compiler.executor.error import ArtifactError
from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.products import multiplied_dtype
from compiler.ir.analysis.symbols import symbolic_problem, symbolic_vars
from compiler.ir.core.dtypes import is_integer
from compiler.target.target import Target, complete_target
from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.options import (
    JobNameOption,
    JobNoteOption,
    JsonOption,
    TagOption,
    TargetOption,
    TokenOption,
    UrlOption,
    WebhookOption,
    WebhookSecretOption,
    WindowOption,
    WorkloadsArgument,
    read_workload,
)
from loopwright.cli.shared.output import (
    against,
    between,
    console,
    err_console,
    facts,
    labelled,
    print_json,
    times_faster,
)
from loopwright.cli.shared.where import TUNE_HERE, find_server
from loopwright.cli.tuning.outcome import Search, Several, TuneOutcome
from loopwright.cli.tuning.tune_several import tune_several
from loopwright.cli.tuning.tune_shapes import parse_ranges, tune_shapes
from loopwright.client.client import Client
from loopwright.errors import JobFailedError
from loopwright.extras import load_extra
from loopwright.workload import to_func
from service.wire.requests import MAX_SECONDS, MAX_SEED, Strategy
from service.wire.stop_reasons import stop_reason_in_words
from service.wire.trial_limit import MAX_TRIALS
from tuner.space.registry import built_in_rules


def tune(
    workload: WorkloadsArgument,
    *,
    weight: Annotated[
        list[float] | None,
        typer.Option(
            "--weight",
            min=0,
            help="Weight of a workload's time; repeat for each of several workloads.",
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME=LEAST:GREATEST",
            help="Range of a symbolic extent, such as M=1:512; repeat for each. One artifact runs "
            "all sizes.",
            show_default=False,
        ),
    ] = None,
    target: TargetOption = "cpu",
    max_trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_TRIALS,
            help="Trial limit. Default: 200; without a server, all of a space of at most 256"
            " schedules.",
        ),
    ] = None,
    max_secs: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            max=MAX_SECONDS,
            help="Time limit: of the search on a server, else of the whole search and comparison.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_TRIALS, help="Stop after this many trials without improvement."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Random seed of the search.")] = 0,
    strategy: Annotated[Strategy, typer.Option(help="Search strategy.")] = Strategy.EVOLUTIONARY,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="Schedule rule to use; may be repeated. Default: all."),
    ] = None,
    library: Annotated[
        list[str] | None,
        typer.Option(
            help="Library whose products a schedule may call, blas or torch; may be repeated. The"
            " kernel then requires it. Without a server only.",
            show_default=False,
        ),
    ] = None,
    no_warm_start: Annotated[
        bool,
        typer.Option("--no-warm-start", help="Ignore models and schedules of earlier jobs."),
    ] = False,
    name: JobNameOption = None,
    note: JobNoteOption = None,
    tag: TagOption = None,
    window: WindowOption = None,
    webhook: WebhookOption = None,
    webhook_secret: WebhookSecretOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the best kernel to this file.")
    ] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a fast schedule; verify the output of every candidate.

    The search runs on a server if --url names one or one responds at the default address.
    Otherwise it runs in this process, and its measurements are not stored.

    Several workloads share the trials: each round goes to the one with the largest expected gain.

    With --range it finds at most eight kernels of a symbolic program, such as matmul:M,512,512, and
    a dispatcher that calls one of them by size.
    """
    texts = [read_workload(path) for path in workload]
    _check_number(texts, weight, ranges, output)
    shape_ranges = parse_ranges(ranges or ())
    limits = {"max_trials": max_trials, "max_secs": max_secs, "plateau": patience}
    options = {
        **{limit: value for limit, value in limits.items() if value is not None},
        "seed": seed,
        "strategy": strategy.value,
        "rules": _validated_rules(rule or ()),
        **({"libraries": library} if library else {}),
    }
    server_url = find_server(url, token)
    job_texts = {
        "name": name,
        "note": note,
        "tags": tag,
        "window": window,
        "webhook": _webhook(webhook, webhook_secret),
    }
    if server_url is None:
        _check_local(target, job_texts)
        if library:
            load_extra("loopwright.cli.tuning.tune_here", TUNE_HERE).check_libraries(library)
    elif library:
        raise InputError(
            f"--library runs without a server, and the one at {server_url} was found: stop it, or"
            " call lw.tune(libraries=...) in Python"
        )
    warm_start = not no_warm_start
    if len(texts) > 1:
        several = Several(texts, weight or None, target, options, job_texts)
        tune_several(several, warm_start=warm_start, url=server_url, token=token, as_json=as_json)
        return
    search = Search(texts[0], target, options, job_texts)
    if shape_ranges:
        tune_shapes(
            search,
            shape_ranges,
            warm_start=warm_start,
            url=server_url,
            token=token,
            output=output,
            as_json=as_json,
        )
        return
    _tune_one(
        search, warm_start=warm_start, url=server_url, token=token, output=output, as_json=as_json
    )


def _check_number(
    texts: Sequence[str],
    weights: Sequence[float] | None,
    ranges: Sequence[str] | None,
    output: Path | None,
) -> None:
    """Refuse options that do not fit the number of workloads, and a file that can't be written."""
    if output is not None and not output.parent.is_dir():
        raise InputError(f"the kernel cannot be written to {output}: the directory does not exist")
    if output is not None:
        try:
            check_suffix(output)
        except ArtifactError as error:
            raise InputError(str(error)) from None
    if len(texts) == 1:
        if weights:
            raise InputError("--weight requires several workloads")
        return
    for option, value in (("--output", output), ("--range", ranges)):
        if value:
            raise InputError(f"{option} accepts one workload: tune them one at a time")


def _tune_one(
    search: Search,
    *,
    warm_start: bool,
    url: str | None,
    token: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    func = to_func(search.workload)
    if symbolic_vars(func):
        names = " ".join(f"--range {var.name}=1:512" for var in symbolic_vars(func))
        raise InputError(f"{func.name}: {symbolic_problem(func)}, or tune all sizes with {names}")
    if url is None:
        tune_here = load_extra("loopwright.cli.tuning.tune_here", TUNE_HERE)
        outcome: TuneOutcome = tune_here.tune_one_here(search, warm_start=warm_start)
    else:
        with Client(url, token) as client:
            outcome = _tune_there(client, search, warm_start=warm_start)
    if output is not None:
        schedule = outcome.trace.apply_to(func)
        compile_kernel(schedule, Target(outcome.target)).save(output)
    if as_json:
        print_json(outcome.to_json())
    else:
        _show(outcome, search.workload)
    if outcome.was_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _check_local(target: str, job_texts: Mapping[str, object]) -> None:
    """Refuse what only a server can do: it stores jobs, and knows the GPUs of its workers."""
    complete_target(target, host_labels)
    if any(job_texts.values()):
        raise InputError(
            "--name, --note, --tag, --window and --webhook require a server, which stores the job"
        )


def _webhook(url: str | None, secret: str | None) -> Mapping[str, str] | None:
    if url is None:
        return None
    if secret is None:
        raise InputError(
            "--webhook requires a secret that signs the event, in $LOOPWRIGHT_WEBHOOK_SECRET: "
            "whsec_ and the output of `openssl rand -base64 32`"
        )
    return {"url": url, "secret": secret}


def _validated_rules(names: Sequence[str]) -> Sequence[str] | None:
    """Validate rule names; None means all rules."""
    for name in names:
        if name not in built_in_rules():
            rule_names = ", ".join(built_in_rules())
            raise InputError(f"unknown schedule rule {name!r}; known rules: {rule_names}")
    return names or None


def _tune_there(client: Client, search: Search, *, warm_start: bool) -> TuneOutcome:
    handle = client.tune(
        search.workload,
        target=search.target,
        warm_start=warm_start,
        **search.options,
        **search.texts,
    )
    err_console.print(f"job {handle.id}", highlight=False)
    try:
        job = handle.wait()
    except KeyboardInterrupt:
        err_console.print(
            f"the job continues; see: loopwright trials {handle.id} --url {client.url}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if job.best_secs is None:
        raise JobFailedError(f"job {job.id} is {job.state}: no candidate ran")
    best = client.best(search.workload, target=job.target)
    return TuneOutcome(
        job.workload_name,
        job.shape,
        job.target,
        str(job.id),
        job.num_measured,
        job.default_time,
        job.best_time,
        job.stop_reason or "",
        best.trace,
        job.baseline,
        space=job.space,
    )


def _show(outcome: TuneOutcome, text: str) -> None:
    default, best = outcome.default, outcome.best
    speedup = outcome.speedup
    faster = "" if speedup is None else f"{times_faster(*speedup)} over the default, "
    assert best.secs is not None, "a search without a best fails"
    func = to_func(text)
    dtype = multiplied_dtype(func)
    are_integers = dtype is not None and is_integer(dtype)
    unit = "GOP/s" if are_integers else "GFLOP/s"
    rate = f"{flops(func) / best.secs / 1e9:.4g} {unit}"
    console.print(
        facts(
            {
                "workload": f"{outcome.workload} {outcome.shape or ''}".rstrip(),
                "target": outcome.target,
                "trials": str(outcome.num_measured),
                "finished": stop_reason_in_words(outcome.stop_reason),
                "default": labelled(default.secs, default.kind) + between(default.interval),
                "best": f"{labelled(best.secs, best.kind)}{between(best.interval)}"
                f" ({faster}{rate})",
                **({} if outcome.space is None else {"space": outcome.space.text}),
                **against(outcome.baseline),
            }
        )
    )
