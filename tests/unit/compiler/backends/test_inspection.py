"""Inspections: the code and the resources of a kernel, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.backends.inspection import CodeText, Inspection
from compiler.driver import compile_kernel, emit, inspect
from compiler.ops import matmul
from compiler.runtime.resources import KernelResources
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target

TARGET = Target("cpu -mcpu=znver4 -num-cores=1")


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    schedule = Schedule(matmul(16, 16, 16))
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    return schedule


@pytest.fixture(scope="module")
def inspection(schedule: Schedule) -> Inspection:
    return inspect(schedule, TARGET)


def test_a_schedule_is_inspected_as_it_would_be_built(
    schedule: Schedule, inspection: Inspection
) -> None:
    artifact = compile_kernel(schedule, TARGET)
    assert inspection.source == CodeText("LLVM IR", emit(schedule.func, TARGET).text)
    assert "ret" in inspection.assembly.text
    assert inspection.code_bytes == len(artifact.code)
    assert (inspection.name, inspection.target) == (artifact.name, TARGET.name)
    assert inspection.toolchain == artifact.toolchain
    assert inspection.resources is None


def test_it_prints_its_facts_and_its_source(inspection: Inspection) -> None:
    text = str(inspection)
    assert text.endswith(inspection.source.text)
    assert f"{inspection.code_bytes} bytes" in text
    assert "registers" not in text


def test_it_prints_the_resources_of_a_device(inspection: Inspection) -> None:
    used = KernelResources(40, 0, 8, 4096, occupancy=0.375)
    facts = replace(inspection, resources=used).facts
    assert facts["registers"] == "40 a thread"
    assert facts["spills"] == "8 bytes a thread"
    assert facts["shared memory"] == "4096 bytes a block"
    assert facts["occupancy"] == "38%"
