"""Tables that fit any width."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from loopwright.tables import FittedTable

HEADER = ("job", "state", "workload", "trials", "owner", "best")
ROWS = (
    ("7919e39c-38d7-42f3-9bea", "succeeded", "conv2d 1 x 64 x 56 x 56", "8/8", "", "2.469 ms"),
    ("9ee911d0-e577-405f-8af7", "running", "矩陣 512 x 512", "100/200", "", "-"),
)


def drawn(width: int) -> list[str]:
    table = Table(*HEADER)
    for row in ROWS:
        table.add_row(*row)
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(FittedTable(table))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_cut(width: int) -> None:
    lines = drawn(width)
    assert max(map(cell_len, lines)) <= width
    for cell in (*HEADER[:4], *ROWS[0], *ROWS[1]):
        assert any(cell in line for line in lines), cell


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    [line] = [line for line in drawn(120) if ROWS[0][0] in line]
    assert all(cell in line for cell in ROWS[0])


def test_the_lines_of_a_row_are_aligned_with_those_of_the_others() -> None:
    lines = drawn(40)
    assert "owner" not in "".join(lines)  # no job has one
    [header] = [line for line in lines if "trials" in line]
    under = [line for line in lines if "8/8" in line or "100/200" in line]
    at = {header.index("trials"), under[0].index("8/8")}
    assert at == {cell_len(under[1].partition("100/200")[0])}


def test_a_cell_that_is_wider_than_the_terminal_is_folded_and_not_cut() -> None:
    assert ROWS[0][0] in "".join(line.strip() for line in drawn(22))
