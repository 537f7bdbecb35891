"""Operators are found in programs from their structure alone."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops.operator import OPERATORS
from compiler.ops.recognize import recognize
from compiler.ops.reference import reference
from compiler.ops.spec import from_spec, parse_spec
from compiler.script.error import ScriptError
from compiler.script.parser import parse
from tests.unit.compiler.ops.specs import SPECS

# Programs of several types are not recognized, and one that moves nothing is no transpose.
NOT_RECOGNIZED = re.compile("out_dtype|int32|transpose:5|lengths")
FOUND = [
    spec
    for spec in SPECS
    if OPERATORS[spec.split(":", maxsplit=1)[0]].recognize and not NOT_RECOGNIZED.search(spec)
]

small = st.integers(1, 6)


@st.composite
def products(draw: st.DrawFn) -> str:
    flags = [f"{name}={draw(st.booleans())}" for name in ("transpose_a", "transpose_b", "bias")]
    activation = draw(st.sampled_from(["none", "relu", "gelu", "silu", "tanh", "leaky_relu"]))
    batch = draw(st.sampled_from(["", ",batch=3", ",batch=2x3"]))
    m, n, k = (draw(small) for _ in range(3))
    return f"matmul:{m},{n},{k},{','.join(flags)},activation={activation}{batch}"


@st.composite
def convolutions(draw: st.DrawFn) -> str:
    groups = draw(st.integers(1, 2))
    ci, co = (groups * draw(st.integers(1, 3)) for _ in range(2))
    h, w = (draw(st.integers(5, 9)) for _ in range(2))
    kernel, stride, padding, dilation = (
        f"{draw(st.integers(low, high))}x{draw(st.integers(low, high))}"
        for low, high in ((1, 3), (1, 3), (0, 2), (1, 2))
    )
    layout = draw(st.sampled_from(["NCHW", "NHWC"]))
    return (
        f"conv2d:1,{ci},{h},{w},{co},{kernel},{stride},{padding},{dilation},{groups},"
        f"layout={layout},bias={draw(st.booleans())}"
    )


@pytest.mark.parametrize("spec", FOUND)
def test_an_operator_is_found_in_its_program(spec: str) -> None:
    func = from_spec(spec)
    found = recognize(func)
    assert found is not None
    assert structural_equal(from_spec(str(found)), func)


@settings(max_examples=15, deadline=None)
@given(spec=st.one_of(products(), convolutions()))
def test_any_product_and_convolution_is_found(spec: str) -> None:
    func = from_spec(spec)
    found = recognize(func)
    assert found is not None
    assert structural_equal(found.build(), func)


@settings(max_examples=15, deadline=None)
@given(spec=st.sampled_from([spec for spec in FOUND if "bfloat16" not in spec]), data=st.data())
def test_a_changed_program_is_not_taken_for_what_it_is_not(spec: str, data: st.DataObject) -> None:
    changed = _changed(from_spec(spec), data)
    assume(changed is not None)
    assert changed is not None
    found = recognize(changed)
    if found is None:
        return
    inputs = random_inputs(changed, seed=1)
    (expected,) = interpret(changed, inputs).values()
    got = reference(str(found))(*(inputs[b.name] for b in changed.buffers[:-1]))
    np.testing.assert_allclose(got.astype("float64"), expected.astype("float64"), 1e-2, 1e-2)


def test_names_do_not_count() -> None:
    text = from_spec("matmul:4,5,6,bias=true").script()
    for name in ("matmul", "biased", "bias", "v_i", "C"):
        text = re.sub(rf"\b{name}\b", f"x_{name}", text)
    assert str(recognize(parse(text))) == "matmul:4,5,6,bias=True"


def test_what_a_spec_says_is_read_back() -> None:
    spec = parse_spec("conv2d:1,4,8,9,6,3x1,padding=1x0x1x0,activation=relu:float64")
    assert parse_spec(str(spec)) == spec


def test_a_symbolic_extent_is_no_operator() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    func = te.create_prim_func([a, te.compute((n,), lambda i: te.exp(a[i]), name="B")])
    assert recognize(func) is None


def _changed(func: PrimFunc, data: st.DataObject) -> PrimFunc | None:
    """Return the program with one sign or number of its blocks changed, if that is legal."""
    text = func.script()
    body = text.index("for ")
    places = [m for m in re.finditer(r" [+*/-] |\b[0-9]+(\.[0-9]+)?\b", text) if m.start() > body]
    place = data.draw(st.sampled_from(places))
    is_number = place[0].strip()[0].isdigit()
    other = data.draw(st.sampled_from(["0", "1", "2", "3.0"] if is_number else [" + ", " * "]))
    try:
        return parse(text[: place.start()] + other + text[place.end() :])
    except ScriptError:
        return None
