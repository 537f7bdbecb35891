"""Kernels in the emulator, beside the oracle: correct ones, and ones with planted faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from compiler.backends.backend import backend_of
from compiler.backends.inspection import Emulation
from compiler.driver import inspect
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.runtime.kernel_params import params_of
from compiler.runtime.measurement import ErrorKind
from compiler.script.parser import parse
from compiler.target.target import Target
from workers.measure.measure import CandidateMeasurer
from workers.wire.request import MeasureRequest

TARGET = Target("cuda -gpu=h200 -emulated")


def scaled(extent: int) -> PrimFunc:
    return parse(f"""
@T.prim_func
def scale(A: T.Buffer(({extent},), "float32"), B: T.Buffer(({extent},), "float32")):
    for i in range({extent}):
        with T.sblock("B"):
            vi = T.axis.spatial({extent}, i)
            B[vi] = A[vi] * T.float32(3)
""")


def artifact_of(func: PrimFunc, change: Callable[[str], str]) -> Artifact:
    """Return the artifact of a program whose CUDA text was changed."""
    backend = backend_of(TARGET)
    source = backend.emit(func, TARGET)
    changed = replace(source, text=change(source.text))
    assert changed != source
    params = params_of(func.buffers, stored_buffers(func.body))
    return backend.compile(func.name, params, changed, TARGET)


def with_a_race(text: str) -> str:
    """Have all threads of a block write to one element."""
    return re.sub(r"(__global__.*?\) \{\n)", r"\1  B[0] = A[threadIdx.x];\n", text, flags=re.DOTALL)


def with_another_factor(text: str) -> str:
    return text.replace("3.0f", "2.0f")


def emulation_of(func: PrimFunc, change: Callable[[str], str]) -> Emulation:
    emulation = backend_of(TARGET).emulate(func, artifact_of(func, change))
    assert emulation is not None
    return emulation


@pytest.mark.parametrize("extent", [256, 1 << 20])
def test_a_correct_kernel_is_equal_to_the_oracle(extent: int) -> None:
    inspection = inspect(scaled(extent), "cuda -arch=sm_90a")
    emulation = inspection.emulation
    assert emulation is not None
    assert emulation.is_correct, emulation
    assert emulation.is_complete == (extent == 256)
    assert "no faults; equal to the oracle" in inspection.facts["emulated"]
    assert "no faults" in str(inspection)


@pytest.mark.parametrize("extent", [256, 1 << 20])
def test_a_wrong_result_is_found_also_if_some_blocks_are_left_out(extent: int) -> None:
    emulation = emulation_of(scaled(extent), with_another_factor)
    assert emulation.num_faults == 0
    assert not emulation.is_correct
    assert "B" in emulation.problem


def test_a_race_is_reported_with_its_line_and_its_thread() -> None:
    func = scaled(256)
    source = with_a_race(backend_of(TARGET).emit(func, TARGET).text)
    line = 1 + source.split("\n").index("  B[0] = A[threadIdx.x];")
    emulation = emulation_of(func, with_a_race)
    assert emulation.num_faults >= 1
    assert not emulation.is_correct
    (report,) = emulation.reports
    assert "race" in report
    assert f"line {line} of the source" in report
    assert "thread (" in report


def test_a_kernel_with_a_race_is_a_device_error_of_its_trial() -> None:
    func = scaled(256)
    measurer = CandidateMeasurer(build=lambda program, _, __: artifact_of(program, with_a_race))
    trace = '{"format": 1, "instructions": []}'
    measurement = measurer.measure(MeasureRequest(script(func), TARGET.name, (trace,)))
    assert measurement.error is ErrorKind.DEVICE_ERROR
    assert "race" in measurement.message
    assert measurement.resources is not None


def test_a_program_that_the_oracle_takes_long_for_is_emulated_without_a_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compiler.backends.cuda.emulate_program._MAX_ORACLE_SECS", 0.0)
    emulation = inspect(scaled(256), TARGET).emulation
    assert emulation is not None
    assert (emulation.num_faults, emulation.max_error) == (0, None)
    assert emulation.problem == "not compared: the oracle would take too long"
