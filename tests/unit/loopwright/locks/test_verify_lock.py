"""Kernels beside their records: verdicts by rounds of known times, and one real measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from loopwright.errors import LockError
from loopwright.locks.lock_file import LockedKernel, LockFile, TimeRecord
from loopwright.locks.verify_lock import KernelCheck, LockVerdict, verify_lock
from service.coordinator.measurer import WorkerMeasurer
from service.wire.times import TimeKind
from tests.targets import here
from tests.unit.loopwright.locks.made import OTHER_CPU, RECORD, locked
from tuner.candidate import Candidate
from tuner.task import Task
from workers.child.runner import ChildRunner


@dataclass
class RecordedComparer:
    """Yields rounds of known times: of the kernel, and of the default schedule."""

    kernel_secs: float
    default_secs: float = 4e-6
    spread: float = 0.01
    num_candidates: int = 0

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        self.num_candidates = len(candidates)
        for number in range(num_rounds):
            noise = 1 + self.spread * (number % 5 - 2)
            times = (self.kernel_secs * noise, self.default_secs * noise)
            yield [Measurement((secs,)) for secs in times[: len(candidates)]]


class FailingComparer:
    """Yields rounds in which the kernel gives a wrong result."""

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        wrong = Measurement(error=ErrorKind.WRONG_RESULT, message="C[0, 0] is 3")
        for _ in range(num_rounds):
            yield [wrong, *[Measurement((1e-6,)) for _ in candidates[1:]]]


def check(tmp_path: Path, kernel: LockedKernel, comparer: RecordedComparer) -> KernelCheck:
    path = tmp_path / "a.lock"
    LockFile([kernel]).save(path)
    (only,) = verify_lock(path, comparer)
    return only


def test_a_kernel_that_takes_its_recorded_time_is_ok(tmp_path: Path) -> None:
    result = check(tmp_path, locked(), RecordedComparer(RECORD.run_secs))
    assert result.verdict is LockVerdict.OK
    assert result.slowdown == pytest.approx(1)
    assert result.machine_slowdown == pytest.approx(1)
    assert result.relative_slowdown == pytest.approx(1)


def test_a_kernel_that_takes_twice_as_long_is_slower(tmp_path: Path) -> None:
    result = check(tmp_path, locked(), RecordedComparer(2 * RECORD.run_secs))
    assert result.verdict is LockVerdict.SLOWER
    assert result.relative_interval is not None
    assert result.relative_interval[0] > 1.25


def test_a_machine_that_is_twice_as_slow_is_no_slower_kernel(tmp_path: Path) -> None:
    result = check(tmp_path, locked(), RecordedComparer(2 * RECORD.run_secs, 8e-6))
    assert result.verdict is LockVerdict.OK
    assert result.slowdown == pytest.approx(2)
    assert result.machine_slowdown == pytest.approx(2)


def test_a_default_schedule_that_became_faster_makes_no_slower_kernel(tmp_path: Path) -> None:
    assert check(tmp_path, locked(), RecordedComparer(2e-6, 1e-6)).verdict is LockVerdict.OK


def test_noise_around_the_bound_is_unclear(tmp_path: Path) -> None:
    record = RECORD.model_copy(update={"default_secs": None})
    result = check(tmp_path, locked(record=record), RecordedComparer(1.25 * 2e-6, spread=0.1))
    assert result.verdict is LockVerdict.UNCLEAR


def test_a_record_without_a_default_time_decides_alone(tmp_path: Path) -> None:
    comparer = RecordedComparer(4e-6)
    record = RECORD.model_copy(update={"default_secs": None})
    result = check(tmp_path, locked(record=record), comparer)
    assert result.verdict is LockVerdict.SLOWER
    assert result.relative_slowdown is None
    assert comparer.num_candidates == 1


def test_a_default_schedule_of_a_second_is_not_timed(tmp_path: Path) -> None:
    comparer = RecordedComparer(2e-6)
    record = RECORD.model_copy(update={"default_secs": 1.0})
    assert check(tmp_path, locked(record=record), comparer).verdict is LockVerdict.OK
    assert comparer.num_candidates == 1


def test_a_wrong_result_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    LockFile([locked()]).save(path)
    (result,) = verify_lock(path, FailingComparer())
    assert result.verdict is LockVerdict.FAILED
    assert result.reason == "wrong_result: C[0, 0] is 3"


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (
            locked(target=OTHER_CPU),
            "it is locked for cpu/cortex-a72, which",
        ),
        (locked(target=here(1000)), "it is locked for 1000 cores; this process has"),
        (locked(record=None), "it has no time: only confirmed times are compared"),
        (
            locked(record=RECORD.model_copy(update={"kind": TimeKind.PROVISIONAL})),
            "it has a time that is provisional",
        ),
    ],
)
def test_a_kernel_that_is_not_comparable_is_listed_and_does_not_suffice(
    kernel: LockedKernel, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.lock"
    LockFile([kernel]).save(path)
    with pytest.raises(LockError, match=f"can be compared here: .*{reason}"):
        list(verify_lock(path, RecordedComparer(2e-6)))
    LockFile([kernel, locked("relu:64:float32")]).save(path)
    first, second = verify_lock(path, RecordedComparer(2e-6))
    assert (first.verdict, second.verdict) == (LockVerdict.NOT_COMPARED, LockVerdict.OK)
    assert str(first.reason).startswith(reason)


def test_another_compiler_is_refused(tmp_path: Path) -> None:
    kernel = locked().model_copy(update={"toolchain": "loopwright-codegen 7"})
    with pytest.raises(LockError, match="--rebuild"):
        check(tmp_path, kernel, RecordedComparer(2e-6))


@pytest.mark.parametrize(("factor", "verdict"), [(1e3, LockVerdict.OK), (1e-6, LockVerdict.SLOWER)])
def test_a_measured_kernel_beside_a_record_far_from_it(
    factor: float, verdict: LockVerdict, tmp_path: Path
) -> None:
    """No machine is a thousand times slower than the record, or a million times faster."""
    secs = 1e-3 * factor
    record = TimeRecord(
        **{**RECORD.model_dump(), "run_secs": secs, "interval": (secs, secs), "default_secs": None}
    )
    path = tmp_path / "a.lock"
    LockFile([locked(record=record)]).save(path)
    with ChildRunner() as runner:
        (result,) = verify_lock(path, WorkerMeasurer(runner, libraries=()))
    assert result.verdict is verdict
    assert result.worker
