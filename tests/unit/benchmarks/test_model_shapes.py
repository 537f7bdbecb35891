"""Every layer of real models has schedules on every CPU, also for sizes that nothing divides."""

from __future__ import annotations

import random

import pytest

from benchmarks.model_shapes.__main__ import main
from benchmarks.model_shapes.shapes import CPUS, FEW_SCHEDULES, model_shapes
from benchmarks.model_shapes.sizes import space_size
from compiler.ops.spec import parse_spec

ODD_SHAPES = (
    "attention:1,12,197,197,64",
    "attention:1,8,77,77,64",
    "attention:1,8,4096,77,40",
    "attention:1,8,1024,77,80",
    "attention:1,12,127,127,64,causal=True",
    "attention:1,32,129,129,64,causal=True",
    "attention:1,12,37,37,64",
    "matmul:1,50257,768",
    "softmax:64,50257",
    "layer_norm:197,768",
    "group_norm:1,320,64,64,groups=32,activation=silu",
    "conv2d:1,3,299,299,32,3,2",
    "conv2d:1,64,73,73,80,1",
)
SMALL = ("add", "batch_norm", "embedding", "multiply", "sigmoid")
"""Operators that have fewer schedules if a shape is a few vectors, or if operands share the sets of
a cache.
"""
ONE_OUTPUT = "dense:1,1,"
"""The last layers of recommenders are one dot product of a few vectors."""
NUM_SAMPLED = 5


def test_the_table_has_many_shapes_and_operators() -> None:
    shapes = model_shapes()
    assert len(shapes) >= 500
    assert len({shape.spec for shape in shapes}) == len(shapes)
    names = {parse_spec(shape.spec).name for shape in shapes}
    assert names >= {"attention", "conv1d", "conv2d", "dense", "depthwise_conv2d", "group_norm"}
    assert names >= {"grouped_query_attention", "layer_norm"}


@pytest.mark.parametrize("spec", ODD_SHAPES)
def test_sizes_that_nothing_divides_have_schedules(spec: str) -> None:
    for cpu in ("znver3", "znver5", "cortex-a72", "x86-64-v2"):
        assert space_size(spec, cpu).schedules >= FEW_SCHEDULES, cpu


@pytest.mark.parametrize("cpu", CPUS)
def test_a_sample_of_the_table_has_schedules(cpu: str) -> None:
    for shape in random.Random(cpu).sample(model_shapes(), NUM_SAMPLED):
        size = space_size(shape.spec, cpu)
        assert size.schedules, shape
        is_small = parse_spec(shape.spec).name in SMALL or shape.spec.startswith(ONE_OUTPUT)
        assert is_small or size.schedules >= FEW_SCHEDULES, shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "no such"], "--model no such: no model has this in its name; there are"),
        (["--cpus", "znver4,no-such"], "--cpus: "),
    ],
)
def test_an_unknown_model_or_cpu_is_an_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
