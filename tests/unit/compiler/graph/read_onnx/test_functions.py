import numpy as np
import pytest
from onnx import parser

from compiler.graph.error import ModelError
from compiler.graph.read_onnx import nodes, read_onnx
from compiler.graph.reference import run_reference

SCALED = """
<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
main (float[3] x) => (float[3] y) { y = local.scaled<factor = 3.0>(x) }

<domain: "local", opset_import: ["" : 17, "local" : 1]>
scaled <factor> (x) => (y)
{
    by = Constant<value_float: float = @factor>()
    doubled = local.twice(x)
    y = Mul(doubled, by)
}

<domain: "local", opset_import: ["" : 17]>
twice (x) => (y) { y = Add(x, x) }
"""
ENDLESS = """
<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
main (float[3] x) => (float[3] y) { y = local.f(x) }

<domain: "local", opset_import: ["" : 17, "local" : 1]>
f (x) => (y)
{
    a = local.f(x)
    y = local.f(a)
}
"""


def test_functions_of_a_model_are_expanded_with_their_attributes() -> None:
    graph = read_onnx(parser.parse_model(SCALED))
    result = run_reference(graph, {"x": np.arange(3, dtype=np.float32)})["y"]
    np.testing.assert_array_equal(result, [0, 6, 12])


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(ModelError, match="nested more than 32 deep"):
        read_onnx(parser.parse_model(ENDLESS))


def test_functions_that_double_at_each_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_READ_NODES", 2500)
    levels = "".join(
        f"""
<domain: "local", opset_import: ["" : 17, "local" : 1]>
f{k} (x) => (y)
{{
    a = local.f{k + 1}(x)
    y = local.f{k + 1}(a)
}}
"""
        for k in range(25)
    )
    last = '\n<domain: "local", opset_import: ["" : 17]>\nf25 (x) => (y) { y = Identity(x) }\n'
    main = ENDLESS.partition("\n\n")[0].replace("local.f(", "local.f0(") + "\n"
    with pytest.raises(ModelError, match="more than 2500 nodes"):
        read_onnx(parser.parse_model(main + levels + last))


def test_an_operator_without_conversion_is_replaced_by_the_body_that_onnx_gives() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) { z = MeanSquaredError(x, y) }
    """
    with pytest.raises(ModelError, match="ONNX has no such operator in version 17"):
        read_onnx(parser.parse_model(text))
