from __future__ import annotations

import copy
import pickle
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.executor import load
from compiler.executor.package import read_package
from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import symbol
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant
from compiler.graph.reference import run_reference
from tests.plan_runner import random_inputs_of

_RNG = np.random.default_rng(0)
_TARGET = "cpu -num-cores=1"


def _weights(*shape: int) -> Constant:
    return constant(_RNG.uniform(-0.2, 0.2, shape).astype(np.float32))


def _layer(builder: GraphBuilder, x: TensorValue) -> TensorValue:
    y = builder.add("nn.conv2d", x, _weights(8, 8, 3, 3), padding=(1, 1, 1, 1))
    return builder.add("nn.relu", builder.add("add", builder.add("add", y, _weights(8, 1, 1)), x))


def _network() -> Graph:
    """Return two equal layers of an image, and a classifier."""
    builder = GraphBuilder("network")
    x = builder.input("image", TensorType((1, 8, 10, 10), "float32"))
    x = _layer(builder, _layer(builder, x))
    rows = builder.add("reshape", x, shape=(8, 100))
    classes = builder.add("add", builder.add("matmul", rows, _weights(100, 5)), _weights(5))
    return builder.finish([builder.add("nn.softmax", classes)], ["probabilities"])


@pytest.fixture(scope="module")
def graph() -> Graph:
    return _network()


@pytest.fixture(scope="module")
def executable(graph: Graph) -> lw.Executable:
    return lw.compile(graph, target=_TARGET)


def test_a_compiled_model_computes_what_its_reference_computes(
    graph: Graph, executable: lw.Executable
) -> None:
    inputs = random_inputs_of(graph)
    expected = run_reference(graph, inputs)["probabilities"]
    np.testing.assert_allclose(executable.run(**inputs)["probabilities"], expected, atol=1e-5)
    np.testing.assert_allclose(executable.run(inputs)["probabilities"], expected, atol=1e-5)
    np.testing.assert_allclose(executable(inputs["image"]), expected, atol=1e-5)
    executable.set_input("image", inputs["image"])
    executable.run()
    np.testing.assert_allclose(executable.get_output(0), expected, atol=1e-5)


def test_kernels_have_schedules_that_rules_propose(executable: lw.Executable) -> None:
    assert all(kernel.sketch for kernel in executable.plan.kernels.values())


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((1, 8, 10, 9), np.float32), r"image.*\[1, 8, 10, 10\]"),
        (np.zeros((1, 8, 10, 10)), "float32"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    executable: lw.Executable, array: np.ndarray, reason: str
) -> None:
    with pytest.raises(lw.ArgumentError, match=reason):
        executable.run(image=array)
    with pytest.raises(lw.ArgumentError, match=reason):
        executable.profile(image=array)


def test_unknown_and_missing_inputs_are_refused(executable: lw.Executable) -> None:
    with pytest.raises(lw.ArgumentError, match="missing input 'image'"):
        executable.run({})
    with pytest.raises(lw.ArgumentError, match="unknown input 'picture'"):
        executable.run(image=np.zeros((1, 8, 10, 10), np.float32), picture=1)
    with pytest.raises(lw.ArgumentError, match="unknown input 'picture'"):
        executable.profile(picture=1)


def test_a_profile_has_each_step(executable: lw.Executable) -> None:
    profile = executable.profile()
    assert [step.label for step in profile.steps][-1] == "softmax"
    assert profile.total_secs == pytest.approx(sum(profile.secs_by_task().values()))
    assert profile.steps[0].peak_share


def test_an_inspection_says_what_was_fused(executable: lw.Executable) -> None:
    inspection = executable.inspect()
    operators = {kernel.operators: kernel.calls for kernel in inspection.kernels}
    assert operators == {"conv2d+add+add+relu": 2, "matmul+add": 1, "softmax": 1}
    assert (inspection.num_nodes, inspection.num_views, inspection.num_calls) == (12, 1, 4)
    assert inspection.arena_bytes == inspection.lower_bound_bytes
    assert "4 calls of 3 kernels, 1 views" in str(inspection)


def test_an_inspection_says_how_much_results_in_place_save(executable: lw.Executable) -> None:
    inspection = executable.inspect()
    assert "in place save" not in str(inspection)
    inspection = replace(inspection, num_in_place=2, saved_bytes=4096)
    assert "; 2 calls in place save 4,096)" in str(inspection)


def test_a_saved_model_runs_again(graph: Graph, executable: lw.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "network.lwm")
    inputs = random_inputs_of(graph)
    results = load(tmp_path / "network.lwm").run(inputs)
    np.testing.assert_array_equal(results["probabilities"], executable(inputs["image"]))


def test_a_model_with_open_shapes_is_refused_with_advice() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((symbol("batch"), 4), "float32"))
    with pytest.raises(ModelError, match=r"input x has the shape \(batch, 4\).*shapes="):
        lw.compile(builder.finish([builder.add("nn.relu", x)]))


_ARCH, _CPU = (
    ("x86_64", "haswell") if platform.machine() == "aarch64" else ("aarch64", "cortex-a72")
)
_FOREIGN = f"cpu -mcpu={_CPU} -num-cores=1"


def _small() -> Graph:
    builder = GraphBuilder("small")
    x = builder.input("x", TensorType((4, 8), "float32"))
    return builder.finish([builder.add("nn.relu", x)], ["y"])


def test_a_model_for_another_cpu_is_saved_and_does_not_run_here(tmp_path: Path) -> None:
    model = lw.compile(_small(), target=_FOREIGN)
    model.save(tmp_path / "small.lwm")
    assert read_package(tmp_path / "small.lwm").arch == _ARCH
    assert repr(model) == f"<Executable small for {_FOREIGN}>"
    with pytest.raises(lw.PackageError, match=f"was built for {_ARCH}: this machine is"):
        model.run(x=np.zeros((4, 8), np.float32))
    with pytest.raises(lw.PackageError, match=f"was built for {_ARCH}: this machine is"):
        model.profile()


def test_a_model_for_another_cpu_is_not_tuned_here() -> None:
    with pytest.raises(lw.TargetError, match=f"{_CPU}.*this machine can't measure it"):
        lw.compile(_small(), target=_FOREIGN, trials=16)
    with pytest.raises(lw.TargetError, match="this machine can't measure it"):
        lw.compile(_small(), target=_FOREIGN, url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"seed": -1}, "seed is -1: expected a number from 0 to 2147483647"),
        ({"seed": "a"}, "seed is 'a': expected a number"),
        ({"trials": -1}, "trials is -1: expected a number from 0 to 100000, or None"),
        ({"trials": True}, "trials is True: expected a number"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        lw.compile(_small(), **arguments)


def test_a_compiled_model_is_not_pickled_or_copied(executable: lw.Executable) -> None:
    for model in (executable, executable.executor):
        for use in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="save it, and load the package where you need it"):
                use(model)
