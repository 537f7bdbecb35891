"""What today's programs use beyond loops around one store: each is read, printed and read back."""

import numpy as np
import pytest

from compiler.ir.evaluate import evaluate
from compiler.ir.nodes import (
    Allocate,
    AnnotationDict,
    Block,
    Buffer,
    Call,
    Evaluate,
    For,
    IntImm,
    Let,
    Load,
    Ramp,
    Store,
    StringImm,
    Var,
)
from compiler.ir.program import PrimFunc
from compiler.ir.spelling import Dialect
from compiler.ir.structural import structural_equal
from compiler.ir.visit import walk
from compiler.script import ScriptError, parse, parse_module

DIALECTS: tuple[Dialect, ...] = ("new", "middle", "old")


def round_tripped(text: str) -> PrimFunc:
    """Parse a text, and check that what is printed of it in any spelling is the same program."""
    func = parse(text)
    for dialect in DIALECTS:
        printed = func.script(dialect)
        assert structural_equal(parse(printed), func), printed
        assert parse(printed).script(dialect) == printed
    return func


def block_named(func: PrimFunc, name: str) -> Block:
    return next(b for b in walk(func.body) if isinstance(b, Block) and b.name == name)


def in_block(body: str, head: str = "") -> PrimFunc:
    """Return the program of a block over `vi` of A (8 floats), N (8 integers) and B (8 floats)."""
    lines = "".join(f"            {line}\n" for line in (head + body).splitlines())
    return round_tripped(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), N: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
{lines}""")


def outputs(func: PrimFunc, **inputs: object) -> dict[str, np.ndarray]:
    return evaluate(func, {name: np.asarray(value) for name, value in inputs.items()})


A = np.linspace(-2, 2, 8, dtype="float32")


# Values and statements


@pytest.mark.parametrize(
    "body",
    [
        "x: T.let[T.float32] = A[vi]\nB[vi] = x + x",
        "x: T.let = A[vi]\nB[vi] = x + x",
        "x: T.float32 = A[vi]\nB[vi] = x + x",
        "x = A[vi]\nB[vi] = x + x",
        "with T.LetStmt(A[vi]) as x:\n    B[vi] = x + x",
        'x = T.var("float32")\nwith T.let(x, A[vi]):\n    B[vi] = x + x',
    ],
)
def test_a_value_may_have_a_name(body: str) -> None:
    func = in_block(body)
    (let,) = (node for node in walk(func.body) if isinstance(node, Let))
    assert let.var.dtype == "float32"
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A + A)


def test_a_named_value_is_computed_once() -> None:
    func = in_block("x: T.let = A[vi]\nB[vi] = 0.0\nB[vi] = x")
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A)


def test_what_follows_a_with_is_not_in_its_scope() -> None:
    func = in_block("with T.LetStmt(A[vi]) as x:\n    B[vi] = x\nB[vi] = B[vi] + 1.0")
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A + 1)


def test_a_value_of_a_loop_can_not_be_changed_inside() -> None:
    with pytest.raises(ScriptError, match="x has a value outside"):
        in_block("x = A[vi]\nfor j in range(2):\n    x = x + 1.0\nB[vi] = x")


def test_an_abbreviation_stands_for_its_expression() -> None:
    func = in_block("x = T.meta_var(vi // 2 * 2)\nB[vi] = A[x]")
    assert not any(isinstance(node, Let) for node in walk(func.body))
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A[np.arange(8) // 2 * 2])


def test_abbreviations_of_abbreviations_are_bounded() -> None:
    chain = "\n".join(f"x{n} = T.meta_var(x{n - 1} + x{n - 1})" for n in range(1, 60))
    with pytest.raises(ScriptError, match="names stand for more than"):
        in_block(f"x0 = T.meta_var(vi)\n{chain}\nB[vi] = T.Cast('float32', x59)")


def test_a_let_expression_is_its_body_with_the_value() -> None:
    func = in_block("B[vi] = T.Let(x * x, where={x: A[vi] + 1.0})")
    np.testing.assert_allclose(outputs(func, A=A)["B"], (A + 1) ** 2, rtol=1e-6)


def test_calls_that_have_an_effect_are_statements() -> None:
    func = in_block('T.tvm_storage_sync("shared")\nT.evaluate(vi + 1)\nT.evaluate(0)\nB[vi] = 0.0')
    calls = [node.value for node in walk(func.body) if isinstance(node, Evaluate)]
    assert isinstance(calls[0], Call)
    assert calls[0].args[0] == StringImm("shared")
    assert calls[2] == IntImm(0)


def test_a_promise_is_a_statement() -> None:
    func = in_block("T.assume(N[vi] >= 0)\nB[vi] = 0.0")
    assert "T.assume(N[vi] >= 0)" in func.script()


def test_an_undefined_value_has_the_type_of_its_place() -> None:
    func = in_block("B[vi] = T.undef()")
    assert 'B[vi] = T.Cast("float32", T.undef())' in func.script()


def test_advice_and_assertions_are_read_over() -> None:
    func = in_block('T.attr({"pragma_x": 1})\nassert vi >= 0, "never"\nB[vi] = A[vi]')
    assert structural_equal(func, in_block("B[vi] = A[vi]"))


def test_several_stores_stand_in_one_block() -> None:
    func = in_block("B[vi] = A[vi]\nB[vi] += 1.0\nif vi < 3:\n    B[vi] = 0.0")
    np.testing.assert_array_equal(
        outputs(func, A=A)["B"], np.where(np.arange(8) < 3, 0, A + 1).astype("f4")
    )


# Expressions


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("A[vi] + vi", 'A[vi] + T.Cast("float32", vi)'),
        ("T.max(N[vi], 1.5)", 'T.max(T.Cast("float32", N[vi]), T.float32(1.5))'),
        ("N[vi] + T.int64(1)", 'T.Cast("float32", T.Cast("int64", N[vi]) + T.int64(1))'),
        ("T.int32(3)", "T.float32(3.0)"),
        ("vi", 'T.Cast("float32", vi)'),
        ("~N[vi]", 'T.Cast("float32", ~N[vi])'),
        ("T.bitwise_not(N[vi])", 'T.Cast("float32", ~N[vi])'),
        ("A[vi].astype('float32')", 'T.Cast("float32", A[vi])'),
        ("T.reinterpret('float32', N[vi])", 'T.reinterpret("float32", N[vi])'),
        ("T.isnan(A[vi])", 'T.Cast("float32", T.isnan(A[vi]))'),
        ("T.Div(vi, 3)", 'T.Cast("float32", vi // 3)'),
        ("T.truncmod(vi, 3)", 'T.Cast("float32", vi % 3)'),
        ("T.ceildiv(vi, 3)", 'T.Cast("float32", (vi + 3 - 1) // 3)'),
        ("T.truncmod(A[vi], A[vi])", "T.fmod(A[vi], A[vi])"),
        ("T.EQ(vi, 3)", 'T.Cast("float32", vi == 3)'),
        ("T.float32(0.1)", "T.float32(0.10000000000000001)"),
        ("T.min_value('float32')", "T.float32(-340282346638528859811704183484516925440.0)"),
        ("T.Select(T.bool(True), A[vi], 0)", "T.Select(T.bool(True), A[vi], T.float32(0.0))"),
        ("T.if_then_else(T.likely(vi < 3), A[vi], 0)", None),
        ("T.shift_left(vi, 2) | T.bitwise_and(vi, 1)", None),
        ("A[T.ceildiv(vi, 2)]", None),
    ],
)
def test_expressions_of_tvm(value: str, printed: str | None) -> None:
    func = in_block(f"B[vi] = {value}")
    if printed is not None:
        assert f"= {printed}\n" in func.script()


@pytest.mark.parametrize("name", ["Div", "truncdiv", "truncmod"])
def test_quotients_round_towards_zero(name: str) -> None:
    n = np.array([7, -7, 6, -6, 1, -1, 0, -8], "int32")
    for divisor in (3, -3):
        func = in_block(f"B[vi] = T.{name}(N[vi], {divisor})")
        wanted = np.fmod(n, divisor) if name == "truncmod" else np.trunc(n / divisor)
        np.testing.assert_array_equal(outputs(func, N=n)["B"], wanted)


@pytest.mark.parametrize(
    "name",
    [
        "acos",
        "asin",
        "asinh",
        "atan",
        "cosh",
        "exp10",
        "isfinite",
        "isinf",
        "isnan",
        "log1p",
        "tan",
    ],
)
def test_functions_of_one_argument(name: str) -> None:
    with np.errstate(all="ignore"):
        inputs = np.array([0.5, 0.25, 0.9, np.inf, -np.inf, np.nan, 0, 0.1], "float32")
        known = {"acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan}
        function = known.get(name, getattr(np, name, None)) or (lambda x: 10.0**x)
        wanted = function(inputs.astype("float64"))
    got = outputs(in_block(f"B[vi] = T.{name}(A[vi])"), A=inputs)["B"]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_functions_of_two_arguments() -> None:
    for name, reference in (
        ("atan2", np.arctan2),
        ("copysign", np.copysign),
        ("fmod", np.fmod),
        ("hypot", np.hypot),
    ):
        got = outputs(in_block(f"B[vi] = T.{name}(A[vi], 1.5)"), A=A)["B"]
        np.testing.assert_allclose(got, reference(A, 1.5), rtol=1e-5)


def test_slices_are_vectors() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((4, 8), "float32")):
    with T.sblock("B"):
        B[0, 0:8] = A[0:16:2] * 2.0
        B[1, T.Ramp(0, 1, 8)] = T.Broadcast(T.float32(1), 8)
        for i in range(2):
            B[i + 2, i * 4:i * 4 + 4] = A[T.Ramp(i * 4, 1, 4)]
""")
    stores = [node for node in walk(func.body) if isinstance(node, Store)]
    assert stores[0].indices[1] == Ramp(IntImm(0), 1, 8)
    assert "B[0, 0:8] = A[T.Ramp(0, 2, 8)] * T.Broadcast(T.float32(2.0), 8)" in func.script()


