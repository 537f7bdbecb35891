"""Places of an image as columns of a matrix: what that applies to, and that it is right."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.driver import emit
from tests.targets import here, level, runs_here
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cpu.flat_columns import FlatColumns
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.task import Task

FLAT = [
    "conv2d:1,32,4,4,16,1",
    "conv2d:1,16,3,32,12,1",
    "conv2d:1,16,6,8,12,1",
    "conv2d:2,16,6,12,7,1",
    "conv2d:1,24,12,10,10,1,bias=True,activation=relu",
    "conv3d:1,8,4,6,4,12,1",
]
OTHERS = [
    "conv2d:1,16,8,8,16,3,1,1",
    "conv2d:1,16,8,8,16,1,2",  # stepped over
    "conv2d:1,16,8,8,16,1,layout=NHWC",
    "matmul:32,32,32",
    "batch_matmul:4,8,8,16",
    "softmax:8,16",
]


PIXELS = [
    "conv2d:1,16,7,7,24,1",
    "conv2d:2,20,7,7,16,1,bias=True,activation=relu",
    "conv2d:1,16,7,7,40,1,constant=W",
    "conv2d:1,12,14,14,8,1",
]


def flat(spec: str) -> list[SketchBuilder]:
    (inlined,) = AutoInline().apply(SketchBuilder.begin(ops.from_spec(spec), level(3)))
    return [draft for draft in FlatColumns().apply(inlined) if draft.name]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", FLAT)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    flat = [i for i, sketch in enumerate(space.sketches) if sketch.name.startswith("flat")]
    check_candidates(func, space, flat, each=4)


@pytest.mark.parametrize("spec", FLAT)
def test_single_places_are_columns(spec: str) -> None:
    assert len(flat(spec)) == 1


@pytest.mark.parametrize("spec", OTHERS)
def test_what_does_not_run_on_is_left_alone(spec: str) -> None:
    assert flat(spec) == []


@runs_here(3)
@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", PIXELS)
def test_every_product_over_pixels_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, level(3, num_cores)))
    products = [i for i, sketch in enumerate(space.sketches) if sketch.name.startswith("pixels")]
    assert products
    check_candidates(func, space, products, each=2)


def test_pixels_that_fill_no_vectors_are_the_rows_of_a_product() -> None:
    """49 pixels would be tiles of one vector. The image is copied into panels at once."""
    func = ops.from_spec("conv2d:1,16,7,7,32,1,bias=True")
    space = design_space(Task(func, level(3)))
    sketch = next(s for s in space.sketches if s.name == "pixels/transposed/packed_whole")
    blocks = [site.block for site in sites(sketch.trace.apply_to(func).func)]
    assert sum("A" in {read.buffer.name for read in block.reads} for block in blocks) == 1
    assert len(blocks) == 4  # two copies into panels, the sums, and the bias


def test_vectors_cross_from_row_to_row() -> None:
    """Rows of 12 are no whole vectors, and still none is cut or gathered."""
    (draft,) = flat("conv2d:1,16,12,12,8,1")
    text = emit(draft.schedule.func, level(3)).text
    assert "gather" not in text
    assert "scatter" not in text
    assert "<4 x float>" not in text


def test_every_core_has_rounds_of_its_own() -> None:
    """Of 16 x 56 places, 56 panels of 16."""
    func = ops.conv2d(1, 32, 16, 56, 16, 1)
    space = design_space(Task(func, level(3, num_cores=2)))
    (sketch,) = (s for s in space.sketches if s.name.startswith("flat"))
    (panels,) = (k for k in sketch.knobs if k.options[0].prod() == 56)
    assert panels.options[:, 0].min() == 8
