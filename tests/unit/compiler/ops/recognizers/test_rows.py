"""Operators on rows, axes and elements are found in programs of any shape."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.analysis.structural import structural_equal
from compiler.ops.recognize import recognize
from compiler.ops.spec import from_spec

NAMES = ["softmax", "log_softmax", "layer_norm", "rms_norm", "sum", "max", "mean"]
extent = st.integers(2, 9)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(
        ["softmax", "log_softmax", "layer_norm", "rms_norm", "sum", "max", "mean"]
    ),
    shape=st.lists(extent, min_size=2, max_size=3),
    data=st.data(),
)
def test_rows_of_any_shape_are_found(name: str, shape: list[int], data: st.DataObject) -> None:
    low = 1 if name.endswith("norm") else 0
    axis = data.draw(st.integers(low, len(shape) - 1))
    func = from_spec(f"{name}:{','.join(map(str, shape))},axis={axis}")
    spec = recognize(func)
    assert spec is not None
    assert spec.name == name
    assert structural_equal(spec.build(), func)


@pytest.mark.parametrize(
    "spec",
    [
        "attention:1,2,5,6,4",
        "attention:1,2,5,6,4,causal=true",
        "attention:1,2,5,6,4,scale=0.25",
        "layer_norm:4,6,epsilon=0.001",
        "add:3,4",
        "silu:3,4",
        "transpose:3,4,5,axes=2x0x1",
    ],
)
def test_options_are_read_from_the_program(spec: str) -> None:
    func = from_spec(spec)
    found = recognize(func)
    assert found is not None
    assert structural_equal(found.build(), func)
