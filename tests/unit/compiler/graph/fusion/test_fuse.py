from __future__ import annotations

import numpy as np
import pytest

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.builder import GraphBuilder
from compiler.graph.fusion.dominators import between, post_dominators
from compiler.graph.fusion.fuse import MAX_NODES, fuse
from compiler.graph.fusion.group import Partition
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant
from compiler.graph.rewrite.simplify import simplify
from tests.random_graphs import random_graph

_IMAGE = TensorType((1, 4, 6, 6), "float32")
_ROWS = TensorType((6, 8), "float32")
_RNG = np.random.default_rng(0)


def _weights(*shape: int) -> Constant:
    return constant(_RNG.random(shape, np.float32))


def _labels(partition: Partition) -> list[str]:
    return [group.label for group in partition.groups]


def _convolution(builder: GraphBuilder, x: TensorValue) -> TensorValue:
    return builder.add("nn.conv2d", x, _weights(4, 4, 3, 3), padding=(1, 1, 1, 1))


def test_a_convolution_takes_its_bias_the_residual_and_the_activation() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _IMAGE)
    biased = builder.add("add", _convolution(builder, x), _weights(4, 1, 1))
    first = builder.add("nn.relu", builder.add("add", biased, x))
    second = builder.add("nn.relu", builder.add("add", _convolution(builder, first), first))
    partition = fuse(builder.finish([second]))
    assert _labels(partition) == ["conv2d+add+add+relu", "conv2d+add+relu"]


def test_a_convolution_takes_a_transposition_only_if_it_leaves_the_last_axis() -> None:
    builder = GraphBuilder()
    x = _convolution(builder, builder.input("x", _IMAGE))
    y = _convolution(builder, builder.input("y", _IMAGE))
    moved = builder.add("permute_dims", x, axes=(0, 2, 3, 1))
    rows = builder.add("permute_dims", y, axes=(0, 2, 1, 3))
    partition = fuse(builder.finish([moved, rows]))
    assert _labels(partition) == ["conv2d", "permute_dims", "conv2d+permute_dims"]


def test_a_value_with_two_readers_that_meet_again_stays_inside() -> None:
    builder = GraphBuilder()
    x = _convolution(builder, builder.input("x", _IMAGE))
    gate = builder.add("sigmoid", x)
    partition = fuse(builder.finish([builder.add("multiply", x, gate)]))
    assert _labels(partition) == ["conv2d+sigmoid+multiply"]


def test_a_value_that_is_also_a_result_ends_a_group() -> None:
    builder = GraphBuilder()
    x = _convolution(builder, builder.input("x", _IMAGE))
    partition = fuse(builder.finish([x, builder.add("nn.relu", x)]))
    assert _labels(partition) == ["conv2d", "relu"]


def test_a_product_takes_the_transposition_that_splits_heads_but_no_second_one() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    product = builder.add("add", builder.add("matmul", x, _weights(8, 8)), _weights(8))
    heads = builder.add("reshape", product, shape=(6, 2, 4))
    moved = builder.add("permute_dims", heads, axes=(1, 0, 2))
    again = builder.add("nn.relu", builder.add("permute_dims", moved, axes=(2, 1, 0)))
    partition = fuse(builder.finish([again]))
    assert _labels(partition) == ["matmul+add+reshape+permute_dims", "permute_dims+relu"]


def test_a_row_takes_the_maps_around_it() -> None:
    builder = GraphBuilder()
    x, mask = builder.input("x", _ROWS), builder.input("mask", _ROWS)
    scaled = builder.add("add", builder.add("multiply", x, constant(np.float32(0.5))), mask)
    row = builder.add("nn.relu", builder.add("nn.softmax", scaled))
    assert _labels(fuse(builder.finish([row]))) == ["multiply+add+softmax+relu"]


def test_a_map_that_makes_more_elements_is_a_kernel_of_its_own() -> None:
    builder = GraphBuilder()
    x, column = builder.input("x", _ROWS), builder.input("c", TensorType((6, 1), "float32"))
    total = builder.add("add", builder.add("exp", column), x)
    assert _labels(fuse(builder.finish([total]))) == ["exp", "add"]


