"""What a recording continues from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.tuner.candidate_builds import CandidateBuilds
from benchmarks.tuner.record import written
from benchmarks.tuner.recorded_workloads import Recording
from benchmarks.tuner.recorder import Recorder
from compiler.runtime.measurement import ErrorKind

RECORDING = Recording("relu", "relu:4096", 6, 6, cpu="haswell")


@pytest.fixture
def builds() -> Iterator[CandidateBuilds]:
    started = CandidateBuilds(1, timing_core=0)
    yield started
    started.close()


def lines(*notes: tuple[int, float | None, str | None]) -> str:
    return "".join(json.dumps({"n": n, "secs": s, "error": e}) + "\n" for n, s, e in notes)


def test_a_crash_is_recorded_and_an_interruption_is_not(
    tmp_path: Path, builds: CandidateBuilds
) -> None:
    journal = tmp_path / "relu.journal"
    num = len(Recorder(RECORDING, journal, builds).points)
    assert num >= 4
    with journal.open("a") as file:
        file.write(lines((0, None, "crash")))  # it was started, and never came back
        file.write(lines((1, None, "crash"), (1, None, None)))  # it ran, and was not timed yet
        file.write(lines((2, None, "crash"), (2, None, None), (2, 3e-6, None), (2, 2e-6, None)))
    again = Recorder(RECORDING, journal, builds)
    assert again.num_measured == 2
    assert again.errors == {0: ErrorKind.CRASH}
    assert not again.is_done
    recorded = written(again)
    assert len(recorded) == 2
    assert recorded.best_secs == 2e-6
    assert list(recorded.errors.values()) == [ErrorKind.CRASH]


def test_a_journal_of_another_space_is_refused(tmp_path: Path, builds: CandidateBuilds) -> None:
    journal = tmp_path / "relu.journal"
    journal.write_text("[[0, 0]]\n")
    with pytest.raises(ValueError, match="another design space"):
        Recorder(RECORDING, journal, builds)
