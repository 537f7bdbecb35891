"""Tables that fit any width: a row takes as many lines as its columns need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
_INDENT = 2
_MIN_WIDTH = 20
"""A narrower terminal scrolls: cells of one character a line are unreadable. Chosen."""


class FittedTable:
    """Draws a table on one line a row if it fits, and else each row on several lines.

    Nothing is cut off and columns stay aligned, so that cells can be read and copied. Only a cell
    that is wider than the whole terminal is folded, and empty columns are left out. At 30 columns:

        workload     default  best
          speed-up  created
        ────────────────────────────
        matmul 8x8   2.1 ms  1.2 ms
             1.75x  2026-01-01 12:00
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts for rich to draw."""
        unlimited = options.update(max_width=10_000)
        if console.measure(self._table, options=unlimited).maximum <= options.max_width:
            yield self._table
            return
        if self._table.title:
            yield Text.from_markup(str(self._table.title), style="italic")
        yield from self._rows(console, max(options.max_width, _MIN_WIDTH))

    def _rows(self, console: Console, max_width: int) -> Iterator[RenderableType]:
        columns = [column for column in self._table.columns if any(column.cells)]
        widths = [_width(column, console, max_width - _INDENT) for column in columns]
        lines = _lines(widths, max_width)
        rows = [
            [column.header for column in columns],
            *zip(*(c.cells for c in columns), strict=True),
        ]
        for number, row in enumerate(rows):
            for line_number, line in enumerate(lines):
                grid = Table.grid(padding=(0, _GAP, 0, 0))
                for index in line:
                    # The first cell names its row, which a second line would hide.
                    style = "bold" if number == 0 or index == 0 else ""
                    justify = columns[index].justify
                    grid.add_column(
                        width=widths[index], justify=justify, overflow="fold", style=style
                    )
                grid.add_row(*(row[index] for index in line))
                yield Padding(grid, (0, 0, 0, _INDENT if line_number else 0), expand=False)
            if number == 0:
                yield Rule(style="dim")


def _width(column: Column, console: Console, max_width: int) -> int:
    unlimited = console.options.update(max_width=10_000)
    cells = (column.header, *column.cells)
    return min(max(console.measure(cell, options=unlimited).maximum for cell in cells), max_width)


def _lines(widths: Sequence[int], max_width: int) -> list[list[int]]:
    """Return the indices of the columns on each line, as many as fit."""
    lines: list[list[int]] = [[]]
    used = 0
    for index, width in enumerate(widths):
        if lines[-1] and used + width > max_width:
            lines.append([])
            used = _INDENT
        lines[-1].append(index)
        used += width + _GAP
    return lines
