"""`loopwright tune matmul:M,512,512 --range M=1:512`: a few kernels for all sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.output import console, err_console, print_json, print_table, secs
from loopwright.cli.shared.where import TUNE_HERE
from loopwright.cli.tuning.outcome import Search
from loopwright.client.client import Client
from loopwright.client.shapes import ShapesHandle
from loopwright.errors import JobFailedError
from loopwright.extras import load_extra
from service.wire.shape_reads import ShapesRead, ShapeTimeRead

if TYPE_CHECKING:  # it requires the extra `server`
    from loopwright.local.shapes_result import ShapesResult
    from tuner.shapes.shape_time import ShapeTime

Ranges = dict[str, tuple[int, int]]

_RANGE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([0-9]{1,10})\s*:\s*([0-9]{1,10})\s*")


@dataclass(frozen=True)
class ShapesOutcome:
    """The result of a search over ranges, here or on a server.

    Attributes:
        shapes_id: The id on the server.
        times: The times at all sizes, with the fields of `lw.ShapeTime`.
    """

    workload: str
    target: str
    shapes_id: str | None
    num_measured: int
    kernels: Sequence[Mapping[str, Any]]
    times: Sequence[ShapeTime | ShapeTimeRead]
    loss: float | None
    dispatcher: str
    module: str


def parse_ranges(texts: Sequence[str]) -> Ranges:
    """Return the ranges of extents by their names, from texts such as `M=1:512`.

    Raises:
        InputError: If one has another form, or a name comes twice.
    """
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
    search: Search,
    ranges: Ranges,
    *,
    warm_start: bool,
    url: str | None,
    token: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Tune a symbolic program over ranges; print the result, and write its artifact."""
    was_interrupted = False
    if url is None:
        tune_here = load_extra("loopwright.cli.tuning.tune_here", TUNE_HERE)
        try:
            result, was_interrupted = tune_here.tune_ranges_here(
                search, ranges, warm_start=warm_start
            )
        except ValueError as error:  # ranges that do not fit the program
            raise InputError(str(error)) from error
        outcome, artifact = _of_result(result), result.artifact if output is not None else None
    else:
        with Client(url, token) as client:
            handle = client.tune(
                search.workload,
                ranges=ranges,
                target=search.target,
                warm_start=warm_start,
                **search.options,
                **search.texts,
            )
            outcome = _of_read(_wait(client, handle))
            artifact = handle.artifact() if output is not None else None
    if output is not None and artifact is not None:
        artifact.save(output)
    if as_json:
        print_json(_to_json(outcome))
    else:
        _show(outcome)
    if was_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _wait(client: Client, handle: ShapesHandle) -> ShapesRead:
    err_console.print(f"search over ranges {handle.id}", highlight=False)
    try:
        shapes = handle.wait()
    except KeyboardInterrupt:
        err_console.print(
            f"the search continues; see: {client.url}/shapes/{handle.id}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if shapes.dispatcher is None:
        raise JobFailedError(f"search over ranges {shapes.id} is {shapes.state}: it has no kernels")
    return shapes


def _of_result(result: ShapesResult) -> ShapesOutcome:
    return ShapesOutcome(
        result.func.name,
        result.target.name,
        None,
        sum(map(len, result.trials)),
        [{"sketch": k.sketch, "trace": k.trace.to_json()} for k in result.kernels],
        result.times,
        result.loss,
        result.dispatcher,
        result.module.script(),
    )


def _of_read(shapes: ShapesRead) -> ShapesOutcome:
    assert shapes.dispatcher is not None, "it has kernels"
    assert shapes.module is not None, "it has kernels"
    return ShapesOutcome(
        shapes.name,
        shapes.target,
        str(shapes.id),
        shapes.num_measured,
        [kernel.model_dump(mode="json") for kernel in shapes.kernels],
        shapes.times,
        shapes.loss,
        shapes.dispatcher,
        shapes.module,
    )


def _to_json(outcome: ShapesOutcome) -> dict[str, Any]:
    return {
        "workload": outcome.workload,
        "target": outcome.target,
        "shapes": outcome.shapes_id,
        "num_measured": outcome.num_measured,
        "kernels": list(outcome.kernels),
        "times": [
            {
                "sizes": dict(time.sizes),
                "kernel": time.kernel,
                "run_secs": time.run_secs,
                "best_secs": time.best_secs,
                "tuned_secs": time.tuned_secs,
                "loss": time.loss,
            }
            for time in outcome.times
        ],
        "loss": outcome.loss,
        "dispatcher": outcome.dispatcher,
        "module": outcome.module,
    }


def _show(outcome: ShapesOutcome) -> None:
    console.print(outcome.dispatcher, highlight=False, markup=False, soft_wrap=True)
    table = Table(*outcome.times[0].sizes, "kernel", "time", "tuned alone", "loss")
    for time in outcome.times:
        table.add_row(*map(str, time.sizes.values()), *_cells(time))
    print_table(table)
    num_kernels = len(outcome.kernels)
    kernels = f"{num_kernels} kernel{'s' if num_kernels > 1 else ''}"
    loss = "" if outcome.loss is None else f", mean loss {outcome.loss:+.1%}"
    console.print(
        f"{outcome.workload}: {kernels} after {outcome.num_measured} trials{loss}", highlight=False
    )


def _cells(time: ShapeTime | ShapeTimeRead) -> tuple[str, ...]:
    loss = "" if time.loss is None else f"{time.loss:+.1%}"
    alone = "" if time.tuned_secs is None else secs(time.tuned_secs)
    return str(time.kernel), secs(time.run_secs), alone, loss
