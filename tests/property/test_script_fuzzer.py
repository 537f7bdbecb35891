"""Whatever is done to a script, the parser says what is wrong, or takes it and prints it back."""

import re
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.spelling import Dialect
from compiler.ir.text.printer import script
from compiler.script import ScriptError, parse_module

SCHEDULED = """
@T.prim_func
def main(a: T.handle, B: T.Buffer((8,), "int64", scope="global")):
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (8,), "float32")
    with T.block("root"):
        T.block_attr({"x": [1, 2.5, "s"]})
        t = T.alloc_buffer((8,), "float32", scope="local")
        for i in T.serial(2, 10, annotations={"pragma": True}):
            with T.block("t"):
                v = T.axis.spatial(8, i - 2)
                T.where(i < 10 and not i == 3)
                T.reads(A[v:v + 1], B, t[v])
                T.writes(t[0:8])
                t[v] = -A[v] if 0 <= v < 7 else T.Select(v > 3, T.float32("inf"), 1)
                t[v] += T.Cast("float32", B[v]) / 3 - T.pow(A[v], 2)
        for x in T.thread_binding(8, thread="threadIdx.x"):
            if x % 2 == 0:
                A[x] = T.exp(t[x])
            else:
                A[x] = T.min_value("float32") + T.Cast("float32", (x << 2 | 1) & 7)
"""
TODAYS = """
n = TypeVar("n")
@I.ir_module
class Module:
    I.module_attrs({"a": {"b": [T.int64(1), T.bool(True)]}})
    @T.prim_func(private=True, s_tir=True)
    def f(A: T.Buffer((n, "m + 1"), "float32", strides=("s", 1), elem_offset=3, offset_factor=2), \
k: T.int32, b: T.handle, C: T.Buffer(("m",), "bool")):
        m, q = T.int32(), T.var("int64")
        B = T.match_buffer(b, (n, 4), "int32", align=64)
        bx = T.launch_thread("blockIdx.x", 4)
        with T.sblock("x"):
            T.reads()
            T.writes(B[0:n, bx])
            T.sblock_attr({"d": {"x": [1, [2]]}})
            o = T.int32()
            V = T.match_buffer(A[0:4, 0:k], (4, k), strides=("t", "u"), elem_offset=o)
            y = T.meta_var(bx * 2)
            x: T.let[T.float32] = V[0, y] * V.strides[0]
            with T.LetStmt(x + 1) as z:
                B[T.int64(0), bx] = T.reinterpret("int32", z) ^ ~k
            B[T.truncdiv(n, 2), T.ceildiv(k, 3) % 4] += T.Div(k, 3) - T.truncmod(B[0, 0], 2)
            T.tvm_storage_sync("shared", V.data)
            T.assume(T.isnan(x) or not T.likely(T.EQ(k, 3)))
            w = T.alloc_local((4,), "int8")
            w[0:4] = T.Broadcast(T.int8(3), 4)
            C[T.Ramp(0, 2, 4)] = T.Let(a + a, where={a: w[0:4]}) < T.Broadcast(T.int8(1), 4)
            assert k > 0, "k"
            T.evaluate(T.exp(z0) if T.bool(False) else T.undef())
    @T.prim_func
    def g(A: T.Buffer[(8, 8), "float16"]):
        for i, j in T.grid((2, 3), 4):
            for v in range(i, 8, 3):
                with T.block("root2"):
                    vi, vj = T.axis.remap("SO", [i, j])
                    vs = T.axis.scan((2, 12), v)
                    T.attr({"pragma_x": 1})
                    A[vi, vj] = T.fmod(A[vi, vj], T.float16("nan")) + vs
"""
GENERIC = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), k: T.float32):
    with T.sblock("generic"):
        T.reads(); T.writes()
        for i in T.parallel(8):
            A[i] = k + T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", A[i])
"""
CALLS = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), s: T.float32):
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * s

    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,))
        Module.scale(A, C, T.float32(2))
        cls.scale(C.data, B.data, 0.5)
"""
TEXTS = [
    CALLS,
    SCHEDULED,
    GENERIC,
    TODAYS.replace("T.exp(z0)", "0"),
    *(script(ops.from_spec(s)) for s in ("conv2d:1,2,5,5,2,3,1,1", "softmax:4,4")),
]
TOKENS = [re.findall(r"\w+|[^\w\s]|\s+", text) for text in TEXTS]
POOL = [
    *sorted({token for tokens in TOKENS for token in tokens}),
    *("lambda", "None", "1e999", "0x" + "f" * 40, "**", "@", "...", ":=", "await", "yield", "del"),
    *("'", '"', "\0", "\ud800", "é", "\t", "#", "f'{x}'", "T.float64", "T.bool", "2147483648"),
    *("T.let", "T.let[T.int8]", "T.int32()", "T.meta_var(", '"n"', ".data", ".strides[0]", "0:4"),
    *("T.launch_thread('threadIdx.x', 4)", "while", "assert", "import os", "bfloat16", "i = i + 1"),
    *("T.int64(3)", "not", "T.block('z')", "T.axis.remap('SS', [i, j])", "<<", ";", "T.init()"),
]


@st.composite
def mutated(draw: DrawFn) -> str:
    tokens = list(draw(st.sampled_from(TOKENS)))
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(tokens) - 1))
        other = draw(st.integers(0, len(tokens) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                tokens[place] = draw(st.sampled_from(POOL))
            case 1:
                tokens.insert(place, draw(st.sampled_from(POOL)))
            case 2:
                del tokens[place]
            case 3:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case _:
                tokens[place:place] = tokens[other : other + 30]
    return "".join(tokens)


def refusal(text: str) -> ScriptError | None:
    """Return why a text is refused; check that what is not refused prints and parses back."""
    try:
        module = parse_module(text)
    except ScriptError as error:
        return error
    for dialect in get_args(Dialect):
        printed = script(module, dialect=dialect)
        assert structural_equal(parse_module(printed), module), printed
    return None


def test_the_texts_are_scripts() -> None:
    assert [str(error) for error in map(refusal, TEXTS) if error is not None] == []


@settings(max_examples=600)
@given(text=mutated())
def test_mutated_scripts_are_refused_or_taken(text: str) -> None:
    error = refusal(text)
    if error is not None:
        assert error.line >= 1
        assert error.column >= 1
        assert error.message in str(error)


@settings(max_examples=300)
@given(text=st.text(max_size=80) | st.text("@T.(prim_func)def:\n [{'\"\\", max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    assert refusal(text) is not None
