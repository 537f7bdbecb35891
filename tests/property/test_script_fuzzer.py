"""Whatever is done to a script, the parser says what is wrong, or takes it and prints it back."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from compiler import ops
from compiler.ir.printer import script
from compiler.ir.structural import structural_equal
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
TEXTS = [SCHEDULED, *(script(ops.from_spec(s)) for s in ("conv2d:1,2,5,5,2,3,1,1", "softmax:4,4"))]
TOKENS = [re.findall(r"\w+|[^\w\s]|\s+", text) for text in TEXTS]
POOL = [
    *sorted({token for tokens in TOKENS for token in tokens}),
    *("lambda", "None", "1e999", "0x" + "f" * 40, "**", "@", "...", ":=", "await", "yield", "del"),
    *("'", '"', "\0", "\ud800", "é", "\t", "#", "f'{x}'", "T.float64", "T.bool", "2147483648"),
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
    assert structural_equal(parse_module(script(module)), module)
    return None


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
