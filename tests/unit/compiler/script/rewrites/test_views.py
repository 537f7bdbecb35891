"""Several views of one memory, which all see what is stored by any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.text.printer import script
from compiler.schedule.schedule import Schedule
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

HEAD = """
@T.prim_func
def main(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "uint8")):
    X = T.allocate([64], "uint8", "global")
"""
# Each view with its type, its elements, and where it begins, in bytes.
VIEWS = {
    "bytes": ("uint8", (64,), 0),
    "signed": ("int8", (4, 16), 0),
    "halves": ("int16", (32,), 0),
    "words": ("uint32", (4, 4), 0),
    "last": ("int32", (8,), 32),
    "longs": ("int64", (8,), 0),
}


def declared(name: str) -> str:
    of, shape, start = VIEWS[name]
    offset = f", elem_offset={start // np.dtype(of).itemsize}" if start else ""
    return f'    {name} = T.Buffer({shape}, "{of}", data=X{offset})\n'


def element(name: str, index: str) -> str:
    shape = VIEWS[name][1]
    return (
        f"{name}[{index} // {shape[1]}, {index} % {shape[1]}]" if shape[1:] else f"{name}[{index}]"
    )


def length(name: str) -> int:
    return int(np.prod(VIEWS[name][1]))


def copy(target: str, source: str, *, is_reversed: bool) -> str:
    count = min(length(target), length(source))
    index = f"({count - 1} - i)" if is_reversed else "i"
    of = VIEWS[target][0]
    value = f'T.Cast("{of}", {element(source, index)})'
    return f"    for i in range({count}):\n        {element(target, 'i')} = {value}\n"


def copied(memory: np.ndarray[Any, Any], target: str, source: str, *, is_reversed: bool) -> None:
    """Do what `copy` does, on NumPy's own views."""
    views = [
        memory[VIEWS[name][2] :].view(VIEWS[name][0])[: length(name)] for name in (target, source)
    ]
    count = min(map(len, views))
    for i in range(count):
        views[0][i] = views[1][count - 1 - i if is_reversed else i].astype(VIEWS[target][0])


def results(func: PrimFunc, a: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    got = [interpret(func, {"A": a})["B"], evaluate(func, {"A": a})["B"]]
    for program in (func, Schedule(func)):
        b = np.empty_like(a)
        build(program, "cpu -num-cores=1")(a, b)
        got.append(b)
    return got


COPIES = st.tuples(st.sampled_from(sorted(VIEWS)), st.sampled_from(sorted(VIEWS)), st.booleans())


@settings(max_examples=12, deadline=None)
@given(copies=st.lists(COPIES, min_size=1, max_size=4))
def test_views_share_their_memory(copies: list[tuple[str, str, bool]]) -> None:
    used = dict.fromkeys(name for two in copies for name in two[:2])
    text = HEAD + "".join(map(declared, used))
    text += "    for i in range(64):\n        X[i] = A[i]\n"
    text += "".join(copy(t, s, is_reversed=r) for t, s, r in copies)
    text += "    for i in range(64):\n        B[i] = X[i]\n"
    a = np.random.default_rng(0).integers(0, 256, 64).astype("uint8")
    expected = a.copy()
    for target, source, is_reversed in copies:
        copied(expected, target, source, is_reversed=is_reversed)
    for got in results(round_tripped(text), a):
        np.testing.assert_array_equal(got, expected)


def test_a_dependence_between_views_keeps_the_order() -> None:
    text = (
        HEAD
        + declared("words")
        + """    for i in range(64):
        X[i] = A[i]
    for i in range(15):
        words[(i + 1) // 4, (i + 1) % 4] = words[i // 4, i % 4] + T.uint32(1)
    for i in T.parallel(64):
        B[i] = X[i]
"""
    )
    a = np.arange(64, dtype="uint8")
    expected = (a[:4].view("uint32") + np.arange(16, dtype="uint32")).view("uint8")
    for got in results(round_tripped(text), a):
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(ScriptError, match="race"):
        parse(text.replace("range(15)", "T.parallel(15)"))


def test_a_block_that_calls_a_function_keeps_what_it_declares_of_other_buffers() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "uint8")):
    X = T.allocate([64], "uint8", "global")
    rows = T.Buffer((8, 8), "uint8", data=X)
    row = T.Buffer((64,), "uint8", data=X)
    rows[0, 0] = A[0]
    with T.block("call"):
        T.reads(A[0:64])
        T.writes(B[0:64], row[0:64])
        row[1] = A[0]
        T.call_packed("my.copy", A.data, B.data)
"""
    printed = script(parse(text))
    assert "T.reads(A[0:64])" in printed
    assert "T.writes(B[0:64], rows[1])" in printed


def test_a_parameter_is_seen_as_wider_elements() -> None:
    func = round_tripped("""
@T.prim_func
def main(A: T.Buffer((8, 4), "int8"), B: T.Buffer((8,), "int32")):
    C = T.Buffer((2, 4), "int32", data=A.data)
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(C[vi // 4, vi % 4])
            T.writes(B[vi])
            B[vi] = C[vi // 4, vi % 4]
""")
    a = np.random.default_rng(0).integers(-99, 99, (8, 4)).astype("int8")
    got = np.empty(8, "int32")
    build(func, "cpu -num-cores=1")(a, got)
    for result in (got, interpret(func, {"A": a})["B"], evaluate(func, {"A": a})["B"]):
        np.testing.assert_array_equal(result, a.view("int32").ravel())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            declared("words") + "    words[0, 0:2] = T.Broadcast(T.uint32(0), 2)\n"
            "    words[0:4, 0] = T.Broadcast(T.uint32(0), 4)\n",
            "lanes that are apart, of elements that are reinterpreted",
        ),
        (
            declared("words") + '    T.evaluate(T.call_extern("int32", "f", words.data))\n',
            "its address is not known",
        ),
        (declared("words") + "    words[4, 0] = T.uint32(0)\n", "prove that X["),
    ],
)
def test_what_has_no_form_in_the_memory_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + text)
    assert reason in str(caught.value)
