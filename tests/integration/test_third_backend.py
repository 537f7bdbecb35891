"""A backend that the project does not know is tuned end to end: see `tests/toy_backend`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.driver import build, emit, toolchain, toolchains
from compiler.executor.error import ArtifactError
from compiler.target.error import TargetError
from compiler.target.target import Target
from service.coordinator.measurer import WorkerMeasurer
from service.store.results.toolchains import is_outdated
from tests.toy_backend.toy import (
    COLUMNS,
    RESOURCES,
    ROWS,
    ToyModule,
    ToyTarget,
    cost_secs,
    registered,
)
from tuner.finish.finish import finish
from tuner.loop.search_result import SearchResult
from tuner.loop.tune import tune
from tuner.search.make import make_strategy
from tuner.space.generate import design_space
from tuner.task import Task
from workers.child.runner import ChildRunner

NUM_POINTS = (len(ROWS) - 1) * len(COLUMNS)  # the filter drops those with whole rows
FUNC = lw.parse("""
@T.prim_func
def add(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32, 8), "float32")):
    for i, j in T.grid(32, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
""")


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture(scope="module")
def measurer() -> Iterator[WorkerMeasurer]:
    with ChildRunner(child_module="tests.toy_backend.child") as runner:
        yield WorkerMeasurer(runner, libraries=())


@pytest.fixture(scope="module")
def search(measurer: WorkerMeasurer) -> SearchResult:
    with registered():
        return tune(Task(FUNC, Target("toy")), measurer=measurer, max_trials=NUM_POINTS + 1, seed=0)


def test_the_text_of_its_target_makes_a_target_of_its_class() -> None:
    assert isinstance(Target("toy"), ToyTarget)
    with pytest.raises(TargetError, match="expected 'cpu', 'cuda', 'toy'"):
        Target("tpu")


def test_its_rules_and_its_filter_make_the_design_space() -> None:
    space = design_space(Task(FUNC, Target("toy")))
    assert [sketch.rules for sketch in space.sketches] == [("split_both",)]
    assert space.count(0).number == NUM_POINTS


def test_every_trial_is_measured_by_its_clock_and_correct(search: SearchResult) -> None:
    assert len(search.trials) == NUM_POINTS + 1
    for trial in search.trials:
        assert trial.measurement.error is None, trial.measurement
        assert trial.measurement.toolchain == "toy evaluator 1"
        assert trial.measurement.resources == RESOURCES
        scheduled = trial.candidate.trace.apply_to(FUNC).func
        assert trial.best_secs == pytest.approx(cost_secs(scheduled))


def test_a_cost_model_learns_from_its_features(search: SearchResult) -> None:
    assert any(trial.predicted is not None for trial in search.trials)
    strategy = make_strategy("evolutionary", Task(FUNC, Target("toy")), seed=0)
    strategy.tell(search.trials)
    model = strategy.learned()
    assert model is not None
    assert b'"kind": "toy"' in model.partition(b"\n")[0]


def test_the_best_is_the_schedule_with_the_fewest_pieces(
    search: SearchResult, measurer: WorkerMeasurer
) -> None:
    final = finish(Task(FUNC, Target("toy")), search.trials, measurer, seed=0)
    assert final is not None
    assert final.kept is not None
    assert final.kept.trial.best_secs == pytest.approx(9e-5)  # 8 for one piece of rows, and 1


def test_its_kernel_computes_and_is_saved_and_loaded(search: SearchResult, tmp_path: Path) -> None:
    best = min(search.trials, key=lambda trial: trial.best_secs)
    module = build(best.candidate.trace.apply_to(FUNC), "toy")
    assert isinstance(module, ToyModule)
    module.save(tmp_path / "kernel.lwk")
    given = np.arange(256, dtype="float32").reshape(32, 8)
    for each in (module, lw.Module.load(tmp_path / "kernel.lwk")):
        result = np.empty_like(given)
        each(given, result)
        np.testing.assert_array_equal(result, given + 1)
    assert module.get_source() == emit(best.candidate.trace.apply_to(FUNC).func, Target("toy")).text


def test_a_kernel_of_a_backend_that_is_not_registered_is_refused() -> None:
    artifact = build(FUNC, "toy").artifact
    assert artifact.backend == "toy"
    message = "no backend for 'tpu' targets: registered: cpu, cuda, toy"
    with pytest.raises(ArtifactError, match=message):
        lw.Module(replace(artifact, backend="tpu"))


def test_what_its_toolchain_made_is_current() -> None:
    assert toolchains() == {toolchain("cpu"), toolchain("cuda"), "toy evaluator 1"}
    assert not is_outdated("toy evaluator 1")
    assert is_outdated("toy evaluator 0")
