"""Panels of constants are made before a run, so they cost nothing in it."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import compile_kernel
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tuner.space.features.features import named_features
from tuner.space.generate import design_space
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

TARGET = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
NO_PACKING = 1.0  # a cycle is added to each part


def sketches(spec: str, target: Target = TARGET) -> dict[str, Sketch]:
    space = design_space(Task(ops.from_spec(spec), target))
    return {sketch.name: sketch for sketch in space.sketches}


def packing_cycles(sketch: Sketch, points: int) -> float:
    choices = sketch.draw(32, np.random.default_rng(0))
    return float(2 ** named_features(sketch, choices, TARGET)["cycles.packing"].mean() * points)


def test_packing_of_constants_is_not_counted() -> None:
    plain, constant = sketches("dense:16,64,96"), sketches("dense:16,64,96,constant=W")
    assert plain.keys() == constant.keys()
    points = 16 * 64 * 96
    name = "packed_right_whole"
    assert packing_cycles(plain[name], points) > 100
    assert packing_cycles(constant[name], points) == pytest.approx(NO_PACKING)
    both = "packed_whole"
    left = packing_cycles(constant[both], points)
    assert NO_PACKING < left < packing_cycles(plain[both], points) - 100


def test_what_is_packed_from_transformed_constants_is_not_counted() -> None:
    spec = "conv2d_winograd:1,16,8,8,16,1,constant=W"
    (nest,) = sketches(spec)["packed_right_whole"].nests
    assert {nest.accesses[index].buffer for index in nest.prepacked} == {"kernel_tiles"}


def test_other_workloads_and_gpus_pack_in_each_run() -> None:
    for nests in (sketch.nests for sketch in sketches("dense:16,64,96").values()):
        assert not any(nest.prepacked for nest in nests)
    gpu = Target("cuda -arch=sm_86 -emulated")
    for sketch in sketches("dense:32,64,96,constant=W", gpu).values():
        assert not any(nest.prepacked for nest in sketch.nests)


@pytest.mark.parametrize("spec", ["dense:16,32,8", "conv2d:1,8,4,4,8,3,1,1"])
def test_a_sketch_and_its_kernels_agree_on_what_is_packed_before(spec: str) -> None:
    func = ops.from_spec(f"{spec},constant=W")
    for sketch in sketches(f"{spec},constant=W").values():
        candidate = sketch.candidate(sketch.draw(1, np.random.default_rng(1))[0])
        artifact = compile_kernel(candidate.trace.apply_to(func), TARGET)
        packs = bool(artifact.packed_copies)
        assert packs or not any(nest.prepacked for nest in sketch.nests)