def test_a_reshape_is_a_view_and_no_kernel() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    flat = builder.add("reshape", builder.add("nn.relu", x), shape=(48,))
    other = builder.add("reshape", builder.add("nn.softmax", x), shape=(48,))
    column = builder.add("matmul", builder.add("add", flat, other), _weights(48, 3))
    partition = fuse(builder.finish([column]))
    assert _labels(partition) == ["relu", "softmax", "add", "matmul"]
    assert set(partition.views) == {flat, other}


def test_a_transposition_of_axes_of_one_element_is_a_view() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 6, 1, 8), "float32"))
    moved = builder.add("permute_dims", builder.add("nn.softmax", x), axes=(2, 1, 3, 0))
    product = builder.add("matmul", moved, _weights(1, 3))
    assert set(fuse(builder.finish([product])).views) == {moved}


def test_parts_of_a_concatenation_are_written_in_place() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _IMAGE)
    parts = [_convolution(builder, x), builder.add("nn.softmax", x)]
    joined = builder.add("concat", *parts, axis=1)
    further = builder.add("nn.max_pool2d", joined, pool_size=(2, 2))
    partition = fuse(builder.finish([further]))
    assert _labels(partition) == ["conv2d", "softmax", "max_pool2d"]
    assert list(partition.joins.values()) == [tuple(parts)]


@pytest.mark.parametrize("axis", [2, 3])
def test_parts_that_do_not_follow_each_other_are_copied(axis: int) -> None:
    builder = GraphBuilder()
    x = builder.input("x", _IMAGE)
    parts = [_convolution(builder, x), builder.add("nn.softmax", x)]
    further = builder.add("nn.softmax", builder.add("concat", *parts, axis=axis))
    assert not fuse(builder.finish([further])).joins


def test_arrays_of_the_caller_have_neither_parts_nor_joins() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _IMAGE)
    low, high = builder.add_all("split", x, indices_or_sections=2, axis=1)
    row = builder.add("nn.softmax", low)
    joined = builder.add("concat", row, builder.add("nn.softmax", high), axis=1)
    partition = fuse(builder.finish([joined]))
    assert _labels(partition) == ["split", "softmax", "softmax", "concat"]


def test_nodes_that_stay_alone_are_taken_by_no_group() -> None:
    builder = GraphBuilder()
    x = _convolution(builder, builder.input("x", _IMAGE))
    graph = builder.finish([builder.add("tanh", builder.add("nn.relu", x))])
    assert _labels(fuse(graph, [graph.nodes[1]])) == ["conv2d", "relu", "tanh"]


def test_groups_are_bounded() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    for _ in range(2 * MAX_NODES):
        x = builder.add("tanh", x)
    assert [len(group.nodes) for group in fuse(builder.finish([x])).groups] == [MAX_NODES] * 2


def test_post_dominators_are_where_all_paths_meet() -> None:
    # 0 -> 1 -> 3 -> exit, 0 -> 2 -> 3, 2 -> 4 -> exit
    successors = [[1, 2], [3], [3, 4], [5], [5]]
    assert post_dominators(successors) == [5, 3, 5, 5, 5]
    assert between([[1, 2], [3], [3], [4]], 0, 3) == [1, 2, 3]


def _check_order(graph: Graph, partition: Partition) -> None:
    """Check that each value is made by one group, before it is read."""
    made: set[object] = set(graph.inputs)
    numbers = [node for group in partition.groups for node in group.nodes]
    assert len(set(numbers)) == len(numbers)

    def is_made(operand: object) -> bool:
        if isinstance(operand, Constant) or operand in made:
            return True
        assert isinstance(operand, TensorValue)
        if operand in partition.views:
            return is_made(partition.views[operand].operand)
        return operand in partition.joins and all(map(is_made, partition.joins[operand]))

    for group in partition.groups:
        assert all(map(is_made, group.inputs))
        made.update(group.outputs)
    assert all(map(is_made, graph.outputs))


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_random_graphs_can_run_in_their_order(seed: int) -> None:
    graph = simplify(random_graph(seed, 30))
    _check_order(graph, fuse(graph))
