"""The latency of one model by several libraries, in rounds in which each runs once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import loopwright as lw
from benchmarks.models.peers import Arrays, Run, installed_peers

OURS = "ours"
UNTUNED = "untuned"
TARGET = "cpu -num-cores=1"
MAX_ERROR = 1e-3
"""The largest accepted difference from onnxruntime, relative to the largest element. Chosen: the
optimization levels of onnxruntime differ by up to 1e-4 on the measured models."""
SAMPLE_SECS = 0.02
"""The least time of a sample, so that the clock and the caches do not count. Chosen."""


@dataclass(frozen=True)
class ModelLatency:
    """The measurements of one model.

    Attributes:
        secs: For each library the CPU seconds of a run, one for each round; with trials also those
            of our model before them, `UNTUNED`.
        compile_secs: The wall time of `lw.compile`.
        max_error: The largest difference from the first peer, relative to the largest element.
        kernels: The number of different kernels.
        arena_bytes: The memory of values between kernels.
        failures: Why a peer could not run the model.
    """

    secs: Mapping[str, Sequence[float]]
    compile_secs: float
    max_error: float
    kernels: int
    arena_bytes: int
    failures: Mapping[str, str]

    @property
    def best_peer(self) -> str | None:
        """Return the peer with the shortest median time."""
        peers = [name for name in self.secs if name not in (OURS, UNTUNED)]
        return min(peers, key=lambda name: statistics.median(self.secs[name]), default=None)

    def speedups(self) -> list[float]:
        """Return the time of the best peer over ours, for each round."""
        peer = self.best_peer
        return [] if peer is None else self._over_ours(peer)

    def gains(self) -> list[float]:
        """Return the time without trials over ours, for each round."""
        return self._over_ours(UNTUNED) if UNTUNED in self.secs else []

    def _over_ours(self, name: str) -> list[float]:
        return [x / y for x, y in zip(self.secs[name], self.secs[OURS], strict=True)]


def measure_model(
    path: str, shapes: Mapping[str, Sequence[int]], *, rounds: int, trials: int = 0
) -> ModelLatency:
    """Compile a model, compare it with the peers, and time all.

    Raises:
        ModelError: If the model can't be compiled.
        RuntimeError: If its results are not those of a peer.
    """
    start = time.perf_counter()
    executable = lw.compile(path, target=TARGET, shapes=shapes, trials=trials)
    compile_secs = time.perf_counter() - start
    inputs = _random_inputs(executable)
    results = executable.run(inputs)
    runs: dict[str, Run] = {OURS: executable.executor.bind(inputs, results)}
    if trials:
        untuned = lw.compile(path, target=TARGET, shapes=shapes)
        runs[UNTUNED] = untuned.executor.bind(inputs, untuned.run(inputs))
    failures: dict[str, str] = {}
    max_error = 0.0
    for name, peer in installed_peers().items():
        try:
            runs[name], expected = peer(path, inputs)
        except Exception as error:  # of any type: the model is not for this peer
            failures[name] = str(error)
            continue
        max_error = max(max_error, _error(list(results.values()), expected))
    if max_error > MAX_ERROR:
        raise RuntimeError(f"results differ by {max_error:.1e} of the largest element")
    inspection = executable.inspect()
    return ModelLatency(
        _interleaved(runs, rounds),
        compile_secs,
        max_error,
        len(inspection.kernels),
        inspection.arena_bytes,
        failures,
    )


def _random_inputs(executable: lw.Executable) -> Arrays:
    """Return floats from 0 to 1, and integers of 0 and 1, for each input."""
    rng = np.random.default_rng(0)
    return {
        param.name: (
            rng.random(param.shape) if "float" in param.dtype else rng.integers(0, 2, param.shape)
        ).astype(param.dtype)
        for param in executable.plan.inputs
    }


def _error(results: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of results, relative to the largest element of each."""
    largest = 0.0
    for result, other in zip(results, expected, strict=True):
        wide = other.astype(np.float64)
        difference = np.max(np.abs(result.astype(np.float64) - wide), initial=0)
        scale = np.max(np.abs(wide), initial=0)
        largest = max(largest, float(difference / scale if scale else difference))
    return float("inf") if np.isnan(largest) else largest


def _interleaved(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a run in each round; each round starts with another library."""
    names = list(runs)
    repeats = {name: _repeats(run) for name, run in runs.items()}
    secs: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for offset in range(len(names)):
            name = names[(number + offset) % len(names)]
            runs[name]()  # reloads the caches
            secs[name].append(_seconds(runs[name], repeats[name]))
    return secs


def _repeats(run: Callable[[], object]) -> int:
    run()
    return max(1, round(SAMPLE_SECS / max(_seconds(run, 2), 1e-7)))


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats
