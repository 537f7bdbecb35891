import numpy as np
import pytest
from onnx import TensorProto, helper

from compiler.graph.error import ModelError
from compiler.graph.nodes import Graph
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference


def _graph(equation: str, shapes: list[tuple[int, ...]]) -> Graph:
    names = [f"x{number}" for number in range(len(shapes))]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    model = helper.make_model(helper.make_graph([node], "sums", inputs, outputs))
    return read_onnx(model.SerializeToString())


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bhid, bhjd -> bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("bij,bjk", [(2, 3, 4), (2, 4, 5)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij->", [(3, 4)]),
        ("iij->ji", [(3, 3, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]),
        ("i...,i->...", [(3, 4, 5), (3,)]),
        ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
        ("abc,bd,ce->dea", [(2, 3, 4), (3, 5), (4, 6)]),
        ("ij,ij->ij", [(3, 4), (3, 4)]),
        ("ij,kl->kj", [(2, 3), (4, 5)]),
        ("iiii->i", [(3, 3, 3, 3)]),
    ],
)
def test_einstein_sums_are_those_of_numpy(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    arrays = {f"x{n}": rng.random(shape, np.float32) for n, shape in enumerate(shapes)}
    result = run_reference(_graph(equation, shapes), arrays)["y"]
    expected = np.einsum(equation, *arrays.values())
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_a_product_of_matrices_is_one_node() -> None:
    graph = _graph("bhid,bhdj->bhij", [(2, 3, 4, 5), (2, 3, 5, 6)])
    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["matmul"]


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ijk->i", "ij->ik", "ij->ii"])
def test_equations_that_do_not_fit_are_refused(equation: str) -> None:
    with pytest.raises(ModelError, match="Einsum 'y': the equation"):
        _graph(equation, [(3, 4)])
