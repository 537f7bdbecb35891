"""`loopwright tune FILE --range M=1:512`: a few kernels and a dispatcher for all sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.output import console, print_json, print_table, secs
from loopwright.cli.shared.where import TUNE_HERE
from loopwright.cli.tuning.outcome import Search
from loopwright.extras import load_extra

if TYPE_CHECKING:  # it requires the extra `server`
    from loopwright.local.shapes_result import ShapesResult, ShapeTime

Ranges = dict[str, tuple[int, int]]

_RANGE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([0-9]{1,10})\s*:\s*([0-9]{1,10})\s*")


def parse_ranges(texts: Sequence[str], url: str | None) -> Ranges:
    """Return the ranges of extents by their names, from texts such as `M=1:512`.

    Raises:
        InputError: If one has another form, or a name comes twice, or a server is named.
    """
    if texts and url is not None:
        raise InputError(
            f"--range tunes in this process, not on the server at {url}: leave out --url and "
            "$LOOPWRIGHT_URL"
        )
    ranges: Ranges = {}
    for text in texts:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise InputError(
                f"--range {text}: expected a symbolic extent with its least and its greatest size, "
                "such as M=1:512"
            )
        name, low, high = match.groups()
        if name in ranges:
            raise InputError(f"--range {text}: {name} already has a range")
        ranges[name] = (int(low), int(high))
    return ranges


def tune_shapes(
    search: Search, ranges: Ranges, *, warm_start: bool, output: Path | None, as_json: bool
) -> None:
    """Tune a script over ranges in this process; print the result, and write its artifact."""
    tune_here = load_extra("loopwright.cli.tuning.tune_here", TUNE_HERE)
    try:
        result, was_interrupted = tune_here.tune_ranges_here(search, ranges, warm_start=warm_start)
    except ValueError as error:  # ranges that do not fit the program
        raise InputError(str(error)) from error
    if output is not None:
        result.artifact.save(output)
    if as_json:
        print_json(_to_json(result))
    else:
        _show(result)
    if was_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _to_json(result: ShapesResult) -> dict[str, Any]:
    return {
        "workload": result.func.name,
        "target": result.target.name,
        "num_measured": sum(map(len, result.trials)),
        "kernels": [{"sketch": k.sketch, "trace": k.trace.to_json()} for k in result.kernels],
        "times": [
            {
                "sizes": dict(time.sizes),
                "kernel": time.kernel,
                "run_secs": time.run_secs,
                "best_secs": time.best_secs,
                "tuned_secs": time.tuned_secs,
                "loss": time.loss,
            }
            for time in result.times
        ],
        "loss": result.loss,
        "dispatcher": result.dispatcher,
        "module": result.module.script(),
    }


def _show(result: ShapesResult) -> None:
    console.print(result.dispatcher, highlight=False, markup=False, soft_wrap=True)
    table = Table(*result.times[0].sizes, "kernel", "time", "tuned alone", "loss")
    for time in result.times:
        table.add_row(*map(str, time.sizes.values()), *_cells(time))
    print_table(table)
    kernels = f"{len(result.kernels)} kernel{'s' if len(result.kernels) > 1 else ''}"
    trials = f"{sum(map(len, result.trials))} trials"
    loss = "" if result.loss is None else f", mean loss {result.loss:+.1%}"
    console.print(f"{result.func.name}: {kernels} after {trials}{loss}", highlight=False)


def _cells(time: ShapeTime) -> tuple[str, ...]:
    loss = "" if time.loss is None else f"{time.loss:+.1%}"
    alone = "" if time.tuned_secs is None else secs(time.tuned_secs)
    return str(time.kernel), secs(time.run_secs), alone, loss
