"""`lw.tune(libraries=...)`: calls of libraries are candidates, only if a user asks for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler import te
from compiler.target.target import Target
from loopwright.local.library_choice import LibraryChoice
from tests.unit.compiler.executor.functions.test_imported import negating
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.warm_start import COLD

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    X = T.alloc_buffer((4,))
    for i in range(4):
        with T.sblock("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] + 1.0
    T.call_packed("test.negate", X, B)
"""


def _biased() -> lw.PrimFunc:
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    bias = te.placeholder((16,), name="bias")
    k = te.reduce_axis((0, 16), "k")
    Y = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "Y")
    C = te.compute((16, 16), lambda i, j: te.max(Y[i, j] + bias[j], 0.0), "C")
    return te.create_prim_func([A, B, bias, C], "biased")


def test_a_search_measures_the_call_of_a_library_and_may_choose_it() -> None:
    func = _biased()
    result = lw.tune(
        func, target="cpu -num-cores=1", max_trials=3, libraries=["blas"], progress=False
    )
    default, called, _ = result.trials
    assert (default.sketch, called.sketch.partition("/")[0]) == ("default", "blas")
    assert called.measurement.ok, called.measurement.message
    assert called.final is not None  # it is in the final comparison, however slow its trial was
    kernel = lw.build(called.trace.apply_to(func), "cpu -num-cores=1")
    assert kernel.artifact.functions == ("blas.matmul",)
    inputs = lw.random_inputs(func, 1)
    out = np.full((16, 16), np.nan, "float32")
    kernel(*inputs.values(), out)
    expected = np.maximum(inputs["A"] @ inputs["B"] + inputs["bias"], 0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_no_library_is_called_without_being_chosen() -> None:
    task = Task(_biased(), Target("cpu -mcpu=x86-64 -num-cores=2"))
    assert not any("blas" in sketch.name for sketch in design_space(task).sketches)
    assert LibraryChoice.of(()).first(task, COLD, None) is COLD
    choice = LibraryChoice.of(["blas"])
    rules = choice.rules(None, task.target)
    first = choice.first(task, COLD, rules).candidates
    assert [candidate.sketch.partition("/")[0] for candidate in first] == ["blas", "blas"]
    space = design_space(task, rules)
    assert [sketch.name for sketch in design_space(task).sketches] == [
        sketch.name for sketch in space.sketches if not sketch.name.startswith("blas")
    ]


def test_wrong_libraries_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown library 'blass': did you mean 'blas'"):
        lw.tune("matmul:4,4,4", libraries=["blass"])
    with pytest.raises(TypeError, match="libraries is 'blas': expected a list of names"):
        lw.tune("matmul:4,4,4", libraries="blas")
    with pytest.raises(ValueError, match=r"kernels for 'cuda .*' call no library: got blas"):
        LibraryChoice.of(["blas"]).rules(None, Target("cuda -arch=sm_80"))


def test_a_program_that_calls_a_function_of_a_module_is_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with negating(tmp_path, monkeypatch):
        result = lw.tune(PROGRAM, target="cpu -num-cores=1", max_trials=2, progress=False)
    assert all(trial.measurement.ok for trial in result.trials)
