"""What every backend must do. Subclass `BackendContract`, and return a backend and a target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.backends.backend import Backend
from compiler.backends.module import Module
from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.driver import build
from compiler.executor.error import ArgumentError, ArtifactError
from compiler.ir.interpret.error_growth import check_case
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.target.target import Target

FUNC = ops.matmul(4, 6, 8, bias=True, activation="relu")
WITHOUT_RELU = ops.matmul(4, 6, 8, bias=True)


def trial_arrays(backend: Backend, target: Target) -> TrialArrays:
    case = check_case(FUNC, 0)
    return backend.arrays(FUNC, target, case)


class BackendContract:
    """Tests of a backend: override `backend` and `target`."""

    def backend(self) -> Backend:
        raise NotImplementedError

    def target(self) -> Target:
        """Return a target of this host."""
        raise NotImplementedError

    def test_it_names_its_kind(self) -> None:
        backend, target = self.backend(), self.target()
        assert backend.kind == target.kind == type(target).kind
        assert target.label.split("/")[0] == backend.kind
        assert issubclass(backend.module_class, Module)
        assert backend.toolchain()

    def test_targets_of_the_host_are_read_back(self) -> None:
        for target in self.backend().host_targets():
            assert Target(target.name) == target
            assert target.num_cores >= 1

    def test_a_kernel_computes_what_its_program_does(self) -> None:
        inputs = random_inputs(FUNC, seed=0)
        (expected,) = interpret(FUNC, inputs).values()
        *names, output = (buffer.name for buffer in FUNC.buffers)
        result = np.zeros_like(expected)
        build(FUNC, self.target())(*(inputs[name] for name in names), result)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        assert output == FUNC.buffers[-1].name

    def test_an_artifact_is_loaded_from_its_file(self, tmp_path: Path) -> None:
        module = build(FUNC, self.target())
        assert module.artifact.toolchain == self.backend().toolchain()
        module.save(tmp_path / "kernel.lwk")
        again = Module.load(tmp_path / "kernel.lwk")
        assert type(again) is self.backend().module_class
        assert again.artifact == module.artifact

    def test_an_artifact_of_another_backend_is_refused(self) -> None:
        artifact = build(FUNC, self.target()).artifact
        with pytest.raises(ArtifactError, match="tpu"):
            Module(replace(artifact, backend="tpu"))

    def test_arrays_that_do_not_fit_are_refused(self) -> None:
        wrong = [np.zeros((2, 2), np.float32)] * len(FUNC.buffers)
        with pytest.raises(ArgumentError):
            build(FUNC, self.target())(*wrong)

    def test_an_output_that_overlaps_an_input_is_refused(self) -> None:
        memory = np.zeros(16, np.float32)
        with pytest.raises(ArgumentError, match="is written, and overlaps parameter"):
            build(ops.relu(8), self.target())(memory[:8], memory[4:12])

    def test_a_wrong_result_is_found(self) -> None:
        """The measurement of a candidate rests on this comparison."""
        arrays = trial_arrays(self.backend(), self.target())
        build(FUNC, self.target()).bind(*arrays.fresh_arrays())()
        assert arrays.check() < 1e-4
        build(WITHOUT_RELU, self.target()).bind(*arrays.fresh_arrays())()
        with pytest.raises(WrongResultError):
            arrays.check()

    def test_an_output_that_is_not_written_is_found(self) -> None:
        arrays = trial_arrays(self.backend(), self.target())
        arrays.fresh_arrays()
        with pytest.raises(WrongResultError):
            arrays.check()
