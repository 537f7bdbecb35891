"""Lists of features that `-mattr` changes stay closed: LLVM would apply the same rules."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.backends.cpu.codegen.machine_code import initialize
from compiler.target.cpu import CpuTarget
from compiler.target.cpu_features import _BASELINE, _REQUIRED, changed_features
from compiler.target.cpus import CPUS, Arch

ARCHS: list[Arch] = ["x86_64", "aarch64", "armv7l", "riscv64"]


@st.composite
def changes_of_a_cpu(draw: st.DrawFn) -> tuple[str, str]:
    cpu = draw(st.sampled_from(sorted(CPUS)))
    arch = CPUS[cpu].arch
    removable = set(_REQUIRED[arch])
    for name in _BASELINE[arch]:
        removable -= {name, *_required_by(arch, name)}
    added = st.sampled_from(sorted(_REQUIRED[arch])).map("+{}".format)
    either = st.one_of(added, st.sampled_from(sorted(removable)).map("-{}".format))
    return cpu, ",".join(draw(st.lists(either, max_size=5)))


def _required_by(arch: Arch, name: str) -> set[str]:
    direct = set(_REQUIRED[arch][name])
    return direct.union(*(_required_by(arch, other) for other in direct))


@given(changes_of_a_cpu())
def test_the_shortest_changes_give_the_same_features(drawn: tuple[str, str]) -> None:
    cpu, changes = drawn
    arch, base = CPUS[cpu].arch, CPUS[cpu].features
    features, shortest = changed_features(arch, base, changes)
    assert changed_features(arch, base, shortest) == (features, shortest)
    offered = {name[1:] for name in features.split(",") if name.startswith("+")}
    removed = {name[1:] for name in features.split(",") if name.startswith("-")}
    assert offered.isdisjoint(removed)
    for name in offered & set(_REQUIRED[arch]):
        assert removed.isdisjoint(_required_by(arch, name)), name
        if f"+{name}" not in base.split(","):
            assert _required_by(arch, name) <= offered, name


@pytest.mark.parametrize("arch", ARCHS)
def test_llvm_knows_each_feature(arch: Arch, capfd: pytest.CaptureFixture[str]) -> None:
    initialize()
    target = next(CpuTarget(f"cpu -mcpu={name}") for name, cpu in CPUS.items() if cpu.arch == arch)
    names = ",".join(f"+{name}" for name in _REQUIRED[arch])
    machine = llvm.Target.from_triple(target.triple).create_target_machine(features=names)
    machine.emit_assembly(llvm.parse_assembly("define void @f() {\n ret void\n}"))
    assert "not a recognized feature" not in capfd.readouterr().err
