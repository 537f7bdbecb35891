import sys
import time

import pytest

from compiler.script import ScriptError, parse
from compiler.script.source import MAX_BYTES

HEAD = '@T.prim_func\ndef main(A: T.Buffer((64,), "float32")):\n    for i in range(64):\n        '
MANY = 100_000


@pytest.mark.parametrize(
    "value",
    [
        "+".join(["A[i]"] * MANY),
        "not " * MANY + "i",
        "-" * MANY + "i",
        "(" * 250 + "i" + ")" * 250,
        "(" * MANY + ")" * MANY,
        "A" + ".b" * MANY,
        "A" + "[0]" * MANY,
        "T.exp" + "()" * MANY,
        "lambda:" * MANY + "0",
        "A[i] if i < 1 else " * MANY + "0.0",
        "**".join(["i"] * MANY),
        "<".join(["i"] * MANY),
        " and ".join(["i < 1"] * MANY),
        "T.max(" * 500 + "A[i]" + ", 0)" * 500,
        "1" * 5000,
        "0x" + "f" * MANY,
        "1e999999",
        'f"' + "{i}" * MANY + '"',
        "'" + "a" * MANY + "'",
        "'\\ud800'",
    ],
    ids=lambda value: value[:12],
)
def test_hostile_expressions_are_refused_quickly(value: str) -> None:
    start = time.process_time()
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + f"A[i] = {value}\n")
    assert len(str(caught.value)) < 20_000
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "\ud800",
        "# " + "x" * MAX_BYTES,
        "@T.prim_func\ndef f():\n    pass\n",
        "@T.prim_func\ndef f(*A): pass\n",
        "@T.prim_func\ndef f(A: T.Buffer((4,)), A: T.Buffer((4,))): pass\n",
        "@T.prim_func\nasync def f(): pass\n",
        "class A: pass\n",
        "x = 1\n",
        HEAD.replace("        ", "") + "\n",
        HEAD + "\n        ".join(f"for j{n} in range(2):{' ' * n}" for n in range(200)),
        "@T.prim_func\ndef f():\n" + "".join(" " * n + "if x:\n" for n in range(1, 99)),
        "@T.prim_func\ndef f():\n if x:\n  y\n" + " elif x:\n  y\n" * 5000,
        "@T.prim_func\n" * 5000 + "def f(): pass\n",
        "x = 1\n" * 170_000,
        HEAD + ";".join(["A[i]=1.0"] * 90_000),
        HEAD + "\n        ".join(f"x{n}: T.let = 1.0" for n in range(5000)),
        HEAD + "A[i] = " + "T.Let(x+x, where={x:" * 50 + "A[i]" + "})" * 50,
        HEAD + "with T.block('x'):\n            T.reads(" + "A[0]," * 9000 + ")",
        HEAD + "while 1:\n            pass",
        "@T.prim_func\ndef f(" + ",".join(f"A{n}: T.Buffer((4,))" for n in range(9000)) + "): 1",
        "@T.prim_func\ndef f(A: T.Buffer(('" + "(" * 9000 + "',))):\n    A[0] = 1.0",
        "@T.prim_func\ndef f(A: T.Buffer(('" + "+".join(["n"] * 9000) + "',))):\n    A[0] = 1.0",
        "@T.prim_func\ndef f(A: T.Buffer((4,))):\n"
        + "".join(
            " " * (n + 1) + f"for i{n} in range(i{n - 1} * i{n - 1}, i{n - 1} * i{n - 1} + 2):\n"
            for n in range(1, 28)
        ).replace("i0", "1")
        + " " * 29
        + "A[i27] = 1.0",
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(ScriptError):
        parse(text)


def test_a_grid_of_many_loops_is_refused() -> None:
    names = ", ".join(f"i{n}" for n in range(2000))
    ones = ", ".join("1" for _ in range(2000))
    text = f"@T.prim_func\ndef f(A: T.Buffer((4,))):\n    for {names} in T.grid({ones}):\n"
    with pytest.raises(ScriptError, match="a grid of 2000 loops"):
        parse(text + "        A[0] = 0.0\n")


def test_a_name_without_end_is_quoted_in_part() -> None:
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + "A[i] = " + "x" * 500_000)
    assert len(str(caught.value)) < 2_000


def test_a_program_of_the_greatest_depth_leaves_room_on_the_stack() -> None:
    chain = " + ".join(["A[i]"] * 95)
    before = sys.getrecursionlimit()
    func = parse(HEAD + f"A[i] = {chain}\n")
    assert func.name == "main"
    assert sys.getrecursionlimit() == before