# Blocks


def test_a_view_of_a_region_has_strides_and_an_offset_of_its_own() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(4, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            first = T.int32()
            A_1 = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), \
strides=("s0", "s1"), elem_offset=first, offset_factor=4)
            C_1 = T.match_buffer(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], strides=(16, 1))
            T.evaluate(A_1.strides[0] * 4 + A_1.elem_offset + A_1.shape[0] + A.strides[0])
            for ii, jj in T.grid(4, 4):
                C_1[ii, jj] = A_1[ii, jj]
""")
    first, second = block_named(func, "C").match_buffers
    assert [s.name for s in first.buffer.strides if isinstance(s, Var)] == ["s0", "s1"]
    assert isinstance(first.buffer.elem_offset, Var)
    assert first.buffer.offset_factor == 4
    assert second.buffer.shape == (IntImm(4), IntImm(4))
    assert "T.evaluate(A_1.strides[0] * 4 + first + 4 + 16)" in func.script()
    a = np.arange(256, dtype="float32").reshape(16, 16)
    np.testing.assert_array_equal(outputs(func, A=a)["C"], a)


def test_the_offset_of_a_view_is_named_by_its_buffer() -> None:
    func = in_block(
        "T.evaluate(A_1.elem_offset + A.elem_offset)\nB[vi] = A_1[0]",
        "A_1 = T.match_buffer(A[vi:vi + 1], (1,), offset_factor=1)\n",
    )
    (match,) = block_named(func, "B").match_buffers
    assert isinstance(match.buffer.elem_offset, Var)
    assert "T.evaluate(A_1_elem_offset + 0)" in func.script()


def test_blocks_may_have_no_iterators_or_opaque_ones() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("outer"):
            T.reads(A[i])
            T.writes(B[i])
            with T.sblock("opaque"):
                vi, vj = T.axis.remap("OS", [i, i])
                B[vi] = A[vj]
        with T.sblock("opaque"):
            vi = T.axis.opaque(8, i)
            vs = T.axis.scan(8, i)
            B[vi] = A[vs] + 1.0
""")
    kinds = [
        [iv.kind for iv in block.iter_vars] for block in walk(func.body) if isinstance(block, Block)
    ]
    assert kinds == [[], [], ["opaque", "spatial"], ["opaque", "scan"]]


