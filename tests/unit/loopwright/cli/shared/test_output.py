"""Output of commands."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from rich.table import Table

from loopwright.cli.shared import output
from service.wire.models import Event


def table() -> Table:
    shown = Table("id", "workload")
    shown.add_row("0" * 36, "matmul" * 30)
    return shown


def test_a_piped_table_has_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(table())
    lines = [line for line in capsys.readouterr().out.splitlines() if "matmul" in line]
    assert len(lines) == 1
    assert "matmul" * 30 in lines[0]


def test_json_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    event = Event(
        id=1, kind="created", at=datetime(2026, 1, 1, tzinfo=UTC), payload={"a": "b" * 500}
    )
    output.print_json(event)
    assert json.loads(capsys.readouterr().out)["payload"] == {"a": "b" * 500}
    output.print_json([event, event])
    assert [e["id"] for e in json.loads(capsys.readouterr().out)] == [1, 1]
    output.print_json({"trials": 4})
    assert json.loads(capsys.readouterr().out) == {"trials": 4}


def test_what_is_missing_is_a_dash() -> None:
    assert output.secs(None) == "-"
    assert output.moment(None) == "-"
    assert output.labelled(None, None) == "-"
    assert output.times_faster(None, None) == "-"
    assert output.between(None) == ""
    assert output.against(None) == {}


def test_times_have_units() -> None:
    assert output.secs(0.0025) == "2.5 ms"
    assert output.between((1e-3, 2e-3)) == " [1 ms to 2 ms]"
