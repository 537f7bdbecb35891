import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Attr, Graph
from compiler.graph.rewrite.cancel_movement import cancel_movement
from tests.graph_rewrites import image, operators_after

_SHAPE = (2, 3, 4)


def _chain(*steps: tuple[str, dict[str, Attr]]) -> Graph:
    """Return operators one after another."""
    builder = GraphBuilder()
    x = builder.input("x", image(*_SHAPE))
    for op, attrs in steps:
        [x] = builder.apply(op, [x], attrs)
    return builder.finish([x], ["y"])


@pytest.mark.parametrize(
    "steps",
    [
        [("permute_dims", {"axes": (2, 0, 1)}), ("permute_dims", {"axes": (1, 2, 0)})],
        [("permute_dims", {"axes": (0, 1, 2)})],
        [("reshape", {"shape": (6, 4)}), ("reshape", {"shape": _SHAPE})],
        [("expand_dims", {"axis": (1,)}), ("squeeze", {"axis": (1,)})],
        [("broadcast_to", {"shape": _SHAPE})],
        [("astype", {"dtype": "float64"})],
        [("concat", {"axis": 1})],
        [("strided_slice", {"axes": (1,), "begin": (0,), "end": (9,), "strides": (1,)})],
        [("nn.pad", {"pad_width": ((0, 0),) * 3})],
    ],
)
def test_movements_that_change_nothing_are_removed(
    steps: list[tuple[str, dict[str, Attr]]],
) -> None:
    assert operators_after(_chain(*steps), cancel_movement) == []


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("permute_dims", {}), ("permute_dims", {"axes": (1, 0, 2)})], "permute_dims"),
        ([("expand_dims", {"axis": (0,)}), ("reshape", {"shape": (6, 4)})], "reshape"),
    ],
)
def test_movements_one_after_another_become_one(
    steps: list[tuple[str, dict[str, Attr]]], expected: str
) -> None:
    assert operators_after(_chain(*steps), cancel_movement) == [expected]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("permute_dims", {"axes": (0, 1, 2)[::-1]}),
        ("flip", {"axis": 1}),
        ("strided_slice", {"axes": (1,), "begin": (2,), "end": (-9,), "strides": (-1,)}),
    ],
)
def test_movements_that_change_the_order_stay(op: str, attrs: dict[str, Attr]) -> None:
    assert operators_after(_chain((op, attrs)), cancel_movement) == [op]


def test_a_tensor_that_is_joined_with_itself_is_not_removed() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 3))
    graph = builder.finish([builder.add("concat", x, x)], ["y"])
    assert operators_after(graph, cancel_movement) == ["concat"]
