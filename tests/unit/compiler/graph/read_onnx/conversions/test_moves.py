import numpy as np
import pytest
from onnx import parser

from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference


@pytest.mark.parametrize(
    ("begin", "end", "step", "expected"),
    [
        # ONNX clamps the begin of a slice backwards to the first element; Python to none.
        (-9, -9, -1, [0]),
        (-9, -9, -3, [0]),
        (-5, -9, -1, [0]),
        (9, -9, -2, [4, 2, 0]),
        (-2, 0, -1, [3, 2, 1]),
        (-9, 9, 2, [0, 2, 4]),
        (-9, -2, 1, [0, 1, 2]),
    ],
)
def test_a_slice_is_clamped_as_onnx_says(
    begin: int, end: int, step: int, expected: list[int]
) -> None:
    text = f"""
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[2, 5] x) => (float y)
    <int64[1] b = {{{begin}}}, int64[1] e = {{{end}}}, int64[1] a = {{-1}}, int64[1] s = {{{step}}}>
    {{ y = Slice(x, b, e, a, s) }}
    """
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    result = run_reference(read_onnx(parser.parse_model(text)), {"x": x})["y"]
    np.testing.assert_array_equal(result, x[:, expected])
