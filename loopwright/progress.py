"""A progress bar for trials: shown on a terminal or in a notebook, silent everywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


class TrialProgress:
    """Shows how many trials of a job are measured, and the best time so far.

    Args:
        label: What is tuned.
        total: The budget, in trials.
        show: Whether to draw; by default only where somebody looks (a terminal, a notebook).
        console: Where to draw; standard error by default, so that output can be piped.
    """

    def __init__(
        self,
        label: str,
        total: int,
        *,
        show: bool | None = None,
        console: Console | None = None,
    ) -> None:
        console = console or Console(stderr=True)
        is_watched = console.is_terminal or console.is_jupyter
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TaskProgressColumn(show_speed=True, text_format="[cyan]{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not (is_watched if show is None else show),
        )
        self._task = self._progress.add_task(label, total=total, note="waiting")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def update(
        self, num_measured: int, best_secs: float | None, default_secs: float | None
    ) -> None:
        """Draw where the job stands; seconds are none as long as nothing ran."""
        note = "measuring"
        if best_secs is not None:
            note = f"best {format_secs(best_secs)}"
            if default_secs is not None and best_secs > 0:
                note += f", {format_ratio(default_secs / best_secs)} the default"
        self._progress.update(self._task, completed=num_measured, note=note)


def format_secs(secs: float) -> str:
    """Return a time with its unit, in three to four digits: `1.23 ms`, `45.6 us`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if secs >= scale:
            return f"{secs / scale:.4g} {unit}"
    return f"{secs / 1e-6:.4g} us"


def format_ratio(ratio: float) -> str:
    """Return a speed-up: `2.9x`, `41x`."""
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"
