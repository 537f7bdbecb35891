"""`loopwright inspect`: facts of a kernel that never runs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

import loopwright as lw
from loopwright.cli.main import app
from loopwright.cli.shared.output import console

TARGET = "cpu -mcpu=znver4 -num-cores=1"


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *args])


def test_the_facts_of_a_kernel_fit_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_width", 40)  # "width" has no way back to None
    result = run("matmul:32,32,32:float32", "--target", TARGET)
    assert result.exit_code == 0, result.output
    assert "LLVM IR" in result.output
    assert max(map(len, result.output.splitlines())) <= 40


def test_json_has_the_whole_inspection() -> None:
    result = run("matmul:32,32,32:float32", "--target", TARGET, "--json")
    func = lw.ops.from_spec("matmul:32,32,32:float32")
    assert json.loads(result.output) == lw.inspect(func, TARGET).to_json()


def test_texts_are_printed_as_they_are() -> None:
    result = run("matmul:32,32,32:float32", "--target", TARGET, "--source", "--assembly")
    inspection = lw.inspect(lw.ops.from_spec("matmul:32,32,32:float32"), TARGET)
    assert inspection.source.text in result.output
    assert inspection.assembly.text.strip() in result.output


def test_an_unknown_target_is_refused() -> None:
    result = run("matmul:32,32,32:float32", "--target", "abacus")
    assert result.exit_code == 2
    assert "unknown target kind 'abacus'" in result.output
