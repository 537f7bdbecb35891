"""Features of whole candidates, checked against numbers worked out by hand."""

from math import log2

import numpy as np
import pytest

from compiler import ops
from compiler.target.cpu import CpuTarget
from tuner.space.cpu_space import CPU_SPACE
from tuner.space.design_space import SketchSpace
from tuner.space.features.features import FEATURE_NAMES, features, named_features
from tuner.space.features.groups.buffers import UPDATED
from tuner.space.generate import design_space
from tuner.space.rules.cpu.rule_names import CPU_RULE_NAMES
from tuner.space.search_space import RANK
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

AVX2 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=4")
SPECS = ["matmul:64,64,64", "conv2d:1,8,14,14,16,3,1,1", "row_sum:64,64", "transpose:64,48"]


def row(sketch: Sketch, *decisions: tuple[int, ...]) -> Ints:
    choices = [k.choice(d) for k, d in zip(sketch.knobs, decisions, strict=True)]
    assert None not in choices, "these are options"
    return np.array([choices], np.int64)


def features_of(spec: str, name: str, *decisions: tuple[int, ...]) -> dict[str, float]:
    space = design_space(Task(ops.from_spec(spec), AVX2))
    (sketch,) = (s for s in space.sketches if s.name == name)
    columns = named_features(sketch, row(sketch, *decisions), AVX2)
    return {name: float(column[0]) for name, column in columns.items()}


def test_a_product_by_hand() -> None:
    found = features_of("matmul:64,64,64", "cached", (2, 2, 4, 4), (1, 2, 2, 16), (2, 8, 4))
    assert found["target.vector_bits"] == 8
    assert found["target.num_cores"] == 2
    assert found["tag.cached_write"] == 1
    assert found["tag.fused"] == 0
    assert found["flops"] == log2(2 * 64**3)
    # Register tile: 4 rows of two vectors of 8 lanes.
    assert found["vector_length"] == 4
    assert found["vector_efficiency"] == 1
    assert found["rows"] == 2
    assert found["vectors_per_row"] == 2
    assert found["accumulators"] == 3
    assert found["register_use"] == (8 + 2 + 1) / 16
    assert found["flops_per_load"] == pytest.approx(log2(8 / (4 + 2)))
    assert found["unrolled_body"] == log2(8 * 4)
    assert found["inner_trip"] == 3
    # Level 4 (the inner reduction loop) works on C 4x16, A 4x32 and B 32x16, in lines of 64
    # bytes, half a line more where a row is not the whole matrix's.
    c, a, b = 4 * (64 + 32), 4 * (128 + 32), 32 * (64 + 32)
    assert found["level4.bytes"] == pytest.approx(log2(c + a + b))
    assert found["level4.trips"] == log2(2 * 1 * 2 * 2 * 2 * 4 * 2)
    assert found["level4.intensity"] == pytest.approx(log2(8 * 4 * 4 * 16 / (c + a + b)))
    assert found["buffer0.bytes4"] == log2(4 * 16 * 4)
    assert found["buffer0.lines4"] == pytest.approx(log2(c / 64))
    inputs = sorted([found["buffer1.lines4"], found["buffer2.lines4"]])
    assert inputs == pytest.approx([log2(a / 64), log2(b / 64)])
    assert found["buffer3.bytes4"] == 0  # there is no fourth buffer
    # C stays where it is along k, A along j, B along i; the nearest loop is in the register tile
    # (level 6) for A and B, and the unrolled one (level 5) for C, with one tile's data between.
    assert found["buffer0.reuse.type"] == UPDATED
    assert found["buffer0.reuse5"] == log2(4)
    assert found["buffer0.reuse.level"] == 6
    assert found["buffer0.reuse.count"] == log2(4)
    assert found["buffer0.reuse.points"] == log2(4 * 16)
    assert sorted(found[f"buffer{i}.reuse6"] for i in (1, 2)) == [log2(4), log2(16)]
    assert [found[f"buffer{i}.reuse.level"] for i in (1, 2)] == [7, 7]
    assert found["ops.fma"] == 1
    assert found["ops.add"] == found["ops.mul"] == 0
    # j is contiguous in the output: its columns come first, then those of i.
    assert [found[f"spatial0.{n}"] for n in ("extent", 0, 1, 3, 6)] == [6, 0, 1, 1, 4]
    assert [found[f"spatial1.{n}"] for n in ("extent", 0, 1, 3, 6)] == [6, 1, 1, 2, 2]
    assert [found[f"summed0.{n}"] for n in ("extent", 0, 2, 4, 5, 6)] == [6, 0, 1, 3, 2, 0]
    # Two parallel iterations on four cores.
    assert found["parallel.extent"] == 1
    assert found["parallel.balance"] == 0.5


