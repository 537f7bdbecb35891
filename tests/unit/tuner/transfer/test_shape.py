"""Distances between shapes and between targets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from compiler.ops.spec import from_spec
from compiler.target.target import Target
from tests.unit.tuner.transfer.drawn import FOUR_CORES, ONE_CORE, matmuls
from tuner.transfer.shape import Shape, distance, shape_from_json, shape_of, target_distance


def shape(spec: str) -> Shape:
    return shape_of(from_spec(spec))


@pytest.mark.parametrize(
    ("one", "other", "doublings"),
    [
        ("matmul:64,64,64", "matmul:64,64,64", 0.0),
        ("matmul:64,64,64", "matmul:128,64,64", 1.0),
        ("matmul:64,64,64", "matmul:32,64,128", 2.0),
        ("softmax:64,64", "softmax:64,256", 2.0),
        ("conv2d:1,8,16,16,8,3,2,1", "conv2d:1,8,16,16,16,3,2,1", 1.0),
        ("matmul:64,64,64", "dense:64,64,64", math.inf),
        ("matmul:64,64,64", "matmul:64,64,64:float64", math.inf),
    ],
)
def test_distance_is_in_doublings(one: str, other: str, doublings: float) -> None:
    a, b = shape(one), shape(other)
    # Blocks count by their points: the padding of a convolution hardly does.
    assert distance(a, b) == pytest.approx(doublings, rel=0.1)
    assert distance(a, b) == distance(b, a)


def test_another_stride_is_at_a_distance() -> None:
    two, three = "conv2d:1,8,14,14,8,3,2,1", "conv2d:1,8,21,21,8,3,3,1"
    assert distance(shape(two), shape(three)) >= math.log2(3 / 2)


@settings(max_examples=40)
@given(matmuls, matmuls, matmuls)
def test_a_way_round_is_not_shorter(one: str, other: str, third: str) -> None:
    a, b, c = map(shape, (one, other, third))
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9


def test_a_shape_comes_back_as_it_was() -> None:
    kept = shape("conv2d:1,8,16,16,8,3,2,1")
    assert shape_from_json(kept.operator, kept.to_json()) == kept


def test_targets_are_apart_by_their_cores() -> None:
    one, four = Target(ONE_CORE), Target(FOUR_CORES)
    assert target_distance(one, four) == target_distance(four, one) == 2.0
    assert target_distance(one, Target("cpu -mcpu=znver4 -num-cores=1")) == math.inf
