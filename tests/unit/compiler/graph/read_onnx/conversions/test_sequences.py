import numpy as np
import pytest
from onnx import parser

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference

X = np.arange(10, dtype=np.float32).reshape(5, 2)


def _run(body: str) -> Array:
    """Return the result `y` of a model with the input `x` and some numbers."""
    text = f"""
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[5, 2] x) => (float[n, m] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64 last = {{-1}}> {{ {body} }}
    """
    return run_reference(read_onnx(parser.parse_model(text)), {"x": X})["y"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = SplitToSequence(x, two) y = SequenceAt(s, one)", X[2:4]),
        ("s = SplitToSequence(x, two) y = SequenceAt(s, last)", X[4:]),
        ("s = SplitToSequence(x, two) y = ConcatFromSequence<axis = 0>(s)", X),
        (
            "s = SplitToSequence<keepdims = 0>(x)"
            " y = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
            X.T,
        ),
        (
            "s = SequenceConstruct(x, x) a = Neg(x) t = SequenceInsert(s, a, last)"
            " y = ConcatFromSequence<axis = 0>(t)",
            np.concatenate([X, -X, X]),
        ),
        (
            "e = SequenceEmpty() s = SequenceInsert(e, x) a = Neg(x) t = SequenceInsert(s, a)"
            " u = SequenceErase(t, zero) y = SequenceAt(u, zero)",
            -X,
        ),
    ],
)
def test_sequences_are_lists_while_a_model_is_read(body: str, expected: Array) -> None:
    np.testing.assert_array_equal(_run(body), expected)


def test_a_loop_collects_tensors_in_a_sequence() -> None:
    body = """
    e = SequenceEmpty()
    t = Constant<value_int = 3>()
    s = Loop(t, , e) <body = step (int64 i, bool c, seq(float[5, 2]) before)
        => (bool d, seq(float[5, 2]) after) { d = Identity(c) after = SequenceInsert(before, x) }>
    y = ConcatFromSequence<axis = 0>(s)
    """
    np.testing.assert_array_equal(_run(body), np.concatenate([X, X, X]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("s = SequenceConstruct(x) y = SequenceAt(s, two)", "the position is 2: expected -1 to 0"),
        ("s = SequenceConstruct(x) y = Identity(s)", "the result y is a sequence"),
        ("s = SequenceConstruct(x) y = Neg(s)", "operand 0 .* is a seq"),
        ("s = SplitToSequence(x, zero) y = SequenceAt(s, zero)", "parts of 0"),
        ("s = SequenceEmpty() y = ConcatFromSequence<axis = 0>(s)", "the sequence is empty"),
    ],
)
def test_sequences_that_do_not_fit_are_refused(body: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        _run(body)
