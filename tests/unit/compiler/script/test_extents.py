"""Shapes, parameters and modules with variables: each is read, printed and read back."""

import numpy as np
import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    Buffer,
    IntImm,
    Load,
    Var,
)
from compiler.ir.core.visit import walk
from compiler.script import ScriptError, parse, parse_module
from tests.unit.compiler.script.round_trips import (
    DIALECTS,
    outputs,
    round_tripped,
)

ADD = """
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
"""


@pytest.mark.parametrize(
    ("head", "dtype"),
    [
        (
            '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer(("n", "m")), B: T.Buffer((n, m))):\n'
            "    n, m = T.int32(), T.int32()",
            "int32",
        ),
        (
            'n = TypeVar("n")\nm = TypeVar("m")\n@T.prim_func(s_tir=True)\n'
            "def main(A: T.Buffer((n, m)), B: T.Buffer((n, m))):",
            "int64",
        ),
        (
            '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer(("n", "m")), B: T.Buffer((n, m)), '
            "n: T.int64, m: T.int64):",
            "int64",
        ),
        (
            "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n    n = T.int64()\n"
            '    m = T.var("int64")\n    A = T.match_buffer(a, (n, m))\n'
            "    B = T.match_buffer(b, (n, m))",
            "int64",
        ),
        (
            "@T.prim_func\ndef main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):\n"
            "    A = T.match_buffer(a, (n, m))\n    B = T.match_buffer(b, (n, m))",
            "int32",
        ),
    ],
)
def test_symbolic_shapes(head: str, dtype: str) -> None:
    func = round_tripped(head + ADD)
    (extent, *_) = func.buffers[0].shape
    assert isinstance(extent, Var)
    assert extent.dtype == dtype
    fixed = func.specialize({"n": 3, "m": 5})
    a = np.ones((3, 5), "float32")
    assert outputs(fixed, A=a)["B"].tolist() == [[2.0] * 5] * 3


def test_a_text_of_a_shape_may_compute() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n * 2 + 1",), "float32"), n: T.int32):
    for i in range(n, n * 2):
        A[i] = 1.0
""")
    assert outputs(func.specialize({"n": 2}), A=np.zeros(5, "f4"))["A"].tolist() == [0, 0, 1, 1, 0]


def test_a_symbol_has_one_type() -> None:
    with pytest.raises(ScriptError, match="n is int64 already, not int32"):
        parse(
            "@T.prim_func\ndef main(A: T.Buffer((8,)), n: T.int64):\n"
            "    n = T.int32()\n    A[0] = 1.0\n"
        )


def test_functions_of_a_module_share_type_variables() -> None:
    text = 'n = TypeVar("n")\n@I.ir_module\nclass Module:\n    I.module_attrs({"a": 1})\n'
    for name, shape in (("f", "(n,)"), ("g", '("m",)')):
        text += (
            f"    @T.prim_func(private=True, s_tir=True)\n"
            f'    def {name}(A: T.Buffer({shape}, "float32")):\n        A[0] = 1.0\n'
        )
    module = parse_module(text)
    for dialect in DIALECTS:
        assert structural_equal(parse_module(module.script(dialect)), module)
    assert module.script().startswith('n = TypeVar("n")\n@I.ir_module\nclass Module:\n')


def test_parameters_take_what_is_known_of_their_storage() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32", strides=(16, 1), elem_offset=4, offset_factor=4, align=64),
         B: T.Buffer((8,), "float32", strides=("s",))):
    B[0] = A[0, 0]
""")
    assert [s for s in func.buffers[0].strides if isinstance(s, IntImm)] == [IntImm(16), IntImm(1)]
    assert isinstance(func.buffers[0], Buffer)
    assert isinstance(func.buffers[1].strides[0], Var)


def test_a_load_of_a_scalar_has_no_indices() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
    with T.sblock("B"):
        vi = T.axis.spatial(1, 0)
        B[()] = A[()] + 1.0
""")
    assert any(isinstance(node, Load) and node.indices == () for node in walk(func.body))


def test_a_text_may_begin_with_a_byte_order_mark() -> None:
    text = "\ufeff@T.prim_func\ndef main(A: T.Buffer((4,))):\n    A[0] = 1.0\n"
    assert parse(text).name == "main"
