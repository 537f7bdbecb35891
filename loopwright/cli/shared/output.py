"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from loopwright.client.progress import format_ratio, format_secs
from loopwright.tables import FittedTable
from service.wire.models import BaselineRead
from service.wire.times import TimeKind

# Wider than any table.
_ENOUGH = 1000

# In a message, the `:b:` of a text such as `M=a:b:c` is no emoji.
console = Console(emoji=False)
err_console = Console(stderr=True, emoji=False)


def print_json(value: BaseModel | Iterable[BaseModel] | dict[str, Any]) -> None:
    """Print a model, a list of models or an object as JSON, for other programs to read."""
    match value:
        case BaseModel():
            plain: Any = value.model_dump(mode="json")
        case dict():
            plain = value
        case _:
            plain = [item.model_dump(mode="json") for item in value]
    # Rich would wrap long lines to the width of a terminal.
    print(json.dumps(plain, indent=2))  # noqa: T201


@contextmanager
def waiting(operation: str) -> Iterator[None]:
    """Show an operation in progress and its elapsed time, on a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=err_console, transient=True, disable=not err_console.is_terminal
    ) as progress:
        progress.add_task(operation, total=None)
        yield


def facts(rows: dict[str, str]) -> Table:
    """Return a borderless table of names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def print_table(table: Table) -> None:
    """Print a table without truncation, so that its cells can be copied.

    On a terminal the table fits the width. In a pipe or a file each row is one line.
    """
    for column in table.columns:
        column.no_wrap = True
    table.box = SIMPLE_HEAD
    if console.is_terminal:
        console.print(FittedTable(table))
    else:
        Console(width=_ENOUGH).print(table)


def secs(value: float | None) -> str:
    """Return a time for a table."""
    return "-" if value is None else format_secs(value)


def labelled(value: float | None, kind: TimeKind | None) -> str:
    """Return a time for a table, with the name of its statistic."""
    return "-" if value is None else f"{format_secs(value)} {kind}"


def between(interval: tuple[float, float] | None) -> str:
    """Return the interval of a confirmed time, as a suffix of the time."""
    return "" if interval is None else f" [{secs(interval[0])} to {secs(interval[1])}]"


def times_faster(speedup: float | None, kind: TimeKind | None) -> str:
    """Return the speed-up over the default schedule, with the name of its statistic."""
    return "-" if not speedup else f"{format_ratio(speedup)} {kind}"


def size(size_bytes: int) -> str:
    """Return a size of memory for a table."""
    if size_bytes < 1 << 10:
        return f"{size_bytes} B"
    unit, scale = ("KiB", 1 << 10) if size_bytes < 1 << 20 else ("MiB", 1 << 20)
    return f"{size_bytes / scale:.4g} {unit}"


def moment(instant: datetime | None) -> str:
    """Return a time of day in the reader's time zone."""
    return "-" if instant is None else f"{instant.astimezone():%Y-%m-%d %H:%M:%S}"


def against(baseline: BaselineRead | None) -> dict[str, str]:
    """Return a line that compares a kernel with a library, if one was timed."""
    if baseline is None:
        return {}
    between = ""
    if baseline.interval is not None:
        low, high = baseline.interval
        between = f" [{low:.3g} to {high:.3g}]"
    rows = {f"vs {baseline.version}": f"{baseline.verdict_in_words}{between}"}
    if (how := how_it_ran(baseline)) != "":
        rows["library"] = how
    return rows


def how_it_ran(baseline: BaselineRead) -> str:
    """Return a library's kernels, its setting, and its share of the peak."""
    kernels = f"{baseline.kernel_set} kernels" if baseline.kernel_set else ""
    peak = "" if baseline.share_of_peak is None else f"{baseline.share_of_peak:.0%} of peak"
    return ", ".join(filter(None, (kernels, baseline.setting, peak)))
