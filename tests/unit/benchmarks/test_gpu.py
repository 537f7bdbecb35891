"""The benchmarks of a GPU, run in shape on an emulated one at tiny sizes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import main
from benchmarks.gpu.bench_gpu import find_gpu
from benchmarks.gpu.cases import OPERATORS, PRODUCTS, TINY_OPERATORS, TINY_PRODUCTS, Case
from benchmarks.gpu.checks import _ceilings
from benchmarks.gpu.interleaved import cold_secs, ratio_of_peer, rounds, summary
from benchmarks.gpu.session import Session
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.runtime.host_gpus import host_gpus
from compiler.runtime.sample_calls import TimedSamples

EMULATED = ("--emulate", "h200", "--tiny")


def test_winners_are_tuned_stored_and_timed_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["products", *EMULATED, "--trials", "1", "--out", str(tmp_path)]) == 0
    assert main(["winners", *EMULATED, "--out", str(tmp_path)]) == 0
    (stored,) = json.loads((tmp_path / "products-cuda-h200-emulated.json").read_text())["rows"]
    assert stored["spec"] == TINY_PRODUCTS[0].spec
    assert stored["max_error"] < 0.1
    written = json.loads((tmp_path / "winners-cuda-h200-emulated.json").read_text())
    assert written["gpu"]["is_estimate"]
    assert {"machine", "commit", "at", "wall_secs"} <= set(written)
    assert [row["l2"] for row in written["rows"]] == ["cold", "warm"]
    assert {row["secs"] for row in written["rows"]} == {stored["secs"]}
    assert all("peer_errors" in row and "best_peer" not in row for row in written["rows"])
    assert capsys.readouterr().out.count("(estimate)") == 3


def test_ceilings_are_counted_by_their_kernels(tmp_path: Path) -> None:
    session = Session("checks", find_gpu("h200"), tmp_path, 60.0)
    _ceilings(session, is_tiny=True)
    rows = json.loads(session.path.read_text())["rows"]
    assert [row["name"] for row in rows] == ["copy", "float32", "mma.sync bfloat16"]
    assert all(row["rate"] > 0 for row in rows)


@pytest.mark.skipif(bool(host_gpus()), reason="this host has a GPU, and no GPU is refused")
def test_without_a_gpu_a_command_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks"]) == 2
    assert "no GPU that these benchmarks can use: --emulate h200" in capsys.readouterr().err


def test_an_unknown_gpu_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "--emulate", "h201", "--tiny"]) == 2
    assert "did you mean 'h200'?" in capsys.readouterr().err


def test_full_sizes_are_not_emulated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["products", "--emulate", "h200"])
    assert "--emulate needs --tiny" in capsys.readouterr().err


@pytest.mark.parametrize("case", [*PRODUCTS, *OPERATORS, *TINY_PRODUCTS, *TINY_OPERATORS])
def test_each_case_is_an_operator(case: Case) -> None:
    assert case.rate(1.0) > 0


def test_a_rate_counts_operations_or_bytes() -> None:
    assert Case("matmul:64,32,16:float32", "TFLOP/s").rate(1.0) == 2 * 64 * 32 * 16 / 1e12
    assert Case("softmax:64,32:float32", "TB/s").rate(1.0) == 2 * 64 * 32 * 4 / 1e12


class CountedCall(DeviceCall):
    """Takes a given time, and notes its turn."""

    def __init__(self, name: str, secs: float, turns: list[str]) -> None:
        self._name, self._secs, self._turns = name, secs, turns

    def __call__(self) -> None:
        self._turns.append(self._name)

    def mean_secs(self, calls: int) -> float:
        self()
        return self._secs

    def event_secs(self, calls: int) -> float:
        return 2 * self.mean_secs(calls)

    def warm_secs(self, calls: int) -> float:
        return self.mean_secs(calls)

    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        return TimedSamples((self.mean_secs(1),))


def test_contestants_take_turns_and_each_begins_a_round() -> None:
    turns: list[str] = []
    secs = {"loopwright": 2.0, "cublas": 3.0, "torch": 1.0}
    runs: dict[str, DeviceCall] = {n: CountedCall(n, s, turns) for n, s in secs.items()}
    samples = rounds(runs, lambda run: run.mean_secs(1), 3, sys.maxsize)
    assert turns == [*secs, "cublas", "torch", "loopwright", "torch", "loopwright", "cublas"]
    assert {name: row["secs"] for name, row in summary(samples).items()} == secs
    assert ratio_of_peer(samples) == ("torch", 0.5)
    assert ratio_of_peer({"loopwright": [1.0]}) is None


def test_kernels_and_peers_are_timed_by_events_alike() -> None:
    kernel, peer = (CountedCall(name, 3.0, []) for name in ("loopwright", "cublas"))
    assert cold_secs(kernel) == cold_secs(peer) == 6.0
