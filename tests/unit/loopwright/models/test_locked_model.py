"""Models with the schedules of a lock file: the same code, or a refusal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, constant
from compiler.graph.reference import run_reference
from loopwright.errors import LockError
from loopwright.locks.lock_file import LockFile
from loopwright.models import first_proposals
from tests.plan_runner import random_inputs_of

_RNG = np.random.default_rng(0)
_TARGET = "cpu -num-cores=1"


def _weights(*shape: int) -> Constant:
    return constant(_RNG.uniform(-0.2, 0.2, shape).astype(np.float32))


@pytest.fixture(scope="module")
def graph() -> Graph:
    builder = GraphBuilder("classifier")
    x = builder.input("rows", TensorType((4, 24), "float32"))
    hidden = builder.add("nn.relu", builder.add("matmul", x, _weights(24, 16)))
    classes = builder.add("matmul", hidden, _weights(16, 5))
    return builder.finish([builder.add("nn.softmax", classes)], ["probabilities"])


@pytest.fixture(scope="module")
def model(graph: Graph) -> lw.Executable:
    return lw.compile(graph, target=_TARGET, seed=3)


@pytest.fixture
def path(model: lw.Executable, tmp_path: Path) -> Path:
    path = tmp_path / "a.lock"
    lw.lock(path, model)
    return path


def test_a_locked_model_has_the_same_code_and_computes_the_same(
    graph: Graph, model: lw.Executable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a schedule was proposed")

    monkeypatch.setattr(first_proposals, "propose_kernels", refuse)
    locked = lw.compile(graph, target=_TARGET, lock=path)
    assert locked.package.files["model.o"] == model.package.files["model.o"]
    inputs = random_inputs_of(graph)
    expected = run_reference(graph, inputs)["probabilities"]
    np.testing.assert_allclose(locked.run(inputs)["probabilities"], expected, atol=1e-5)


def test_all_programs_are_locked_with_their_traces(model: lw.Executable, path: Path) -> None:
    locked = {kernel.workload_key: kernel.schedule for kernel in LockFile.load(path).kernels}
    assert locked == {lw.structural_hash(func): trace for func, target, trace in model.schedules()}
    assert any(trace.instructions for trace in locked.values())


def test_a_program_that_is_missing_is_refused(graph: Graph, path: Path) -> None:
    first, *others = LockFile.load(path).kernels
    LockFile(others).save(path)
    with pytest.raises(LockError, match=f"{first.name} is not in"):
        lw.compile(graph, target=_TARGET, lock=path)


def test_another_number_of_cores_and_another_compiler_are_refused(graph: Graph, path: Path) -> None:
    with pytest.raises(LockError, match=r"not locked for .*-num-cores=7 in"):
        lw.compile(graph, target="cpu -num-cores=7", lock=path)
    old = {"toolchain": "loopwright-codegen 7"}
    LockFile(k.model_copy(update=old) for k in LockFile.load(path).kernels).save(path)
    with pytest.raises(LockError, match="install that version, or `loopwright lock --rebuild"):
        lw.compile(graph, target=_TARGET, lock=path)


def test_a_lock_file_and_trials_exclude_each_other(graph: Graph, path: Path) -> None:
    with pytest.raises(ValueError, match="lock is given with trials"):
        lw.compile(graph, target=_TARGET, lock=path, trials=32)
