"""Tiles that do not divide an axis compute the same as the oracle, for any odd sizes."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.task import Task

COLUMNS = st.sampled_from([67, 71, 79, 83, 97, 103, 113, 127, 131, 137])
ROWS = st.sampled_from([1, 3, 17, 19, 23, 29])
STEPS = st.integers(1, 24)
CORES = st.sampled_from([1, 2])


def check_one(func: PrimFunc, cores: int, data: st.DataObject) -> None:
    space = design_space(Task(func, here(cores)))
    sketch = data.draw(st.integers(0, len(space.sketches) - 1), label="sketch")
    check_candidates(func, space, [sketch], each=2)


@settings(max_examples=6, deadline=None)
@given(rows=ROWS, columns=COLUMNS, steps=STEPS, cores=CORES, data=st.data())
def test_products_of_odd_sizes(
    rows: int, columns: int, steps: int, cores: int, data: st.DataObject
) -> None:
    check_one(ops.matmul(rows, columns, steps), cores, data)


@settings(max_examples=3, deadline=None)
@given(rows=ROWS, columns=COLUMNS, steps=STEPS, cores=CORES, data=st.data())
def test_consumers_of_products_of_odd_sizes(
    rows: int, columns: int, steps: int, cores: int, data: st.DataObject
) -> None:
    check_one(ops.matmul_bias_relu(rows, columns, steps), cores, data)


@settings(max_examples=6, deadline=None)
@given(
    size=st.tuples(ROWS, COLUMNS),
    kernel=st.sampled_from([1, 2, 3]),
    stride=st.sampled_from([1, 2]),
    is_depthwise=st.booleans(),
    data=st.data(),
)
def test_windows_over_images_of_odd_sizes(
    size: tuple[int, int], kernel: int, stride: int, is_depthwise: bool, data: st.DataObject
) -> None:
    height, width = size
    window = f"{kernel},{stride},{kernel // 2}"
    spec = f"depthwise_conv2d:1,2,{height + 2},{width},{window}"
    if not is_depthwise:
        spec = f"conv2d:1,3,{height + 2},{width},2,{window}"
    check_one(ops.from_spec(spec), 1, data)
