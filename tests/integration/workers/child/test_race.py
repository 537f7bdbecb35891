"""Contestants in processes of their own, in real children, on CPUs that are made up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.ir.text.printer import script
from compiler.ops.recognize import recognize
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import LibraryFacts, Measurement
from compiler.target.cpus import CPUS
from tests.faults.requests import DEFAULT_TRACE
from workers.child.process import ChildGoneError, ChildProcess
from workers.child.race import Contestant, Race
from workers.libraries.kernel_sets import CORE_TYPE
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureLimits, SeatRequest

# An operator without BLAS: kernels that this host cannot run would crash in earnest.
FUNC = from_spec("softmax:8,32")
TARGET = "cpu -num-cores=1"
OPERATOR = str(recognize(FUNC))
STAT_TICKS = slice(11, 13)  # user and system time, behind the name in /proc/PID/stat


@pytest.fixture(autouse=True)
def _own_choice_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the host would choose the kernels of the libraries."""
    monkeypatch.delenv(CORE_TYPE, raising=False)


def open_child(settings: Mapping[str, str]) -> ChildProcess:
    return ChildProcess("tests.faults.library_child", (), settings)


def race(library: str, cpu: str) -> list[list[Measurement]]:
    request = CompareRequest(
        script(FUNC),
        TARGET,
        (DEFAULT_TRACE,),
        num_rounds=2,
        seed=0,
        limits=MeasureLimits(),
        libraries=(library,),
        operator=OPERATOR,
    )
    return Race(request, open_child, CPUS[cpu].features).rounds()


def facts(rounds: list[list[Measurement]]) -> LibraryFacts:
    found = rounds[-1][1].library
    assert found is not None
    return found


def test_the_fastest_kernel_set_takes_part_and_all_are_told() -> None:
    found = facts(race("falls back", "znver5"))
    assert found.kernel_set == "SkylakeX"
    assert found.setting == f"{CORE_TYPE}=SkylakeX, 1 thread"
    assert [(s.name, s.kernel_set) for s in found.tried] == [
        ("1 thread", "Haswell"),
        (found.setting, "SkylakeX"),
    ]
    slow, fast = (s.secs for s in found.tried)
    assert slow is not None
    assert fast is not None
    assert slow > 2 * fast
    assert not found.is_below_cpu
    assert found.peak_flops is not None
    assert found.peak_flops > 1e8


def test_of_a_library_that_cannot_use_the_cpu_that_is_told() -> None:
    found = facts(race("is old", "znver5"))
    assert found.is_below_cpu
    assert {s.kernel_set for s in found.tried} == {"Haswell"}


def test_a_kernel_set_that_crashes_is_not_chosen() -> None:
    rounds = race("crashes with another", "znver5")
    found = facts(rounds)
    assert (found.kernel_set, found.is_below_cpu) == ("Haswell", True)
    assert [(s.name, s.secs is None) for s in found.tried] == [
        ("1 thread", False),
        (f"{CORE_TYPE}=SkylakeX", True),
    ]
    assert all(m.ok for measured in rounds for m in measured)


def test_a_contestant_that_spins_has_no_core_between_its_turns() -> None:
    request = SeatRequest(
        script(FUNC), TARGET, library="spins", operator=OPERATOR, limits=MeasureLimits()
    )
    contestant = Contestant(request, open_child, {})
    try:
        contestant.wait_for_start()
        contestant.sit()
        assert contestant.turn(0) > 0
        before = used(contestant.pid)
        time.sleep(0.2)
        assert used(contestant.pid) == before, "its thread spins, but for the stop"
        assert contestant.turn(0) > 0
        assert used(contestant.pid) > before
    finally:
        contestant.end()


def test_a_child_that_is_dead_cannot_be_stopped() -> None:
    child = open_child({})
    child.kill()
    with pytest.raises(ChildGoneError):
        child.pause()
    child.end()
    with pytest.raises(ChildGoneError):
        child.resume()


def used(pid: int) -> int:
    """Return the ticks of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[STAT_TICKS]))
