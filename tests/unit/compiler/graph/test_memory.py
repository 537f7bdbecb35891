from __future__ import annotations

import numpy as np
import pytest

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.builder import GraphBuilder
from compiler.graph.fusion.fuse import fuse
from compiler.graph.memory import (
    ALIGNMENT,
    Lifetime,
    MemoryPlan,
    overwrite,
    place_values,
    plan_memory,
)
from compiler.graph.nodes import Graph, Operand, TensorType, TensorValue, constant
from compiler.graph.rewrite.simplify import simplify
from tests.random_graphs import random_graph

_ROWS = TensorType((16, 32), "float32")
_BYTES = 16 * 32 * 4


def _chain(length: int) -> Graph:
    """Return softmaxes one after another, which are kernels of their own."""
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    for _ in range(length):
        x = builder.add("nn.softmax", x, axis=0)
    return builder.finish([x], ["y"])


def test_a_chain_of_any_length_needs_two_buffers() -> None:
    memory = plan_memory(fuse(_chain(9)))
    assert memory.arena_bytes == memory.lower_bound_bytes == 2 * _BYTES


def test_a_result_is_written_to_the_array_of_the_caller() -> None:
    graph = _chain(1)
    memory = plan_memory(fuse(graph))
    assert memory.arena_bytes == 0
    assert list(memory.outputs.values()) == [0]
    assert not memory.copies


def test_results_that_are_inputs_constants_or_parts_are_copied() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    row = builder.add("nn.softmax", x)
    halves = builder.add_all("split", row, indices_or_sections=2)
    other = builder.add("nn.softmax", halves[0])
    results: list[Operand] = [x, constant(np.ones(3, np.float32)), halves[1], other, other]
    memory = plan_memory(fuse(builder.finish(results, [f"y{n}" for n in range(5)])))
    assert [position for _, position in memory.copies] == [0, 1, 2, 4]
    assert list(memory.outputs) == [other]


def test_parts_of_a_join_lie_one_after_another() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    parts = [builder.add("nn.softmax", x, axis=axis) for axis in (0, 1)]
    joined = builder.add("concat", *parts)
    memory = plan_memory(fuse(builder.finish([builder.add("nn.softmax", joined)])))
    assert [memory.storage(part).offset for part in parts] == [0, _BYTES]
    assert {memory.storage(part).root for part in parts} == {joined}
    assert memory.arena_bytes == 2 * _BYTES


def test_a_dead_value_is_dead_only_after_its_last_view_was_read() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _ROWS)
    row = builder.add("nn.softmax", x)
    flat = builder.add("reshape", row, shape=(512,))
    between = builder.add("nn.softmax", x, axis=0)
    last = builder.add("add", flat, builder.add("reshape", between, shape=(512,)))
    column = builder.add("nn.softmax", last)
    memory = plan_memory(fuse(builder.finish([column])))
    assert memory.dead_ranges(0) == [(_BYTES, memory.arena_bytes)]
    assert memory.dead_ranges(1) == []
    assert memory.dead_ranges(2) == [(0, memory.arena_bytes)]


@pytest.mark.parametrize(
    ("lifetimes", "best_fit_alone"),
    [
        ([(0, 6, 128), (1, 3, 128), (2, 4, 128), (4, 5, 128), (5, 7, 192)], 576),
        ([(0, 1, 448), (1, 2, 448), (2, 3, 256), (2, 3, 256), (3, 4, 256)], 1152),
    ],
)
def test_an_arena_is_no_larger_than_what_is_live(
    lifetimes: list[tuple[int, int, int]], best_fit_alone: int
) -> None:
    roots = {TensorValue("x", _ROWS): Lifetime(*lifetime) for lifetime in lifetimes}
    steps = range(max(lifetime.last for lifetime in roots.values()) + 1)
    least = max(
        sum(each.size_bytes for each in roots.values() if each.first <= step <= each.last)
        for step in steps
    )
    ends = [low + roots[root].size_bytes for root, low in place_values(roots, least).items()]
    assert max(ends) == least < best_fit_alone


def _check_disjoint(memory: MemoryPlan) -> None:
    placed = [
        (root, memory.offsets[root], memory.offsets[root] + lifetime.size_bytes, lifetime)
        for root, lifetime in memory.lifetimes.items()
    ]
    for number, (root, low, high, lifetime) in enumerate(placed):
        assert low % ALIGNMENT == 0
        assert high <= memory.arena_bytes
        for other_root, other_low, other_high, other in placed[:number]:
            is_apart = high <= other_low or other_high <= low
            is_in_place = memory.in_place.get(root) is other_root
            assert not lifetime.overlaps(other) or is_apart or is_in_place


@pytest.mark.parametrize("seed", range(40))
def test_values_of_random_graphs_that_live_together_do_not_overlap(seed: int) -> None:
    memory = plan_memory(fuse(simplify(random_graph(seed, 40))))
    _check_disjoint(memory)
    assert memory.lower_bound_bytes <= memory.arena_bytes


def _dying(memory: MemoryPlan) -> dict[TensorValue, TensorValue]:
    """Return every result of a graph that may take the memory of an operand."""
    chosen: dict[TensorValue, TensorValue] = {}
    for step in range(len(memory.partition.groups)):
        for operand, result in memory.dying_operands(step):
            root = memory.storage(operand).root
            assert isinstance(root, TensorValue)
            if root not in chosen.values():
                chosen.setdefault(result, root)
    return chosen


def test_results_in_place_need_no_second_buffer() -> None:
    memory = plan_memory(fuse(_chain(9)))
    chosen = _dying(memory)
    over = overwrite(memory, chosen)
    assert len(chosen) == 7  # not the first, which reads the input, and not the result of the graph
    assert over.arena_bytes == over.lower_bound_bytes == _BYTES
    assert over.saved_bytes == _BYTES
    assert set(over.offsets.values()) == {0}
    assert over.dead_ranges(3) == []


def test_a_plan_that_saves_nothing_stays_as_it_is() -> None:
    memory = plan_memory(fuse(_chain(9)))
    (first, *_) = _dying(memory).items()
    assert overwrite(memory, dict([first])) is memory
    assert overwrite(memory, {}) is memory


@pytest.mark.parametrize("seed", range(20))
def test_only_a_result_and_its_operand_share_memory_while_both_live(seed: int) -> None:
    memory = plan_memory(fuse(simplify(random_graph(seed, 40))))
    over = overwrite(memory, _dying(memory))
    for result, operand in over.in_place.items():
        assert over.offsets[result] == over.offsets[operand]
        assert over.lifetimes[operand].last == over.lifetimes[result].first
    _check_disjoint(over)
    assert over.lower_bound_bytes <= over.arena_bytes == memory.arena_bytes - over.saved_bytes
