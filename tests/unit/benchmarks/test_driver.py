"""The processes of the benchmark, on a small workload; numbers are not looked at."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.kernels import driver, results, traces
from benchmarks.kernels.driver import Settings, measure
from benchmarks.peers import numpy_peer, worker
from benchmarks.peers.environments import PEERS, Peer
from benchmarks.peers.library import NotTunedError, Prepared
from benchmarks.workloads.table import select
from benchmarks.workloads.workload import Array, BenchmarkWorkload

(SMALL,) = select("mm_relu_128x128x128")
CORE = max(os.sched_getaffinity(0))
QUICK = Settings(1, (CORE,), passes=2, rounds=2, sample_secs=1e-3)
(NUMPY,) = (peer for peer in PEERS if peer.name == "numpy")


@pytest.fixture(autouse=True)
def results_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(driver, "RESULTS", tmp_path)
    monkeypatch.setattr(traces, "RESULTS", tmp_path)
    return tmp_path


def test_libraries_are_timed_in_turns_and_checked() -> None:
    absent = Peer("absent", "jax", "no such environment")
    broken = Peer("broken", "tvm")  # the environment of the project has no TVM
    backends = ("default", "ceiling")
    passes: list[int] = []

    def after_pass(so_far: driver.Measured) -> None:
        passes.append(len(results.samples(so_far.rows[SMALL.name], "numpy")))

    measured = measure([SMALL], [NUMPY, absent, broken], QUICK, backends, after_pass)
    assert passes == [2, 4]
    assert "make bench-peers" in measured.skipped["absent"]
    assert "tvm" in measured.skipped["broken"]
    assert set(measured.versions) >= {"numpy", "loopwright"}
    row = measured.rows[SMALL.name]
    assert set(row["backends"]) == {"default", "ceiling", "numpy"}
    for name in row["backends"]:
        assert len(results.samples(row, name)) == QUICK.passes * QUICK.rounds, row
    assert row["backends"]["numpy"]["rel_error"] < 1e-5
    share = results.share(row, "default")
    assert share is not None
    assert 0 < share < 100


def test_a_worker_that_dies_is_an_error_and_no_hang() -> None:
    process = driver.Worker("dead", "no such library", Path(sys.executable), QUICK)
    assert "exit status 2" in process.ask(do="start")["error"]
    process.close()


def test_a_tuned_schedule_is_stored_and_read(results_folder: Path) -> None:
    with pytest.raises(NotTunedError, match="no schedule is stored"):
        traces.load_tuned(SMALL, 1)
    traces.tune_missing([SMALL], 1, trials=2, seed=0, again=False)
    stored = (results_folder / "traces-t1" / f"{SMALL.name}.json").read_text()
    assert traces.load_tuned(SMALL, 1).trials == 2
    traces.tune_missing([SMALL], 1, trials=3, seed=0, again=False)  # it is there already
    assert (results_folder / "traces-t1" / f"{SMALL.name}.json").read_text() == stored


class FakeLibrary:
    """Answers with what it was given, for every workload."""

    def __init__(self, answer: Array) -> None:
        self.answer = answer
        self.runs = 0

    def start(self, threads: int) -> dict[str, str]:
        return {"fake": str(threads)}

    def prepare(self, workload: BenchmarkWorkload, backend: str) -> Prepared:
        if backend == "untuned":
            raise NotTunedError("no schedule is stored")

        def run() -> None:
            self.runs += 1

        return Prepared(run, lambda: self.answer)


def session(answer: Array) -> worker.Session:
    made = worker.Session("numpy", 1)
    made._library = FakeLibrary(answer)
    return made


def request(do: str) -> dict[str, Any]:
    return {"do": do, "workload": SMALL.name, "backend": "fake", "secs": 1e-3}


def test_a_right_result_is_timed() -> None:
    made = session(numpy_peer.reference(SMALL))
    assert made.answer(request("prepare"))["rel_error"] == 0.0
    assert made.answer(request("sample"))["secs"] > 0


@pytest.mark.parametrize("value", [1.1, np.nan, np.inf])
def test_a_wrong_result_is_not_timed(value: float) -> None:
    answer = numpy_peer.reference(SMALL)
    answer[3, 4] = value * answer.max()
    made = session(answer)
    assert "PeerResultError" in made.answer(request("prepare"))["error"]
    assert "error" in made.answer(request("sample"))


def test_what_was_not_tuned_is_told_apart_from_a_failure() -> None:
    made = session(np.zeros(1))
    reply = made.answer({**request("prepare"), "backend": "untuned"})
    assert reply == {"error": "no schedule is stored", "is_absent": True}


def test_what_a_library_raises_is_a_reply() -> None:
    made = session(np.zeros(3))  # does not even have the shape
    assert "ValueError" in made.answer(request("prepare"))["error"]
    assert "unknown request" in made.answer(request("dance"))["error"]


def test_a_sample_may_be_first_in_line_and_is_so_no_longer_than_it_lasts() -> None:
    made = session(numpy_peer.reference(SMALL))
    made.answer(request("prepare"))
    reply = made.answer({**request("sample"), "realtime": True})
    assert "secs" in reply or "PermissionError" in reply["error"]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
