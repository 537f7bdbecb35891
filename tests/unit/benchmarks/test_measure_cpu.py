"""Measurements of the host's CPU beside the tables."""

from __future__ import annotations

import re

import pytest

from benchmarks.compiler.measure_cpu import (
    bytes_a_second,
    chain_kernel,
    compared,
    no_entry,
    read_kernel,
)
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.target.cpu import CpuTarget
from tests.targets import here, level


def test_a_figure_far_from_the_table_says_by_how_much() -> None:
    assert compared("loads", "a cycle", 2.1, 2).goal == "table 2"
    assert compared("loads", "a cycle", 3.0, 2).goal == "table 2, +50%"
    assert compared("loads", "a cycle", 1.0, 2).goal == "table 2, -50%"
    assert compared("loads", "a cycle", 1.0, None).goal == "no entry"


def test_a_cpu_without_an_entry_is_described() -> None:
    assert no_entry("znver9").startswith("znver9 has no entry in compiler/target/cpus.py")


def test_cycles_are_those_of_one_chain() -> None:
    text = disassemble(chain_kernel(), level(3))
    assert len(re.findall(r"\badd\w*\s.*%r", text)) >= 32
    assert len(re.findall(r"\bxor\w*\s.*%r", text)) >= 32


@pytest.mark.parametrize(
    ("cpu", "load"),
    [
        ("x86-64-v3", r"vpor .*\(.*%ymm"),
        ("x86-64-v4", r"(?:vmovdqa64|vpternlogd) .*\(.*%zmm"),
        ("neoverse-v2", r"ldp q"),
        ("sifive-x280", r"vle32\.v|vl1re\d+\.v"),
    ],
)
def test_reads_are_loads_of_whole_vectors(cpu: str, load: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = disassemble(read_kernel(target), target).replace("\t", " ")
    assert len(re.findall(load, text)) >= (8 if "ldp" in load else 16), text


def test_reads_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.compiler.measure_cpu._SECS", 0.01)
    assert 1e7 < bytes_a_second(here(), 1 << 14) < 1e13
