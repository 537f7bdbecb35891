"""Convolutions and pools are found in programs of any shape."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compiler.ir.analysis.structural import structural_equal
from compiler.ops.error import OperatorError
from compiler.ops.recognize import recognize
from compiler.ops.spec import from_spec


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["conv2d", "depthwise_conv2d", "max_pool2d", "avg_pool2d"]),
    size=st.tuples(st.integers(5, 9), st.integers(5, 9)),
    kernel=st.integers(2, 3),
    stride=st.integers(1, 2),
    padding=st.integers(0, 1),
)
def test_windows_of_any_shape_are_found(
    name: str, size: tuple[int, int], kernel: int, stride: int, padding: int
) -> None:
    channels = "4," if name == "conv2d" else ""
    numbers = f"2,3,{size[0]},{size[1]},{channels}{kernel},{stride},{padding}"
    try:
        func = from_spec(f"{name}:{numbers}")
    except OperatorError:
        assume(False)
    spec = recognize(func)
    assert spec is not None
    assert spec.name == name
    assert structural_equal(spec.build(), func)
