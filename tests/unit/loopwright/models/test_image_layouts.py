"""The layout of images in a model: other layouts are compiled, and the fastest one is chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.package.lower_model import lower_model
from loopwright.locks.lock_file import LockFile
from loopwright.models.compilation import Compilation
from loopwright.models.first_proposals import first_proposals
from loopwright.models.image_layouts import PIXEL_LIMITS, begun_layout, fastest_layout
from loopwright.models.schedules import ProposedKernel, build_candidate, kernel_name
from tests.plan_runner import random_inputs_of
from tests.targets import here
from tuner.candidate import default_candidate
from tuner.replay.base_model import base_model
from tuner.task import Task

_TARGET = here()


@pytest.fixture(scope="module")
def cost_model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return base_model(tmp_path_factory.mktemp("cache")).model


def _convolutions(size: int) -> Graph:
    """Return two convolutions of an image, with a ReLU between them."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("convolutions")
    x = builder.input("x", TensorType((1, 64, size, size), "float32"))
    for _ in range(2):
        weights = constant(rng.uniform(-0.2, 0.2, (64, 64, 1, 1)).astype(np.float32))
        x = builder.add("nn.relu", builder.add("nn.conv2d", x, weights))
    return builder.finish([x], ["y"])


def _slow(graph: Graph) -> Compilation:
    """Return a model whose programs have the default schedules."""
    model = lower_model(graph)
    kernels = {}
    for number, task in enumerate(model.tasks):
        target_task = Task(task.func, _TARGET, task.weight)
        built = build_candidate(target_task, default_candidate(), kernel_name(number, "slow"))
        kernels[task.key] = ProposedKernel(built, default_candidate())
    return Compilation(graph, model, _TARGET, kernels)


def test_a_layout_that_is_faster_is_chosen_and_computes_the_same(cost_model: bytes) -> None:
    graph = _convolutions(14)
    slow = _slow(graph)
    assert slow.model.num_channels_last == 2
    first = slow.executable(slow.first)
    compilation, model = fastest_layout(slow, first, cost_model, 0, progress=False)
    assert compilation.model.num_channels_last == 0
    inputs = random_inputs_of(graph)
    np.testing.assert_allclose(model(inputs["x"]), run_reference(graph, inputs)["y"], atol=1e-4)


def test_a_model_of_one_layout_stays_as_it_is(cost_model: bytes) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 8), "float32"))
    slow = _slow(builder.finish([builder.add("nn.softmax", x)]))
    first = slow.executable(slow.first)
    assert fastest_layout(slow, first, cost_model, 0) == (slow, first)


@pytest.mark.parametrize("max_pixels", PIXEL_LIMITS)
def test_a_lock_file_keeps_the_layout(max_pixels: int, cost_model: bytes, tmp_path: Path) -> None:
    graph = _convolutions(20 if max_pixels > PIXEL_LIMITS[0] else 14)
    compilation = first_proposals(graph, _TARGET, cost_model, 0, max_pixels)
    model = compilation.executable(compilation.first)
    lw.lock(tmp_path / "a.lock", model)
    locked = lw.compile(graph, target=_TARGET, lock=tmp_path / "a.lock")
    assert locked.inspect().num_channels_last == compilation.model.num_channels_last
    assert locked.package.files["model.o"] == model.package.files["model.o"]
    keys = {kernel.workload_key for kernel in LockFile.load(tmp_path / "a.lock").kernels}
    assert keys == set(compilation.tasks)


@pytest.mark.parametrize(("size", "max_pixels"), [(14, 0), (14, 256), (20, 256), (20, 1024)])
def test_a_search_that_is_continued_keeps_its_layout(size: int, max_pixels: int) -> None:
    graph = _convolutions(size)
    begun = {task.key for task in lower_model(graph, max_pixels).tasks}
    assert begun_layout(graph, _TARGET, lambda task: int(task.workload_key in begun)) == max_pixels
    assert begun_layout(graph, _TARGET, lambda _: 0) is None
