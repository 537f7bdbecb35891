"""Winograd's tiles as sketches of a convolution: which programs have them, and their results."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import ops
from compiler.backends.backend import backend_of
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.passes.cpu.hoist_constants import constant_copies
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import names, space_of

PACKED = ("packed_right", "packed_right_whole")


def convolution(ci: int = 16, co: int = 16, size: int = 9, **options: Any) -> PrimFunc:
    func: PrimFunc = ops.conv2d(1, ci, size, size, co, 3, 1, 1, **options)
    return func


def tiles(func: PrimFunc) -> set[str]:
    """Return the first parts of the names of sketches with tiles."""
    return {name.split("/")[0] for name in names(func) if name.startswith("winograd")}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_convolution_is_searched_directly_and_by_tiles(layout: str) -> None:
    func = convolution(layout=layout, bias=True, activation="relu")
    assert tiles(func) == {"winograd_4", "winograd_2"}
    assert not names(func)[0].startswith("winograd")
    assert {name.split("/")[-1] for name in names(func) if "winograd" in name} <= set(PACKED)


def test_the_error_budget_of_a_task_excludes_tiles() -> None:
    assert tiles(convolution().with_attr("error_budget", 5e-6)) == {"winograd_2"}
    assert tiles(convolution().with_attr("error_budget", 0.0)) == set()


@pytest.mark.parametrize(
    "func",
    [
        convolution(ci=8),
        convolution(co=8),
        ops.conv2d(1, 16, 9, 9, 16, 3, 2, 1),
        ops.conv2d(1, 16, 9, 9, 16, 3, 1, 2, 2),
        ops.conv2d(1, 16, 9, 9, 16, 5, 1, 2),
        convolution(dtype="float16"),
    ],
    ids=["few inputs", "few outputs", "stride", "dilation", "kernel", "type"],
)
def test_other_convolutions_have_no_tiles(func: PrimFunc) -> None:
    assert tiles(func) == set()


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("options", [{"constant": "W"}, {"bias": True, "activation": "relu"}])
def test_every_candidate_is_correct(options: dict[str, Any], num_cores: int) -> None:
    func = convolution(**options)
    space = space_of(func, here(num_cores))
    assert len(space.sketches) > 2
    check_candidates(func, space, each=1)


def test_constant_weights_are_transformed_before_a_run() -> None:
    func = convolution(constant="W")
    space = space_of(func)
    sketch = next(s for s in space.sketches if s.name.startswith("winograd_4"))
    program = sketch.trace.apply_to(func).func
    copies = {b.name for b in constant_copies(program.body, set(constant_params(func)))}
    assert {"kernel_rows", "kernel_tiles"} < copies
    assert {nest.facts.name for nest in sketch.nests} == {"products"}
    assert backend_of(space.target).packs_constants


def test_padding_is_part_of_the_copy_of_the_image() -> None:
    sketch = next(s for s in space_of(convolution()).sketches if "winograd_4" in s.name)
    assert "pad_temp" not in sketch.trace.apply_to(convolution()).func.script()
