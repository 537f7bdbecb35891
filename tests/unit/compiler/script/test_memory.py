"""Memory by other spellings: buffers on allocated memory, loads and stores of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build
from compiler.script import ScriptError, parse
from tests.unit.compiler.script.round_trips import round_tripped

HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
"""
COPY = """    for i in range(16):
        C[i // 4, i % 4] = A[i] * T.float32(2)
    for i in range(16):
        B[i] = C[i // 4, i % 4] + T.float32(1)
"""
INDENTED = COPY.replace("\n    ", "\n        ").replace("    for i", "        for i", 1)


def results(text: str) -> np.ndarray:
    func = round_tripped(HEAD + text)
    a, b = np.arange(16, dtype="float32"), np.full(16, np.nan, "float32")
    build(func, "cpu -num-cores=1")(a, b)
    return b


@pytest.mark.parametrize(
    "text",
    [
        '    X = T.allocate([16], "float32", "global")\n    C = T.Buffer((4, 4), data=X)\n' + COPY,
        '    X = T.allocate([16], "float32")\n    C = T.decl_buffer((4, 4), data=X)\n' + COPY,
        '    X = T.allocate((4, 4), "float32")\n    C = T.Buffer((4, 4), data=X)\n' + COPY,
        '    D = T.alloc_buffer((4, 4))\n    C = T.Buffer((4, 4), "float32", data=D.data)\n' + COPY,
        '    with T.allocate([16], "float32", "global") as X:\n'
        "        C = T.Buffer((4, 4), data=X)\n" + INDENTED,
    ],
)
def test_allocated_memory_has_the_shape_of_its_buffer(text: str) -> None:
    np.testing.assert_array_equal(results(text), np.arange(16) * 2 + 1)


def test_a_buffer_on_a_parameter_is_another_name_of_it() -> None:
    text = "    C = T.Buffer((16,), data=A.data)\n    for i in range(16):\n        B[i] = C[i]\n"
    np.testing.assert_array_equal(results(text), np.arange(16))


@pytest.mark.parametrize(
    "statement", ["T.evaluate(B.vstore([i * 4], VALUE))", "B.vstore(i * 4, VALUE)"]
)
def test_vectors_are_loaded_and_stored(statement: str) -> None:
    value = 'A.vload([12 - i * 4], "float32x4") * T.Broadcast(T.float32(3), 4)'
    text = f"    for i in range(4):\n        {statement.replace('VALUE', value)}\n"
    expected = 3 * np.arange(16).reshape(4, 4)[::-1].ravel()
    np.testing.assert_array_equal(results(text), expected)


def test_a_scalar_is_loaded_and_stored() -> None:
    text = "    for i in range(16):\n        B.vstore([i], A.vload([15 - i]))\n"
    np.testing.assert_array_equal(results(text), np.arange(16)[::-1])


MEMORY = '    X = T.allocate([16], "float32", "global")\n'
READ = "    for i in range(16):\n        B[i] = C[i // 4, i % 4]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MEMORY + "    C = T.Buffer((5, 4), data=X)\n" + READ, "C has 20 element.s. up to byte 80"),
        (MEMORY + "    C = T.Buffer((4, 4), data=X, strides=(1, 4))\n" + READ, "C is a view of X"),
        (MEMORY + "    C = T.Buffer((4, 4), data=X, scope='local')\n" + READ, "C is in local"),
        (MEMORY + "    C = T.Buffer((2, 4), data=X, elem_offset=-1)\n" + READ, "C has 8 element"),
        (MEMORY + "    C = T.Buffer((4, 4), 'bool', data=X)\n" + READ, "bool is no other type"),
        (
            "    C = T.Buffer((64,), 'int8', data=A.data)\n" + READ.replace("i // 4, i % 4", "i"),
            "a view of a parameter has elements as wide or wider",
        ),
        ("    C = T.Buffer((4, 4), data=Z)\n" + READ, "unknown name Z"),
        ("    C = T.Buffer((4, 4), data=3)\n" + READ, "expected allocated memory"),
        ("    B[0] = A.vload([0, 0])\n", "A has 1 dimension"),
        ("    B[0] = A.vload([0], 'int32')\n", "A has elements of float32, not int32"),
        ("    B.vstore([12], A.vload([0], 'float32x8'))\n", "is in bounds"),
        ("    B.vstore([0])\n", "needs the argument value"),
    ],
)
def test_memory_that_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse(HEAD + text)
