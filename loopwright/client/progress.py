"""A progress bar for trials: shown on a terminal or in a notebook, silent everywhere else."""

from __future__ import annotations

import html
import importlib
import time
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from service.wire.times import TimeKind

# A line of a long search is 42 columns wide without the label and the clock, 90 with everything.
_NARROW, _WIDE = 60, 90


class TrialProgress:
    """Shows the number of measured trials of a job, and the best time so far.

    Args:
        label: The name of the workload.
        total: The budget, in trials; None without one.
        show: Whether to draw; by default only on a terminal or in a notebook.
        console: The output; standard error by default, so that output can be piped.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        *,
        show: bool | None = None,
        console: Console | None = None,
    ) -> None:
        console = console or Console(stderr=True)
        is_watched = console.is_terminal or console.is_jupyter
        is_shown = is_watched if show is None else show
        self._bar: _Bar = (
            NotebookBar(label, total, is_shown=is_shown)
            if console.is_jupyter
            else _TerminalBar(label, total, console, is_shown=is_shown)
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(
        self,
        num_measured: int,
        best_secs: float | None,
        kind: TimeKind | None,
        speedup: float | None,
    ) -> None:
        """Draw the current state of the job.

        Args:
            num_measured: The number of measured trials.
            best_secs: The best time so far; None without a correct trial.
            kind: The statistic of that time.
            speedup: The speed-up over the default schedule, if known.
        """
        note = "measuring"
        if best_secs is not None:
            note = f"best {format_secs(best_secs)} {kind}"
            if speedup is not None:
                note += f", {format_ratio(speedup)}"
        self.draw(num_measured, note)

    def draw(self, num_measured: int, note: str) -> None:
        """Draw a number of trials, and a note on them."""
        self._bar.draw(num_measured, note)


class _Bar(Protocol):
    """Draws a number of trials and a note."""

    def start(self) -> None: ...

    def draw(self, num_measured: int, note: str) -> None: ...

    def stop(self) -> None: ...


class _TerminalBar:
    """A line of a terminal."""

    def __init__(self, label: str, total: int | None, console: Console, *, is_shown: bool) -> None:
        self._progress = Progress(*_columns(console.width), console=console, disable=not is_shown)
        self._task = self._progress.add_task(escape(label), total=total, note="waiting")

    def start(self) -> None:
        self._progress.start()

    def draw(self, num_measured: int, note: str) -> None:
        self._progress.update(self._task, completed=num_measured, note=note)

    def stop(self) -> None:
        self._progress.stop()


def _columns(width: int) -> list[ProgressColumn]:
    """Return the columns that fit a terminal of that width: rich would cut off numbers instead."""
    counted, note = MofNCompleteColumn(), TextColumn("{task.fields[note]}")
    if width < _NARROW:
        return [counted, note]
    label, clock = TextColumn("[bold]{task.description}"), TimeElapsedColumn()
    if width < _WIDE:
        return [label, counted, note, clock]
    share = TaskProgressColumn(show_speed=True, text_format="[cyan]{task.percentage:>3.0f}%")
    return [label, BarColumn(bar_width=24), counted, share, note, clock]


class NotebookBar:
    """An output of a notebook's cell that is redrawn in place.

    Rich requires `ipywidgets` for that, and draws nothing until the end without them.
    """

    def __init__(self, label: str, total: int | None, *, is_shown: bool) -> None:
        self._label = label
        self._total = total
        self._is_shown = is_shown
        self._num_measured, self._note = 0, "waiting"
        self._started_at = time.monotonic()
        self._handle: Any = None

    def start(self) -> None:
        """Create the output."""
        self._started_at = time.monotonic()
        if self._is_shown:
            ipython = importlib.import_module("IPython.display")
            self._handle = ipython.display(self, display_id=True)

    def draw(self, num_measured: int, note: str) -> None:
        """Redraw it, if anything has changed."""
        is_new = (num_measured, note) != (self._num_measured, self._note)
        self._num_measured, self._note = num_measured, note
        if is_new and self._handle is not None:
            self._handle.update(self)

    def stop(self) -> None:
        """Draw the final state."""
        if self._handle is not None:
            self._handle.update(self)

    def __repr__(self) -> str:
        secs = int(time.monotonic() - self._started_at)
        return f"{self._label}  {self._counted}  {self._note}  {secs // 60}:{secs % 60:02d}"

    @property
    def _counted(self) -> str:
        """The number of trials, and their limit."""
        return str(self._num_measured) + ("" if self._total is None else f"/{self._total}")

    def _repr_html_(self) -> str:
        secs = int(time.monotonic() - self._started_at)
        # Without a limit, it only shows that something happens.
        at = "" if self._total is None else f' value="{self._num_measured}" max="{self._total}"'
        bar = f" <progress{at}></progress>"
        return (
            f"<div><b>{html.escape(self._label)}</b>"
            f"{bar} {self._counted} &nbsp; {html.escape(self._note)}"
            f" &nbsp; {secs // 60}:{secs % 60:02d}</div>"
        )


def format_secs(secs: float) -> str:
    """Return a time with its unit, in three to four digits: `1.23 ms`, `45.6 us`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if secs >= scale:
            return f"{secs / scale:.4g} {unit}"
    return f"{secs / 1e-6:.4g} us"


def format_ratio(ratio: float) -> str:
    """Return a speed-up: `2.9x`, `41x`."""
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"
