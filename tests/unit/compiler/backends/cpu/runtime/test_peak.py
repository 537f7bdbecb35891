"""The measured peak of a CPU."""

from __future__ import annotations

import re

import pytest

from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.cpu.runtime.peak import fma_peak_gflops, kernel, num_chains
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS


def test_the_peak_is_a_rate_that_a_core_can_have() -> None:
    assert 1 < fma_peak_gflops(secs=0.02) < 1000


@pytest.mark.parametrize("cpu", CPUS)
def test_the_peak_of_a_cpu_is_measured_without_calls(cpu: str) -> None:
    """A fused multiply-add that the CPU lacks is a call, a hundred times slower than any kernel."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = disassemble(kernel(target, num_chains(target)), target)
    assert not re.search(r"\b(call|bl)\b|fmaf", text)
    assert not re.search(r"\bq\d+, \[sp|mm\d+, .*\(%rsp\)|\bvs\dr\.v", text), "a sum is stored"
