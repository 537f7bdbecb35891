"""The host, as it is detected, and as `LOOPWRIGHT_HOST_CPU` reports it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable

import pytest

from compiler.target import host
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS
from compiler.target.error import TargetError
from compiler.target.host import REPORTED, missing_here

LOWER = sorted(cpu for cpu in CPUS if not missing_here(cpu))
HIGHER = sorted(cpu for cpu in CPUS if missing_here(cpu))
REPORT = """\
from compiler.driver import build
from compiler.ops import from_spec
from compiler.target.target import Target
target = Target()
build(from_spec("relu:64"), target).close()
print(target.cpu, target.instruction_set, target.features)
print(target.l1_bytes, target.l2_bytes, target.l3_bytes)
print(Target(f"cpu -mcpu=native -num-cores={target.num_cores}") == target, target.label)
"""


def report(**environment: str) -> list[str]:
    """Return what a process of this environment says of its host."""
    ran = subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return ran.stdout.splitlines()


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what reports the host of this process as another, until the test ends."""
    for function in (host.reported_cpu, host.host_cpu, host.host_features):
        monkeypatch.setattr(host, function.__name__, function.__wrapped__)
    return lambda name: monkeypatch.setenv(REPORTED, name)


@pytest.mark.parametrize("name", ["x86-64-v2" if platform.machine() == "x86_64" else "cortex-a72"])
def test_a_reported_host_is_the_named_cpu_in_every_respect(name: str) -> None:
    cpu, caches = CPUS[name], CPUS[name].caches
    sizes = (caches.l1_bytes, caches.l2_bytes, caches.l3_bytes)
    assert report(LOOPWRIGHT_HOST_CPU=name) == [
        f"{name} {cpu.instruction_set} {cpu.features}",
        " ".join(map(str, sizes)),
        f"True cpu/{name}",
    ]


@pytest.mark.parametrize("name", HIGHER)
def test_a_host_that_lacks_features_is_not_reported_as_having_them(
    name: str, reporting: Callable[[str], None]
) -> None:
    reporting(name)
    with pytest.raises(TargetError, match=f"{REPORTED} is '{name}', whose code this host"):
        host.host_cpu()


def test_an_unknown_host_is_refused_with_the_known_ones(reporting: Callable[[str], None]) -> None:
    reporting("zen3")
    with pytest.raises(
        TargetError, match=r"LOOPWRIGHT_HOST_CPU is 'zen3': expected one of .*znver3"
    ):
        host.host_features()


def test_each_lower_cpu_may_be_reported(reporting: Callable[[str], None]) -> None:
    for name in LOWER:
        reporting(name)
        assert host.host_cpu() == name
        assert host.host_features() == CPUS[name].features
    assert CpuTarget(f"cpu -mcpu={LOWER[0]}").features == CPUS[LOWER[0]].features
