"""Convolutions as products of matrices by threads."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.nodes import static_shape
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes, draw, names, space_of
from tuner.space.features.cuda.batch import CudaBatch

WINDOWS = ["window_tiles", "window_tiles_async"]


def kernel_of(schedule: Schedule) -> DeviceKernel:
    (kernel,) = lower_for_device(schedule.func, H200.limits).kernels
    return kernel


@pytest.mark.parametrize(
    ("spec", "sketch"),
    [
        # A map of 7 x 7 pixels, with an epilogue; then 3 channels, a stride, and two images.
        ("conv2d:1,8,7,7,16,3,1,1,activation=relu", "window_tiles"),
        ("conv2d:2,3,11,11,12,5,2,2", "window_tiles_async"),
    ],
)
def test_random_schedules_compute_the_program(spec: str, sketch: str) -> None:
    func = ops.from_spec(spec)
    schedules = draw(func, sketch, 1)
    assert_computes(func, schedules)
    # Neither the windows nor the padded image are written to memory.
    assert [b.name for b in kernel_of(schedules[0]).buffers] == [b.name for b in func.buffers]


@pytest.mark.parametrize(
    ("spec", "image", "is_wide"),
    [
        # Wide tiles of one small map would be fewer than the multiprocessors.
        ("conv2d:1,512,7,7,512,3,1,1", (512, 9, 9), False),
        ("conv2d:8,512,7,7,512,3,1,1", (8, 512, 9, 9), True),
        ("conv2d:1,3,224,224,64,7,2,3", (3, 230, 230), True),
    ],
)
def test_maps_have_tiles_for_all_multiprocessors(
    spec: str, image: tuple[int, ...], is_wide: bool
) -> None:
    func = ops.from_spec(spec)
    sketches = [s for s in space_of(func).sketches if s.name in WINDOWS]
    assert [sketch.name for sketch in sketches] == WINDOWS
    _, weights, output = func.buffers
    for sketch in sketches:
        kernel = CudaBatch(sketch, sketch.draw(1, np.random.default_rng(0)), H200).kernel
        assert bool(kernel.tables.nest.lanes) == is_wide
        if is_wide:
            assert [read.read_conflicts[0] for read in kernel.staged] == [1, 1]
        # Windows overlap: the memory holds each pixel of the padded image once.
        shapes = (image, static_shape(weights), static_shape(output))
        assert {access.size_bytes for access in kernel.accesses} == {4 * prod(s) for s in shapes}


def test_depthwise_kernels_have_no_windows() -> None:
    assert not set(names(ops.from_spec("depthwise_conv2d:1,16,9,9,3,1,1"))) & set(WINDOWS)
