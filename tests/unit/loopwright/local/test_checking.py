from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compiler.driver import build
from compiler.ir.interpret.oracle.oracle import OracleError
from compiler.script import parse_module
from loopwright.cli.main import app
from loopwright.local import checking
from loopwright.local.checking import check_script, find_scripts

ADD = """
@T.prim_func
def add(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
"""
TILED = ADD.replace("for i, j in T.grid(8, 4):", "for i, j in T.grid(4, 8):").replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i * 2 + j // 4)\n            vj = T.axis.spatial(4, j % 4)",
)

CALLS = f"""
@I.ir_module
class Module:{ADD.replace(chr(10), chr(10) + "    ")}
    @T.prim_func
    def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        Module.add(A, B)
"""
SYMBOLIC = ADD.replace("(8, 4)", '("n", 4)', 1).replace("(8, 4)", "(n, 4)")


def written(tmp_path: Path, **scripts: str) -> Path:
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "compared_with"),
    [(ADD, "oracle"), (CALLS, "oracle"), (TILED, None), (SYMBOLIC, "oracle")],
)
def test_a_script_that_computes_what_it_says_passes(
    tmp_path: Path, text: str, compared_with: str | None
) -> None:
    found = check_script(written(tmp_path, main=text) / "main.py")
    assert found.failed is None
    (func,) = found.functions
    assert func.max_error is not None
    assert func.max_error < 1e-6
    assert compared_with in (None, func.compared_with)


def test_a_script_that_is_none_fails_with_the_place(tmp_path: Path) -> None:
    found = check_script(written(tmp_path, main=ADD.replace("A[vi", "Q[vi")) / "main.py")
    assert found.failed == "parse"
    assert "main.py:7:25: unknown name Q" in (found.reason or "")


def test_a_file_that_is_no_text_fails(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_bytes(b"\xff\xfe")
    assert check_script(path).failed == "read"


def test_a_wrong_kernel_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = parse_module(ADD.replace("+ 1.0", "+ 2.0")).functions[0]
    monkeypatch.setattr(checking, "build", lambda _: build(other))
    found = check_script(written(tmp_path, main=ADD) / "main.py")
    assert found.failed == "compare"
    assert "B[" in (found.reason or "")


def test_a_bug_of_ours_fails_one_script_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(checking, "build", broken)
    found = check_script(written(tmp_path, main=ADD) / "main.py")
    assert found.failed == "build"
    assert "internal error: KeyError" in (found.reason or "")


def test_a_program_that_is_too_large_to_evaluate_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_LARGEST", 10)

    def refuse(*_: object) -> None:
        raise OracleError("no oracle")

    monkeypatch.setattr(checking, "check_case", refuse)
    found = check_script(written(tmp_path, main=ADD) / "main.py")
    assert found.failed is None
    assert "no oracle" in (found.functions[0].not_compared or "")


def test_scripts_are_found_in_folders(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    (tmp_path / ".hidden").mkdir()
    inner.mkdir()
    names = ["a.py", "b.script", "c.txt", "inner/d.tvmscript", ".hidden/e.py"]
    for name in names:
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in find_scripts([tmp_path, tmp_path])]
    assert found == ["a.py", "b.script", "inner/d.tvmscript"]
    with pytest.raises(FileNotFoundError):
        find_scripts([tmp_path / "none"])


def test_the_command_reports_each_file_and_fails_if_one_does(tmp_path: Path) -> None:
    folder = str(written(tmp_path, good=ADD, wrong="x = 1\n"))
    ran = CliRunner().invoke(app, ["check", folder])
    assert ran.exit_code == 1
    assert "good.py" in ran.stdout
    assert "expected a function with @T.prim_func" in ran.stdout
    assert "1 ok, 1 failed" in ran.stdout
    as_json = json.loads(CliRunner().invoke(app, ["check", folder, "--json"]).stdout)
    assert as_json["summary"] == {"passed": 1, "failed": 1}
    assert CliRunner().invoke(app, ["check", str(tmp_path / "good.py")]).exit_code == 0
    assert CliRunner().invoke(app, ["check", str(tmp_path / "none")]).exit_code == 2
