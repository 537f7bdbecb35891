import numpy as np
import pytest

from compiler.executor.functions.registry import register_func
from compiler.graph.builder import GraphBuilder
from compiler.graph.extents import symbol
from compiler.graph.nodes import Array, Constant, Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.graph.text.parser import parse_graph
from compiler.graph.text.printer import print_graph
from compiler.graph.verify import verify_graph
from compiler.script import ScriptError, parse_module

OPERATORS = """
@R.function
def linear_relu(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 3), "float32")):
    with R.dataflow():
        lv: R.Tensor((2, 3), "float32") = R.matmul(x, w)
        gv: R.Tensor((2, 3), "float32") = R.multiply(lv, R.const(2.0, "float32"))
        R.output(gv)
    return gv
"""
LOOPS = """
@I.ir_module
class Module:
    @T.prim_func
    def scaled_product(
        x: T.Buffer((2, 8), "float32"),
        w: T.Buffer((8, 3), "float32"),
        y: T.Buffer((2, 3), "float32"),
    ):
        for i, j in T.grid(2, 3):
            with T.block("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.float32(0)
        for i, j, k in T.grid(2, 3, 8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj] * T.float32(2)

    @R.function
    def linear_relu(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 3), "float32")):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.scaled_product, (x, w), out_sinfo=R.Tensor((2, 3), "float32"))
            R.output(gv)
        return gv
"""
LIBRARY = """
@R.function
def linear_relu(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 3), "float32")):
    with R.dataflow():
        gv = R.call_dps_packed(
            "test.scaled_product", (x, w), out_sinfo=R.Tensor((2, 3), "float32")
        )
        R.output(gv)
    return gv
"""


def _scaled_product(x: Array, w: Array, y: Array) -> None:
    y[:] = x @ w * 2


register_func("test.scaled_product", _scaled_product)


@pytest.mark.parametrize("text", [OPERATORS, LOOPS, LIBRARY], ids=["operators", "loops", "library"])
def test_one_function_is_read_printed_and_run_in_each_of_its_three_abstractions(text: str) -> None:
    graph = parse_graph(text)
    verify_graph(graph)
    printed = print_graph(graph)
    assert print_graph(parse_graph(printed)) == printed
    x, w = (np.random.default_rng(0).random(shape, np.float32) for shape in ((2, 8), (8, 3)))
    np.testing.assert_allclose(run_reference(graph, {"x": x, "w": w})["gv"], x @ w * 2, rtol=1e-6)


def _awkward_graph() -> Graph:
    """Return a graph with symbols, weights, and names that are not identifiers."""
    builder = GraphBuilder("main")
    rows = symbol("n")
    x = builder.input("input.1", TensorType((rows, 8), "float32"))
    weights = np.random.default_rng(0).random((8, 3), np.float32)
    product = builder.add("matmul", x, constant(weights, "fc.weight"), name="/fc/MatMul")
    special = constant(np.array([np.nan, -np.inf, 0.1], np.float32))
    total = builder.add("add", product, special, name="class")
    return builder.finish([total, special], ["output:0", "limits"])


def test_symbols_weights_and_names_survive_the_text() -> None:
    graph = _awkward_graph()
    printed = print_graph(graph)
    weights = {c.digest: c.elements for c in graph.constants()}
    parsed = parse_graph(printed, constants=weights)
    verify_graph(parsed)
    assert print_graph(parsed) == printed
    assert [value.name for value in parsed.inputs] == ["input.1"]
    assert parsed.output_names == ("output:0", "limits")
    assert list(parsed.constants()) == list(graph.constants())
    assert 'x: R.Tensor(("n", 8)' in printed.replace("input_1", "x")
    assert "R.Tensor((n, 3)" in printed


def test_a_skeleton_has_the_weights_of_its_model_by_digest_alone() -> None:
    graph = _awkward_graph()
    skeleton = parse_graph(print_graph(graph))
    [weights, *_] = skeleton.constants()
    assert weights.array is None
    assert isinstance(graph.nodes[0].inputs[1], Constant)
    assert weights.digest == graph.nodes[0].inputs[1].digest


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("gv = R.matmul(x, x)\n    return gv", "expected one type, and as many columns as rows"),
        ("gv = R.ad(x, x)\n    return gv", "there is no graph operator ad"),
        ("gv = R.add(x, y)\n    return gv", "y is not defined"),
        ("gv = R.add(x, x, axis=1)\n    return gv", "add has no attribute axis"),
        ('gv: R.Tensor((2, 9), "float32") = R.add(x, x)\n    return gv', "the type is float32"),
        ("x = R.add(x, x)\n    return x", "x is defined twice"),
        ("gv = __import__('os').system('true')\n    return gv", "there is no graph operator"),
        ("while True: pass", "expected an assignment or a return"),
        ("gv = R.add(x, x)", "f returns nothing"),
        ('gv = R.add(x, R.const([1, [2]], "float32"))\n    return gv', "no array of float32"),
        ("gv = R.call_tir(cls.g, (x,), x)\n    return gv", "expected a type, such as"),
    ],
)
def test_a_mistake_is_refused_with_its_position(body: str, message: str) -> None:
    text = f'@R.function\ndef f(x: R.Tensor((2, 8), "float32")):\n    {body}\n'
    with pytest.raises(ScriptError, match=message) as caught:
        parse_graph(text)
    assert caught.value.line >= 1


def test_a_reader_of_programs_refers_to_the_reader_of_graphs() -> None:
    with pytest.raises(ScriptError, match=r"lw\.parse_graph reads graphs"):
        parse_module(LIBRARY)


@pytest.mark.parametrize("name", ["torch-jit-export", "main graph", "7", "R", "class", "网络", "x"])
def test_a_graph_of_any_name_is_read_from_its_text(name: str) -> None:
    builder = GraphBuilder(name)
    x = builder.input("x", TensorType((2, 3), "float32"))
    text = print_graph(builder.finish([builder.add("nn.relu", x)]))
    assert print_graph(parse_graph(text)) == text