def test_the_one_block_of_a_function_is_its_root_whatever_its_name() -> None:
    text = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32")):
    with T.sblock("generic"):
        T.reads()
        T.writes()
        for i in T.parallel(8):
            A[i] = T.float32(0)
"""
    func = round_tripped(text)
    assert func.root.name == "generic"
    assert 'with T.sblock("generic"):' in func.script()


def test_a_root_that_holds_one_block_without_iterators_is_written_out() -> None:
    text = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32")):
    with T.sblock("root"):
        T.reads()
        T.writes()
        with T.sblock("inner"):
            T.reads()
            T.writes(A[0:8])
            for i in range(8):
                A[i] = T.float32(0.0)
"""
    func = round_tripped(text)
    assert func.root.name == "root"
    assert "\n".join(func.script().splitlines()[2:]) == text.strip().split("\n", 2)[2]


def test_annotations_nest() -> None:
    func = in_block(
        "B[vi] = 0.0",
        'T.sblock_attr({"b": {"x": [1, [2, T.bool(True)]]}, "a": T.int64(3), "c": T.float32(1)})\n',
    )
    assert block_named(func, "B").annotations == (
        ("b", AnnotationDict((("x", (1, (2, True))),))),
        ("a", 3),
        ("c", 1.0),
    )


def test_loops_start_anywhere_and_step() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((32,), "int32")):
    for i in range(2, 8):
        A[i] = 1
    for i in T.serial(8, 12, annotations={"a": [1]}):
        A[i] = 2
    for i in range(12, 20, 3):
        A[i] = 3
    for i, j in T.grid((20, 2), (0, 2)):
        A[i + j] = 4
    for i in T.thread_binding(24, 28, thread="threadIdx.x"):
        A[i] = 5
