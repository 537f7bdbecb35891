from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import report


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> list[str]:
    ran: list[str] = []

    def load(name: str) -> SimpleNamespace:
        return SimpleNamespace(main=lambda: ran.append(name.rpartition(".")[2]))

    monkeypatch.setattr(importlib, "import_module", load)
    monkeypatch.setattr(sys, "argv", ["benchmarks", *args])
    command.main()
    return ran


def test_all_benchmarks_run_unless_some_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == list(command.NAMES)
    assert run(monkeypatch, "language") == ["language"]


def test_each_benchmark_can_be_run() -> None:
    assert {"compile_time", "trial_rate"} <= set(command.NAMES)
    for name in command.NAMES:
        path = command.MODULES[name].removeprefix("benchmarks.").replace(".", "/")
        text = (Path(command.__file__).parent / f"{path}.py").read_text()
        assert "def main(" in text, name


def test_an_unknown_benchmark_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "languages")
    assert "no benchmark is called languages; there are compile_time" in capsys.readouterr().err


def test_a_report_keeps_every_sample_and_where_it_was_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    metric = report.Metric("speed", "m/s", (1.0, 2.0, 3.0, 4.0, 10.0), goal=">= 1")
    report.report("walking", [metric])
    written = json.loads((tmp_path / "results" / "walking.json").read_text())
    (kept,) = written["metrics"]
    assert (kept["median"], kept["min"], kept["max"]) == (3.0, 1.0, 10.0)
    assert kept["spread"] == pytest.approx(2 / 3)
    assert kept["samples"] == [1.0, 2.0, 3.0, 4.0, 10.0]
    assert {"machine", "versions", "commit", "at"} <= set(written)
    assert written["machine"]["target"].startswith("cpu -mcpu=")


def test_one_sample_has_no_spread() -> None:
    assert report.Metric("speed", "m/s", (1.0,)).spread == 0.0
