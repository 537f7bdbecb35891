"""Targets: the facts about the host, and about every CPU that has a name."""

from __future__ import annotations

import pickle
import platform

import pytest

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.executor.cores import available_cores
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS
from compiler.target.error import TargetError
from compiler.target.host import host_cpu, host_features, reported_cpu
from compiler.target.target import Target
from tests.unit.compiler.backends.cpu.codegen.programs import elementwise


@pytest.mark.skipif(bool(reported_cpu()), reason="the host is reported as another CPU")
def test_the_architecture_is_that_of_the_process() -> None:
    assert CpuTarget("cpu").triple.startswith(platform.machine())


def test_the_host_is_found_out() -> None:
    target = CpuTarget("cpu")
    assert target.cpu == host_cpu()
    assert target.features == host_features()
    assert target.num_cores == available_cores()
    assert target.vector_bits in (128, 256, 512)


@pytest.mark.parametrize("cpu", sorted(CPUS))
def test_every_cpu_can_be_compiled_for(cpu: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = emit(elementwise(64, lambda A, i: A[i] * 2.0), target).text
    assert disassemble(text, target)
    assert target.l1_bytes < target.l2_bytes <= target.l3_bytes


@pytest.mark.parametrize(
    ("cpu", "vector_bits", "registers", "has_fma", "has_halves"),
    [
        ("x86-64-v2", 128, 16, False, False),
        ("x86-64-v3", 256, 16, True, True),
        ("sapphirerapids", 512, 32, True, True),
        ("neoverse-v1", 128, 32, True, True),
    ],
)
def test_a_named_cpu_has_what_its_instruction_set_has(
    cpu: str, vector_bits: int, registers: int, has_fma: bool, has_halves: bool
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu}")
    assert target.vector_bits == vector_bits
    assert target.num_vector_registers == registers
    assert (target.has_fma, target.has_halves) == (has_fma, has_halves)


def test_a_foreign_cpu_has_its_own_caches() -> None:
    there = CpuTarget("cpu -mcpu=apple-m1")
    assert (there.l1_bytes, there.l2_bytes, there.l3_bytes) == (128 << 10, 3 << 20, 8 << 20)


def test_targets_of_the_cpu_kind_are_cpus() -> None:
    target = Target("cpu -mcpu=znver3 -num-cores=2")
    assert isinstance(target, CpuTarget)
    assert target == CpuTarget("llvm -num-cores=2 -mcpu=znver3")
    assert (target.kind, target.label, target.num_cores) == ("cpu", "cpu/znver3", 2)


def test_a_target_survives_pickling() -> None:
    target = Target("cpu -mcpu=znver3 -num-cores=2")
    assert pickle.loads(pickle.dumps(target)) == target


def test_an_unknown_kind_is_refused_with_the_registered_kinds() -> None:
    message = "unknown target kind 'tpu' in 'tpu': expected 'cpu', 'cuda'"
    with pytest.raises(TargetError, match=message):
        Target("tpu")
    with pytest.raises(TargetError, match=r"a CPU target begins with 'cpu', not 'tpu'"):
        CpuTarget("tpu")
