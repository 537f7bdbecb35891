"""What intake accepts is stored as text, and that text is accepted again as the same program."""

from __future__ import annotations

from typing import get_args

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.limits import MAX_NEST
from compiler.ir.core.spelling import Dialect
from compiler.ir.text.printer import script
from compiler.script import ScriptError, parse
from service.common.errors import UnprocessableError
from service.intake.request_validation import read_workload
from service.wire.requests import Workload
from tests.property.generators.texts import RandomText

SEEDS = range(14)
_DEEPEST = MAX_NEST - 1  # the root block counts as one


def _program(body: str, params: str = 'A: T.Buffer((4,)), B: T.Buffer((4,), "float32")') -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"@T.prim_func\ndef main({params}):\n{lines}"


def _nest(call: str, number: int) -> str:
    loops = [f"{' ' * level}for i{level} in {call}:" for level in range(number)]
    return "\n".join([*loops, f"{' ' * number}B[0] = A[0]"])


LIMITS = {
    "33 loops": _program(_nest("range(1)", 33)),
    "as many loops as Python reads": _program(_nest("range(1)", _DEEPEST)),
    "as many parallel loops": _program(_nest("T.parallel(1)", _DEEPEST)),
    "as many launches": _program(
        "\n".join(f't{i} = T.launch_thread("vthread.x", 1)' for i in range(_DEEPEST))
        + "\nB[0] = A[0]"
    ),
    "chains of conditions": _program(
        f"if ({' and '.join(['A[0] > 0.0'] * 50)}) and {' and '.join(['A[1] > 0.0'] * 50)}:\n"
        "    B[0] = A[0]"
    ),
    "vectors that go down": _program("B[T.Ramp(3, -1, 4)] = T.Broadcast(A[0], 4)"),
    "vectors in one place": _program("B[T.Ramp(3, 0, 4)] = T.Broadcast(A[0], 4)"),
    "vectors from a sum that may wrap": _program(
        "B[T.Ramp(T.Cast('int32', T.uint8(1) + T.uint8(1)), 1, 2)] = T.Broadcast(A[0], 2)"
    ),
    "names of other alphabets": _program(
        "λ[0] = 变量[0]", "λ: T.Buffer((4,)), 变量: T.Buffer((4,))"
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_programs_at_the_limits(name: str) -> None:
    assert _comes_back(LIMITS[name])


def test_random_programs() -> None:
    accepted = sum(_comes_back(RandomText(seed).text()) for seed in SEEDS)
    assert accepted > 0.8 * len(SEEDS)


def _comes_back(text: str) -> bool:
    """Check the round trip of a script in all spellings; return whether it is a program."""
    try:
        func = parse(text)
    except ScriptError:
        return False
    for dialect in get_args(Dialect):
        printed = script(func, dialect=dialect)
        back = parse(printed)
        assert structural_equal(back, func), printed
        assert back.name == func.name
        assert script(back, dialect=dialect) == printed
    kept = read_workload(Workload(script=script(func)))
    assert read_workload(Workload(script=kept.script)) == kept
    return True


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (_nest("range(1)", MAX_NEST + 1), "more than 96 loops, blocks, conditions"),
        (
            "\n".join(f'b{i} = T.allocate((4,), "float32")' for i in range(MAX_NEST + 1))
            + "\nB[0] = A[0]",
            "more than 96 loops, blocks, conditions",
        ),
    ],
)
def test_a_nest_that_python_cannot_read_is_refused(body: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        parse(_program(body))


def test_a_program_whose_printed_text_is_too_long_is_refused() -> None:
    # The block's regions, which are printed, name the buffer twice more.
    name = "x" * 60_000
    body = f'with T.block("b"):\n    v = T.axis.spatial(1, 0)\n    {name}[v] = {name}[v]'
    text = _program(body, f"{name}: T.Buffer((4,))")
    with pytest.raises(UnprocessableError, match=r"printed with all types it has \d+ characters"):
        read_workload(Workload(script=text))


PLACES = {
    "extent": "for i in range({}):\n    B[0] = A[0]",
    "first": "for i in range({}, 8):\n    B[0] = A[0]",
    "step": "for i in range(0, 8, {}):\n    B[0] = A[0]",
    "grid": "for i, j in T.grid({}, 4):\n    B[0] = A[0]",
    "shape": 'S = T.alloc_buffer(({},), "float32")\nS[0] = A[0]\nB[0] = S[0]',
    "text": 'S = T.alloc_buffer(("{}",), "float32")\nS[0] = A[0]\nB[0] = S[0]',
    "strides": 'S = T.alloc_buffer((4,), "float32", strides=({},))\nS[0] = A[0]\nB[0] = S[0]',
    "factor": 'S = T.alloc_buffer((4,), "float32", offset_factor={})\nS[0] = A[0]\nB[0] = S[0]',
    "axis": 'for i in range(4):\n    with T.block("b"):\n        v = T.axis.spatial({}, i)\n'
    "        B[v] = A[v]",
    "region": 'with T.block("b"):\n    T.reads(A[0:{0}])\n    T.writes(B[{0}])\n    B[0] = A[0]',
    "slice": "B[0:{0}] = T.Broadcast(A[0], {0})",
    "launch": 't = T.launch_thread("threadIdx.x", {})\nB[0] = A[0]',
    "value": "x: T.int64 = {}\nB[0] = T.Cast('float32', x)",
}
ARITHMETIC = [
    *("4 % 0", "4 // 0", "4 % (2 - 2)", "T.truncmod(4, 0)", "T.ceildiv(4, 3 - 3)", "4 % -3"),
    *("1 << -1", "1 << 100", "1 >> -1", "2147483647 + 1", "-2147483648 // -1", "99999999999999"),
    *("T.int64(9223372036854775807) * T.int64(9223372036854775807)", "T.uint8(255) + T.uint8(255)"),
    *('T.Cast("int32", T.float32("nan"))', 'T.Cast("int32", A[0])', "0x" + "f" * 20000),
]


@pytest.mark.parametrize("place", PLACES)
def test_arithmetic_gives_a_program_or_an_error_with_a_place(place: str) -> None:
    for number in ARITHMETIC:
        _comes_back(_program(PLACES[place].format(number)))


@pytest.mark.parametrize("number", ["4 % 0", "4 // 0", "T.truncmod(4, 0)", "T.floordiv(4, 0)"])
def test_a_division_by_zero_is_named(number: str) -> None:
    with pytest.raises(ScriptError, match="divides by zero"):
        parse(_program(PLACES["extent"].format(number)))


@pytest.mark.parametrize("call", ["T.truncdiv({}, 3)", "T.Mod({}, 3)", "T.Div({}, 3)"])
def test_calls_that_copy_their_arguments_do_not_grow_without_bound(call: str) -> None:
    value = 'T.Cast("int32", A[0])'
    for _ in range(30):
        value = call.format(value)
    with pytest.raises(ScriptError, match="expand to more than 5000 operations"):
        parse(_program(PLACES["value"].format(value)))
