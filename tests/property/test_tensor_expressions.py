"""Random tensor expressions against NumPy, which computes them array by array."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.script import parse
from tests.property.acceptance import Acceptance
from tests.property.generators.expressions import Grown, grown

composed = Acceptance()


@composed.at_least(0.8)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_tensor_expressions_compute_what_numpy_does(data: st.DataObject) -> None:
    shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
    inputs = [te.placeholder(data.draw(shapes), "float64", name=name) for name in ("A", "B")]
    probe = te.create_prim_func(
        [*inputs, te.compute((1,), lambda _: inputs[0](*[0] * inputs[0].ndim), name="P")]
    )
    arrays = random_inputs(probe, 0)
    known = [Grown(t, arrays[t.name]) for t in inputs]
    known = grown(data.draw, known, data.draw(st.integers(1, 5)))
    if not composed.count(len(known) > 2):
        return
    func = te.create_prim_func([*inputs, known[-1].tensor])
    output = func.buffers[-1].name
    computed = interpret(
        func, dict(zip([b.name for b in func.buffers], arrays.values(), strict=False))
    )
    assert compare(func, {output: known[-1].array}, computed) < 1e-9
    assert structural_equal(parse(func.script()), func)
