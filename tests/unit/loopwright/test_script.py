# A signature of the dialect holds strings that are no quoted types, which linters take them for.
# ruff: noqa: F821, N805, UP037
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse
from loopwright.script import I, T, ir_module

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


ROWS = 8
SHAPE = (ROWS, 4)
DTYPE = np.float32
SETTINGS = SimpleNamespace(scale=0.5, with_bias=False, name="scaled")


@T.prim_func(private=True, s_tir=True)
def scaled(A: T.Buffer(SHAPE, "float32"), B: T.Buffer((ROWS, 4), DTYPE)) -> None:  # type: ignore[valid-type]
    for i, j in T.grid(*SHAPE):
        with T.sblock(SETTINGS.name):
            vi = T.axis.spatial(SHAPE[0], i)
            vj = T.axis.spatial(SHAPE[-1], j)
            if SETTINGS.with_bias:
                B[vi, vj] = A[vi, vj] * SETTINGS.scale + 1.0
            else:
                B[vi, vj] = A[vi, vj] * (SETTINGS.scale * 2 + ROWS // 3) - (
                    1.0 if ROWS > 9 else 2.0
                )


def test_sizes_types_and_constants_come_from_the_module() -> None:
    func: object = scaled
    assert isinstance(func, PrimFunc)
    assert structural_equal(
        func,
        parse(
            "@T.prim_func\n"
            'def scaled(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):\n'
            "    for i, j in T.grid(8, 4):\n"
            '        with T.sblock("scaled"):\n'
            '            vi, vj = T.axis.remap("SS", [i, j])\n'
            "            B[vi, vj] = A[vi, vj] * 3.0 - 2.0\n"
        ),
    )


def test_sizes_come_from_the_functions_around() -> None:
    def made(n: int, dtype: str, start: float) -> PrimFunc:
        size = n * 2

        @T.prim_func
        def func(A: T.Buffer((size,), dtype)) -> None:  # type: ignore[valid-type]
            for n in range(size):  # noqa: PLR1704 - the loop's n hides the other one
                A[n] = T.Cast(dtype, n) + start

        found: object = func
        assert isinstance(found, PrimFunc)
        return found

    for n, dtype in ((3, "float32"), (4, "float64")):
        func = made(n, dtype, float("-inf"))
        assert func.script().splitlines()[1:] == [
            f'def func(A: T.Buffer(({2 * n},), "{dtype}")):',
            f"    for n in range({2 * n}):",
            f'        A[n] = T.Cast("{dtype}", n) + T.{dtype}("-inf")',
        ]


def test_a_module_may_be_decorated_by_any_of_its_names() -> None:
    size = 4
    for decorator in (lw.script.ir_module, I.ir_module):

        @decorator
        class Two:
            I.module_attrs({"version": 1})

            @T.prim_func
            def first(A: T.Buffer((size,), "float32")) -> None:  # type: ignore[valid-type]
                A[0] = 1.0

            @T.prim_func
            def second(A: T.Buffer((size,), "float32")) -> None:  # type: ignore[valid-type]
                A[size - 1] = 1.0

        module: object = Two
        assert isinstance(module, IRModule)
        assert [func.name for func in module.functions] == ["first", "second"]
        assert "A[3] = T.float32(1.0)" in module["second"].script()


def test_functions_of_a_class_call_each_other() -> None:
    size = 4

    @I.ir_module
    class Calls:
        @T.prim_func
        def main(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")) -> None:  # type: ignore[valid-type]
            Calls.double(A, B)  # type: ignore[operator]

        @T.prim_func
        def double(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")) -> None:  # type: ignore[valid-type]
            for i in range(size):
                B[i] = A[i] * 2.0

    module: object = Calls
    assert isinstance(module, IRModule)
    assert "Module.double(A.data, B.data)" in module["main"].script()
    out = np.empty(size, "float32")
    lw.build(module)(np.ones(size, "float32"), out)
    np.testing.assert_array_equal(out, np.full(size, 2))


def test_a_call_is_checked_when_its_class_is_complete() -> None:
    with pytest.raises(lw.VerifyError, match="main calls double, but its module"):

        @I.ir_module
        class Calls:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")) -> None:  # type: ignore[valid-type]
                cls.double(A)  # type: ignore[name-defined]


def test_what_is_no_constant_is_refused_where_it_stands() -> None:
    table = {"n": 8}
    with pytest.raises(ScriptError, match="table is a dict: expected a number") as caught:

        @T.prim_func
        def wrong(A: T.Buffer((8,), "float32")) -> None:  # type: ignore[valid-type]
            # a comment
            for i in T.serial(table):
                A[i] = 0.0

    line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith("table")


def test_text_sees_nothing_around_it() -> None:
    with pytest.raises(ScriptError, match="unknown name ROWS"):
        parse("@T.prim_func\ndef f(A: T.Buffer((ROWS,))):\n    A[0] = 1.0\n")


def test_the_body_is_never_run() -> None:
    def boom() -> int:
        raise AssertionError("run")

    with pytest.raises(ScriptError, match="expected a call of the dialect"):

        @T.prim_func
        def wrong(A: T.Buffer((8,), "float32")) -> None:  # type: ignore[valid-type]
            A[0] = boom()


def test_a_function_without_a_text_is_refused() -> None:
    space: dict[str, object] = {}
    exec("def typed_at_a_prompt(A): pass", space)
    function = space["typed_at_a_prompt"]
    assert callable(function)
    with pytest.raises(ValueError, match="source of typed_at_a_prompt is not available"):
        T.prim_func(function)


def test_a_constant_of_a_type_is_one_where_a_schedule_takes_it() -> None:
    sch = Schedule(parse(MM_RELU.read_text(encoding="utf-8")))
    sch.transform_layout(
        "Y", ("write", 0), lambda i, j: (i, j // 3, j % 3), lambda *_: T.float32(0)
    )
    again = Schedule(parse(MM_RELU.read_text(encoding="utf-8")))
    exec(sch.trace.python(), {"sch": again, "T": T})
    assert structural_equal(again.func, sch.func)


def test_a_module_is_made_of_a_class() -> None:
    with pytest.raises(TypeError, match="expected a class of programs, got a function"):
        ir_module(lambda: None)  # type: ignore[arg-type]


def test_what_is_no_text_is_not_parsed() -> None:
    with pytest.raises(TypeError, match="expected the text of a script, got None"):
        parse(None)  # type: ignore[arg-type]
