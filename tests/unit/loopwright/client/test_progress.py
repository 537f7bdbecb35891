from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from loopwright.client.progress import NotebookBar, TrialProgress, format_ratio, format_secs
from service.wire.times import TimeKind


def draw(*, is_terminal: bool, show: bool | None = None) -> str:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=120)
    with TrialProgress("matmul", 8, console=console, show=show) as bar:
        bar.update(0, None, None, None)
        bar.update(8, 1e-3, TimeKind.PROVISIONAL, 41.0)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_sees_trials_and_the_best_so_far() -> None:
    drawn = draw(is_terminal=True)
    assert "8/8" in drawn
    assert "best 1 ms provisional, 41x" in drawn


@pytest.mark.parametrize("width", [42, 60, 80, 120])
def test_a_narrow_terminal_sees_the_numbers_whole(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    with TrialProgress("matmul", 200, console=console) as bar:
        bar.update(200, 0.2362, TimeKind.PROVISIONAL, 1.0)
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert "200/200" in drawn
    assert "best 236.2 ms provisional, 1.00x" in drawn


@pytest.mark.parametrize(("is_terminal", "show"), [(False, None), (True, False)])
def test_nobody_watching_sees_nothing(is_terminal: bool, show: bool | None) -> None:
    assert draw(is_terminal=is_terminal, show=show) == ""


@pytest.mark.parametrize(
    ("secs", "text"), [(1.5, "1.5 s"), (2.3e-3, "2.3 ms"), (4.56e-5, "45.6 us"), (0.0, "0 us")]
)
def test_times_have_a_unit_that_fits(secs: float, text: str) -> None:
    assert format_secs(secs) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.004, "1.00x"), (2.94, "2.9x"), (153.2, "153x")])
def test_ratios_have_as_many_digits_as_they_are_worth(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text


class Cell:
    """What a notebook's cell shows, one version after the other."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, bar: NotebookBar, *, display_id: bool) -> Cell:
        assert display_id
        self.update(bar)
        return self

    def update(self, bar: NotebookBar) -> None:
        self.shown.append(bar._repr_html_())


def test_a_notebook_sees_one_output_that_is_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell()
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    console = Console(file=io.StringIO(), force_jupyter=True)
    with TrialProgress("mat<mul>", 8, console=console) as bar:
        bar.update(0, None, None, None)
        bar.update(4, 1e-3, TimeKind.CONFIRMED, 41.0)
        bar.update(4, 1e-3, TimeKind.CONFIRMED, 41.0)
    assert "waiting" in cell.shown[0]
    assert "measuring" in cell.shown[1]
    last = cell.shown[-1]
    assert "mat&lt;mul&gt;" in last
    assert '<progress value="4" max="8"></progress> 4/8' in last
    assert "best 1 ms confirmed, 41x" in last
    assert len(cell.shown) == 4  # nothing new is nothing drawn
    with TrialProgress("quiet", 8, console=console, show=False) as bar:
        bar.update(1, None, None, None)
    assert len(cell.shown) == 4