""")
    got = outputs(func, A=np.zeros(32, "int32"))["A"]
    wanted = (
        [0, 0] + [1] * 6 + [2] * 4 + [3, 0, 0, 3, 0, 0, 3, 0] + [4, 4, 4, 0] + [5] * 4 + [0] * 4
    )
    assert got.tolist() == wanted


def test_threads_are_launched() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(tx, 16):
        A[bx * 16 + tx] = 1.0
""")
    assert [(f.thread, f.extent) for f in walk(func.body) if isinstance(f, For)] == [
        ("blockIdx.x", IntImm(4)),
        ("threadIdx.x", IntImm(16)),
    ]


@pytest.mark.parametrize(
    "allocation",
    [
        'X = T.alloc_buffer((8,), "float32", scope="local")',
        "X = T.alloc_local((8,))",
        'X = T.allocate([8], "float32", "local")',
        'X = T.decl_buffer((8,), "float32", scope="local")',
    ],
)
def test_storage_is_allocated_between_statements(allocation: str) -> None:
    func = in_block(f"B[vi] = 0.0\n{allocation}\nX[0] = A[vi]\nB[vi] = X[0]")
    (found,) = (node for node in walk(func.body) if isinstance(node, Allocate))
    assert found.buffer.scope == "local"
    np.testing.assert_array_equal(outputs(func, A=A)["B"], A)


def test_regions_of_wide_integers_print_as_tvm_does() -> None:
    func = round_tripped("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((T.int64(8),), "float32")):
    with T.sblock("root"):
        T.reads()
        T.writes()
        with T.sblock("A"):
            T.reads()
            T.writes(A[T.int64(0):T.int64(8)])
            for i in range(T.int64(8)):
                A[i] = T.float32(0.0)
""")
    assert "T.writes(A[T.int64(0):T.int64(8)])" in func.script()


# Symbolic shapes


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
