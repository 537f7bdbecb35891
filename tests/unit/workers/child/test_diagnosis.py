"""Which error a candidate gets after its child died."""

from signal import SIGABRT, SIGKILL, SIGSEGV

import pytest

from compiler.runtime.measurement import ErrorKind
from workers.child.diagnosis import OomCounter, explain_death, explain_kill
from workers.child.phase_clock import PhaseClock
from workers.child.process import Death
from workers.wire.request import MeasureLimits, MeasureRequest

LIMIT_BYTES = 1 << 30
KILLED = Death(exit_code=-SIGKILL)


@pytest.fixture
def clock() -> PhaseClock:
    limits = MeasureLimits(memory_bytes=LIMIT_BYTES)
    return PhaseClock(MeasureRequest("def f(): ...", "cpu", ("",), limits=limits))


@pytest.mark.parametrize(
    ("death", "used_bytes", "kind", "message"),
    [
        (Death(-SIGSEGV), 0, ErrorKind.CRASH, "died of SIGSEGV"),
        (Death(3, last_words="oh"), 0, ErrorKind.CRASH, "died of exit code 3: oh"),
        (Death(was_alive=True), 0, ErrorKind.CRASH, "closed the pipe to its runner"),
        (Death(-SIGABRT, last_words="bad_alloc"), 0, ErrorKind.OUT_OF_MEMORY, "bad_alloc"),
        (Death(-SIGSEGV, last_words="bad_alloc"), 0, ErrorKind.CRASH, "SIGSEGV: bad_alloc"),
        (Death(-SIGSEGV), LIMIT_BYTES * 9 // 10, ErrorKind.OUT_OF_MEMORY, "921 MiB in use"),
        (Death(-SIGSEGV), LIMIT_BYTES * 7 // 10, ErrorKind.CRASH, "died of SIGSEGV"),
        (Death(None), 0, ErrorKind.CRASH, "an unknown cause"),
    ],
)
def test_a_death_has_an_error(
    clock: PhaseClock, death: Death, used_bytes: int, kind: ErrorKind, message: str
) -> None:
    measurement = explain_death(clock, death, used_bytes)
    assert measurement.error is kind
    assert message in measurement.message


def test_a_candidate_killed_from_outside_gets_one_more_attempt(clock: PhaseClock) -> None:
    assert explain_kill(clock, KILLED, ran_out=False, is_last=False) is None
    last = explain_kill(clock, KILLED, ran_out=False, is_last=True)
    assert last is not None
    assert last.error is ErrorKind.CRASH


@pytest.mark.parametrize("is_last", [False, True])
def test_a_kill_for_memory_is_the_candidates_fault(clock: PhaseClock, is_last: bool) -> None:
    measurement = explain_kill(clock, KILLED, ran_out=True, is_last=is_last)
    assert measurement is not None
    assert measurement.error is ErrorKind.OUT_OF_MEMORY


def test_the_counter_sees_only_new_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 3, 4, 4])
    monkeypatch.setattr("workers.child.diagnosis._oom_kills", lambda: next(counts))
    counter = OomCounter()
    assert [counter.has_grown() for _ in range(4)] == [True, False, True, False]
