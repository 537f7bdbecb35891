from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.package.lower_model import lower_model
from loopwright.models.compilation import Compilation, Kernels
from loopwright.models.records import open_records
from loopwright.models.schedules import ProposedKernel, build_candidate, kernel_name
from loopwright.models.tuned_model import faster_model
from service.wire.trial_limit import MAX_TRIALS
from tests.plan_runner import random_inputs_of
from tests.targets import here
from tuner.candidate import Candidate, default_candidate
from tuner.search.first import first_candidates
from tuner.task import Task

_TARGET = here()


def _model(extent: int) -> Graph:
    """Return two equal products, and a softmax."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("products")
    x = builder.input("x", TensorType((extent, extent), "float32"))
    for _ in range(2):
        weights = constant(rng.uniform(-0.2, 0.2, (extent, extent)).astype(np.float32))
        x = builder.add("nn.relu", builder.add("matmul", x, weights))
    return builder.finish([builder.add("nn.softmax", x)], ["y"])


def _compilation(graph: Graph, candidates: dict[str, Candidate]) -> Compilation:
    """Return a model with chosen kernels, by the keys of its programs, else the default ones."""
    model = lower_model(graph)
    first: Kernels = {}
    for number, task in enumerate(model.tasks):
        candidate = candidates.get(task.key, default_candidate())
        tuned = Task(task.func, _TARGET, task.weight)
        built = build_candidate(tuned, candidate, kernel_name(number, task.func.name))
        first = {**first, task.key: ProposedKernel(built, candidate)}
    return Compilation(graph, model, _TARGET, first)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the records of a test apart; the base model is the one of all tests."""
    monkeypatch.setattr("loopwright.models.tuned_model.default_directory", lambda: tmp_path)
    return tmp_path


def test_a_model_is_tuned_and_its_measurements_are_kept(cache: Path) -> None:
    graph = _model(24)
    inputs = random_inputs_of(graph)
    for _ in range(2):  # the second call measures nothing
        model = lw.compile(graph, target=_TARGET, trials=32, seed=3)
        np.testing.assert_allclose(model(inputs["x"]), run_reference(graph, inputs)["y"], atol=1e-5)
        assert {kernel.calls for kernel in model.inspect().kernels} == {1, 2}
        with open_records(cache, "") as records:
            database = records._database
            with database.read() as session:
                rows = session.connection().exec_driver_sql(
                    "SELECT num_measured, weight, state FROM jobs"
                )
                assert [tuple(row) for row in rows] == [(16, 1.0, "succeeded")] * 2


@pytest.mark.parametrize("is_proposed_first", [False, True])
def test_the_faster_schedule_of_each_program_is_chosen(is_proposed_first: bool) -> None:
    graph = _model(96)
    product = lower_model(graph).tasks[0]
    [proposed] = first_candidates(Task(product.func, _TARGET), 1)
    slow = default_candidate()
    first, other = (proposed, slow) if is_proposed_first else (slow, proposed)
    compilation = _compilation(graph, {product.key: first})
    model = compilation.executable(compilation.first)
    chosen = faster_model(compilation, model, {product.key: [other]}, 0)
    assert chosen.inspect().kernels[0].sketch == proposed.sketch
    assert (chosen is model) == is_proposed_first
    if not is_proposed_first:
        assert chosen.comparison is not None
        assert chosen.comparison.speedup > 1
        assert chosen.comparison.interval[0] <= chosen.comparison.speedup
    inputs = random_inputs_of(graph)
    np.testing.assert_allclose(chosen(inputs["x"]), run_reference(graph, inputs)["y"], atol=1e-5)


def test_a_schedule_that_does_not_fit_is_left_out() -> None:
    graph = _model(16)
    products, softmax = lower_model(graph).tasks
    [foreign] = first_candidates(Task(products.func, _TARGET), 1)
    compilation = _compilation(graph, {})
    model = compilation.executable(compilation.first)
    assert faster_model(compilation, model, {softmax.key: [foreign]}, 0) is model


@pytest.mark.parametrize("trials", [-1, MAX_TRIALS + 1, 1.5, True, "100"])
def test_trials_out_of_range_are_refused(trials: object) -> None:
    with pytest.raises(ValueError, match=f"trials is {trials!r}: expected a number from 0 to"):
        lw.compile(_model(8), trials=trials)  # type: ignore[arg-type]


def test_wrong_arguments_are_refused_before_anything_is_done() -> None:
    graph = _model(8)
    with pytest.raises(lw.TargetError, match="frobnicator"):
        lw.compile(graph, target="frobnicator", trials=32)
    with pytest.raises(TypeError, match="did you mean 'trials'"):
        lw.compile(graph, trails=32)  # type: ignore[call-arg]
    with pytest.raises(lw.InvalidAddressError):
        lw.compile(graph, trials=32, url="not an address")


def _doubled(size: int) -> lw.Graph:
    return lw.parse_graph(
        f"""
@I.ir_module
class Module:
    @T.prim_func
    def doubled(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
        for i in range({size}):
            with T.block("B"):
                vi = T.axis.spatial({size}, i)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor(({size},), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor(({size},), "float32"))
            R.output(y)
        return y
"""
    )


def test_a_warning_names_the_line_of_the_caller() -> None:
    with pytest.warns(lw.FallbackWarning, match="1 of 1 programs") as warned:
        lw.compile(_doubled(4096), target=_TARGET)
    assert warned[0].filename == __file__


def test_small_programs_have_the_default_schedule_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    model = lw.compile(_doubled(4), target=_TARGET)
    assert model.inspect().kernels[0].problem
    assert not recwarn.list
