# A signature of the dialect holds strings that are no quoted types, which linters take them for.
# ruff: noqa: F821, N805, UP037
from __future__ import annotations

from pathlib import Path

import pytest

from compiler.ir.nodes import IRModule, PrimFunc
from compiler.ir.structural import structural_equal
from compiler.script import ScriptError, parse
from loopwright.script import T, ir_module

MM_RELU = Path(__file__).parents[3] / "examples" / "mm_relu.script"


@ir_module
class Scaled:
    @T.prim_func
    def scale(A: T.Buffer[(8,), "float32"], B: T.Buffer[(8,), "float32"]) -> None:  # type: ignore[name-defined]
        for i in T.serial(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)


def test_a_decorated_function_is_the_program_of_its_text() -> None:
    module: object = Scaled
    assert isinstance(module, IRModule)
    (func,) = module.functions
    expected = parse(
        "@T.prim_func\n"
        'def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
        "    for i in range(8):\n"
        '        with T.sblock("B"):\n'
        "            vi = T.axis.spatial(8, i)\n"
        "            B[vi] = A[vi] * T.float32(2)\n"
    )
    assert structural_equal(func, expected)
    assert func.name == "scale"


def test_the_text_of_the_demo_is_a_program() -> None:
    func = parse(MM_RELU.read_text(encoding="utf-8"))
    assert isinstance(func, PrimFunc)
    assert [param.name for param in func.params] == ["A", "B", "C"]


def test_a_program_shows_itself_as_text_that_is_read_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    func = parse(MM_RELU.read_text(encoding="utf-8"))
    func.show()
    shown = capsys.readouterr().out
    assert shown == func.script()
    assert structural_equal(parse(shown), func)


def test_an_error_names_the_file_and_the_line_that_an_editor_shows() -> None:
    with pytest.raises(ScriptError, match="no_such_name") as caught:

        @T.prim_func
        def wrong(A: T.Buffer((8,), "float32")) -> None:  # type: ignore[valid-type]
            for i in T.serial(8):
                A[i] = no_such_name  # type: ignore[name-defined]

    assert caught.value.filename == __file__
    shown = Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.line - 1]
    assert "A[i] = no_such_name" in shown


def test_a_function_without_a_text_is_refused() -> None:
    space: dict[str, object] = {}
    exec("def typed_at_a_prompt(A): pass", space)
    function = space["typed_at_a_prompt"]
    assert callable(function)
    with pytest.raises(ValueError, match="text of typed_at_a_prompt cannot be read"):
        T.prim_func(function)
