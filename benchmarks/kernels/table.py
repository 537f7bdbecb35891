"""The table of a run, for a terminal or as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rich.box import MARKDOWN, SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.kernels.results import (
    Change,
    Ratio,
    Row,
    against_best,
    best_peer,
    geometric_mean,
    ordered_backends,
    rate,
    ratio,
    share,
)
from benchmarks.peers.environments import PEERS
from loopwright.tables import FittedTable

_ORDER = ("default", "proposed", "tuned", *(peer.name for peer in PEERS))


def print_rows(title: str, rows: Mapping[str, Row], *, markdown: bool = False) -> None:
    """Print rates, the share of the ceiling, and the ratio to the best library."""
    backends = [name for name in ordered_backends(rows, _ORDER) if name != "ceiling"]
    head = [
        "workload",
        "unit",
        *backends,
        "ceiling",
        "% of it",
        "best peer",
        "tuned/best",
        "middle half",
    ]
    lines = [_line(name, row, backends) for name, row in rows.items()]
    ratios = [found for row in rows.values() if (found := against_best(row)) is not None]
    mean = geometric_mean(found.median for found in ratios)
    print_table(title, head, lines, left=(0, 1, len(head) - 3), markdown=markdown)
    if mean is not None:
        worst = min(found.median for found in ratios)
        print(
            f"geometric mean of {len(ratios)} ratios to the best peer: {mean:.3f},"
            f" the lowest {worst:.2f}"
        )
    proposed = sorted(
        found.median
        for row in rows.values()
        if (found := ratio(row, "proposed", "tuned")) is not None
    )
    if proposed:
        tenth = proposed[(len(proposed) - 1) // 10]
        print(
            f"first proposals, without trials: {geometric_mean(proposed):.3f} of the rate of tuned"
            f" kernels, the worst tenth at most {tenth:.2f}"
        )


def print_changes(found: Sequence[Change]) -> None:
    """Print the changes of a regression check."""
    head = ["workload", "then", "now", "change", "noise", ""]
    lines = []
    for change in found:
        relative = change.now / change.before - 1 if change.now and change.before else None
        lines.append(
            [
                change.name,
                _number(change.before),
                _number(change.now),
                "" if relative is None else f"{100 * relative:+.0f}%",
                f"{100 * change.noise:.0f}%",
                _verdict(change),
            ]
        )
    print_table("tuned kernels against NumPy, then and now", head, lines, left=(0, 5))


def print_table(
    title: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    left: Sequence[int],
    markdown: bool = False,
) -> None:
    """Print a table whose columns are right-aligned, except for those in `left`."""
    table = Table(title=None if markdown else title, box=MARKDOWN if markdown else SIMPLE_HEAD)
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number in left else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 220).print(
        table if markdown else FittedTable(table)
    )


def _line(name: str, row: Row, backends: Sequence[str]) -> list[str]:
    cells = [name, str(row["unit"])]
    for backend in backends:
        entry = row["backends"].get(backend, {})
        failed = "-" if entry.get("is_absent") else "failed"
        cells.append(failed if "error" in entry else _number(rate(row, backend)))
    percent = share(row)
    return [
        *cells,
        _number(rate(row, "ceiling")),
        "" if percent is None else f"{percent:.0f}",
        best_peer(row) or "",
        *_ratio(against_best(row)),
    ]


def _ratio(found: Ratio | None) -> tuple[str, str]:
    return (
        ("", "") if found is None else (f"{found.median:.2f}", f"{found.low:.2f}-{found.high:.2f}")
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _verdict(change: Change) -> str:
    if change.error:
        return f"failed: {change.error}"
    if change.before is None:
        return "new"
    return "SLOWER" if change.is_slower else ""