def test_a_convolution_by_hand() -> None:
    # 16 channels = 2*2*1*4, 14 rows = 7*1*2*1, 14 columns = 1*1*1*14, 8 channels in = 2*4,
    # rows of the window = 1*3, columns of it = 1*1*3; padding comes tile by tile.
    found = features_of(
        "conv2d:1,8,14,14,16,3,1,1",
        "direct/tilewise",
        (2, 2, 1, 4),
        (7, 1, 2, 1),
        (1, 1, 1, 14),
        (2, 4),
        (1, 3),
        (1, 1, 3),
    )
    assert found["tag.padded_at_tile"] == 1
    assert found["tag.padded_at_root"] == 0
    assert found["flops"] == pytest.approx(log2(2 * 16 * 14 * 14 * 8 * 3 * 3))
    # A row of 14 is a vector of 8, one of 4 and one of 2.
    assert found["vectors_per_row"] == 3
    assert found["vector_efficiency"] == pytest.approx(14 / 24)
    assert found["register_use"] == (12 + 3 + 1) / 16
    assert found["unrolled_steps"] == pytest.approx(log2(3))
    # One tile of level 1 (8 channels, 2 rows, 14 columns) reads 8 channels of 4 rows of 16, whole
    # rows of the padded image; the output's rows are whole, too.
    names = [f"buffer{i}.lines1" for i in range(3)]
    sizes = sorted(64 * 2 ** found[name] for name in names)
    output, image = 8 * 2 * 14 * 4, 8 * 4 * 16 * 4
    weights = 8 * (8 * 3 * 3) * 4  # all of eight output channels, one after another
    assert sizes == pytest.approx(sorted([output, image, weights]))
    assert found["parallel.extent"] == pytest.approx(log2(2 * 7))


@pytest.mark.parametrize("spec", SPECS)
def test_every_column_is_a_number_and_has_its_name(spec: str) -> None:
    space = design_space(Task(ops.from_spec(spec), AVX2))
    rng = np.random.default_rng(0)
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 64, rng)
        matrix = space.features(index, choices)
        assert matrix.shape == (len(choices), CPU_SPACE.num_features)
        assert matrix.dtype == np.float32
        assert np.isfinite(matrix).all()
        assert tuple(named_features(sketch, choices, AVX2)) == FEATURE_NAMES


@pytest.mark.parametrize("spec", SPECS)
def test_a_candidate_has_the_same_features_in_any_batch(spec: str) -> None:
    space = design_space(Task(ops.from_spec(spec), AVX2))
    choices = space.draw(0, 32, np.random.default_rng(0))
    batch = space.features(0, choices)
    for position in (0, len(choices) // 2, len(choices) - 1):
        alone = space.features(0, choices[position : position + 1])
        assert alone[0].tolist() == batch[position].tolist()


def test_the_last_column_is_the_rank_of_the_estimate_in_the_space() -> None:
    """The share of a sample of the space with a shorter estimate: the same in any batch."""
    space = design_space(Task(ops.matmul(64, 64, 64), AVX2))
    assert CPU_SPACE.feature_names[-1] == RANK
    matrices = [
        space.features(index, sketch.draw(512, np.random.default_rng(7)))
        for index, sketch in enumerate(space.sketches)
    ]
    matrix = np.vstack(matrices)
    order = np.argsort(CPU_SPACE.total_estimates(matrix))
    ranks = matrix[order, -1]
    assert (np.diff(ranks) >= 0).all()
    # Another sample of the same space: a share of 0.3 of it is within the best 0.3, by and large.
    for share in (0.1, 0.3, 0.5, 0.9):
        assert np.quantile(ranks, share) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("spec", ["matmul:64,64,64", "conv2d:1,32,14,14,32,3,1,1"])
def test_sketches_of_one_space_share_the_scale_of_ranks(spec: str) -> None:
    """Whole candidates are compared: Winograd's products have fewer points than a convolution."""
    space = design_space(Task(ops.from_spec(spec), AVX2))
    points = {sketch.nests[0].facts.points for sketch in space.sketches}
    assert (len(points) > 1) == spec.startswith("conv2d")
    totals, matrices = [], []
    for index, sketch in enumerate(space.sketches):
        matrix = space.features(index, sketch.draw(64, np.random.default_rng(1)))
        per_point = np.exp2(CPU_SPACE.total_estimates(matrix).astype(np.float64))
        totals += (per_point * sketch.nests[0].facts.points).tolist()
        matrices.append(matrix)
    ratios, ranks = np.vstack(matrices)[:, -2:].T[:, np.argsort(totals)]
    assert (np.diff(ranks) >= 0).all()
    relative = np.log2(np.sort(totals) / min(totals))
    assert ratios - ratios[0] == pytest.approx(relative, abs=1e-4)


def test_the_estimate_of_a_candidate_is_the_sum_of_its_nests() -> None:
    matrix = np.zeros((1, CPU_SPACE.num_features), np.float32)
    matrix[0, CPU_SPACE.feature_names.index("cycles.total")] = log2(6)
    matrix[0, CPU_SPACE.feature_names.index("cycles.others")] = log2(2)
    assert CPU_SPACE.total_estimates(matrix).tolist() == pytest.approx([3.0])


def test_different_decisions_have_different_features() -> None:
    space: SketchSpace = design_space(Task(ops.matmul(64, 64, 64), AVX2))
    choices = space.draw(0, 200, np.random.default_rng(0))
    matrix = features(space.sketches[0], choices, AVX2)
    assert len(np.unique(matrix, axis=0)) > 0.9 * len(choices)


def test_every_built_in_rule_has_its_name() -> None:
    assert CPU_SPACE.rule_names == CPU_RULE_NAMES
