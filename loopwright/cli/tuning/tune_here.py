"""`loopwright tune` without a server: search in this process (requires the extra `server`)."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Event

import typer

from compiler.executor.error import UnknownFunctionError
from compiler.target.target import Target
from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.output import err_console
from loopwright.cli.shared.where import say_in_process
from loopwright.cli.tuning.outcome import Search, Several, TuneOutcome, baseline_read
from loopwright.local import tune_result, tuning
from loopwright.local.library_choice import LibraryChoice
from loopwright.local.shapes_result import ShapesResult
from loopwright.workload import to_func
from service.wire.models import SpaceClaimRead
from tuner.loop.budget import StopReason
from tuner.loop.search_result import NothingMeasuredError
from tuner.transfer.shape import shape_of


def check_libraries(names: Collection[str]) -> None:
    """Refuse libraries that no schedule can call here."""
    try:
        LibraryChoice.of(names)
    except (ValueError, UnknownFunctionError) as error:
        raise InputError(f"--library: {error}") from error


def tune_one_here(search: Search, *, warm_start: bool) -> TuneOutcome:
    """Tune one workload; Ctrl-C ends the search with the best schedule so far."""
    say_in_process()
    seen: list[tune_result.Trial] = []
    was_interrupted = False
    try:
        result = tuning.tune(
            search.workload,
            target=search.target,
            warm_start=() if warm_start else None,
            **search.options,
            on_trial=seen.append,
        )
    except KeyboardInterrupt:
        limit = search.options.get("max_trials")
        of_all = "" if limit is None else f" of {limit}"
        measured = f"interrupted after {len(seen)}{of_all} trials"
        result = tune_result.TuneResult(
            to_func(search.workload),
            Target(search.target),
            tuple(sorted(seen, key=lambda trial: trial.number)),
            StopReason.CANCELLED,
        )
        if not seen or not result.best.measurement.ok:
            err_console.print(f"{measured}: no correct candidate yet", highlight=False)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        err_console.print(f"{measured}; the best so far:", highlight=False)
        was_interrupted = True
    return _outcome(result, was_interrupted=was_interrupted)


def tune_several_here(several: Several, *, warm_start: bool) -> list[TuneOutcome]:
    """Tune several workloads that share the trials; Ctrl-C ends the search of all."""
    say_in_process()
    with _ctrl_c() as stopped:
        try:
            results = tuning.tune(
                several.workloads,
                weights=several.weights,
                target=several.target,
                warm_start=() if warm_start else None,
                should_stop=stopped.is_set,
                **several.options,
            )
        except NothingMeasuredError as error:
            err_console.print(f"interrupted: {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    return [
        _outcome(result, was_interrupted=result.stop_reason is StopReason.CANCELLED)
        for result in results
    ]


def tune_ranges_here(
    search: Search, ranges: Mapping[str, tuple[int, int]], *, warm_start: bool
) -> tuple[ShapesResult, bool]:
    """Tune a symbolic program over ranges; Ctrl-C ends the search with what it has found.

    Returns:
        The result, and whether Ctrl-C ended the search.
    """
    say_in_process()
    with _ctrl_c() as stopped:
        try:
            result = tuning.tune(
                search.workload,
                ranges=ranges,
                target=search.target,
                warm_start=() if warm_start else None,
                should_stop=stopped.is_set,
                **search.options,
            )
        except NothingMeasuredError as error:
            err_console.print(f"interrupted: {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    return result, stopped.is_set()


def _outcome(result: tune_result.TuneResult, *, was_interrupted: bool) -> TuneOutcome:
    claim = result.whole_space or result.space_distance
    return TuneOutcome(
        result.func.name,
        shape_of(result.func).in_words(),
        result.target.name,
        None,
        len(result.trials),
        result.default_time,
        result.best.time,
        result.stop_reason.value,
        result.best.trace,
        baseline_read(result.baseline),
        was_interrupted,
        None if claim is None else SpaceClaimRead.model_validate(claim.to_json()),
    )


@contextmanager
def _ctrl_c() -> Iterator[Event]:
    """Let Ctrl-C set an event, to keep the results so far."""
    stopped = Event()
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
