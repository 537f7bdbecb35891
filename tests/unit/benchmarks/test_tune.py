"""Tuning the table of shapes: failures are seen, and a run continues where it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.model_shapes import tune
from benchmarks.model_shapes.shapes import ModelShape
from benchmarks.model_shapes.tune import (
    LIMITS,
    ShapeResult,
    append_result,
    main,
    mismatch_of,
    read_results,
    summary,
    tune_shape,
)
from compiler.ops.spec import from_spec
from service.coordinator.measurer import WorkerMeasurer
from workers.child.runner import ChildRunner


def test_a_winner_that_computes_something_else_is_wrong() -> None:
    func = from_spec("relu:37")
    assert mismatch_of(func, func) is None
    mismatch = mismatch_of(func, from_spec("sigmoid:37"))
    assert mismatch is not None
    assert mismatch.startswith("B[")


def test_a_tuned_shape_has_a_correct_winner() -> None:
    with ChildRunner(LIMITS) as runner:
        result = tune_shape("relu:37", 2, 0, WorkerMeasurer(runner))
    assert result.is_correct
    assert result.default_secs is not None
    assert result.best_secs is not None
    assert result.best_secs <= result.default_secs
    assert result.failures == []


def test_a_run_continues_with_the_results_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes = tuple(ModelShape("model", "layer", spec) for spec in ("relu:5", "relu:7"))
    monkeypatch.setattr(tune, "model_shapes", lambda: shapes)
    monkeypatch.setattr(tune, "RESULTS", tmp_path)
    path = tmp_path / "model_shapes-3-1.jsonl"
    wrong = ShapeResult(spec="relu:5", sketch="spatial", best_secs=1.0, mismatch="B[0] is 77")
    append_result(path, wrong)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"spec": "relu:7", "sk')  # a run was killed while it wrote
    assert main(["--shapes", "2", "--trials", "1", "--seed", "3"]) == 1
    results = read_results(path)
    assert results["relu:5"] == wrong
    assert results["relu:7"].is_correct
    printed = capsys.readouterr().out
    assert "relu:5" not in printed
    assert "correct winners: 1\nwrong winners: 1\n" in printed


def test_the_summary_counts_failed_trials_by_error() -> None:
    results = [
        ShapeResult(spec="a", sketch="x", default_secs=8.0, best_secs=1.0),
        ShapeResult(spec="b", sketch="x", default_secs=2.0, best_secs=1.0),
        ShapeResult(spec="c", failures=["trial 0, default: timeout: too: long"]),
    ]
    text = summary(results, 8)
    assert "3 shapes" in text
    assert "correct winners: 2" in text
    assert "failed trials: 1 timeout" in text
    assert "4.0x" in text


@pytest.mark.parametrize("option", ["--shapes", "--trials"])
def test_numbers_are_positive(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([option, "0"])
    assert "0: expected at least 1" in capsys.readouterr().err
