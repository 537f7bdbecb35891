"""Time a kernel and its peers in turns: a drift of the clocks then affects all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.gpu.bench_gpu import BenchGpu
from benchmarks.gpu.peers import PEERS
from compiler.backends.backend import backend_of
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.module import Module
from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import check_case

_NUM_COLD_RUNS = 10
"""Runs of a turn: the least that have a steady median. Chosen."""

Contestants = tuple[dict[str, DeviceCall], dict[str, str]]
"""The functions that run, and the reasons of those that do not, by name."""


def trial_arrays(func: PrimFunc, gpu: BenchGpu) -> TrialArrays:
    """Return arrays of a workload on a GPU, with the result that the oracle expects."""
    case = check_case(func, 0)
    backend = backend_of(gpu.target)
    return backend.arrays(func, gpu.target, case)


def contestants(artifact: Artifact, spec: str, arrays: TrialArrays, gpu: BenchGpu) -> Contestants:
    """Return a kernel ("loopwright") and the peers of the GPU, each checked against the oracle.

    An emulated GPU has no peers: an estimate is compared with nothing.
    """
    errors: dict[str, str] = {}
    kernel = Module(artifact).bind(*arrays.fresh_arrays())
    assert isinstance(kernel, DeviceCall)
    kernel()
    arrays.check()
    runs = {"loopwright": kernel}
    for name, prepare in {} if gpu.is_emulated else dict(PEERS).items():
        try:
            own_arrays = arrays.again()
            call = prepare(spec, own_arrays.fresh_arrays()[:-1])
            own_arrays.check_result(call.result(call.run()))
            assert isinstance(call.run, DeviceCall)
            runs[name] = call.run
        except Exception as error:  # a peer that is missing or fails is a result, too
            errors[name] = f"{type(error).__name__}: {error}"[:300]
    return runs, errors


def rounds(
    runs: Mapping[str, DeviceCall],
    time_run: Callable[[DeviceCall], float],
    num_rounds: int,
    max_secs: float,
) -> dict[str, list[float]]:
    """Return the seconds a run by name, one number a round; each round begins with another one."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    names, end = list(runs), time.monotonic() + max_secs
    for number in range(num_rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            samples[name].append(time_run(runs[name]))
        if time.monotonic() > end:
            break
    return samples


def cold_secs(run: DeviceCall) -> float:
    """Return the median seconds of a run that finds no array in the L2 cache.

    Kernels and peers are timed by events, because no graph may hold the functions of peers.
    """
    return statistics.median(run.event_secs(1) for _ in range(_NUM_COLD_RUNS))


def summary(samples: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the median and the spread by name, with all samples."""
    return {
        name: {"secs": statistics.median(secs), "spread": _spread(secs), "samples": list(secs)}
        for name, secs in samples.items()
    }


def ratio_of_peer(samples: Mapping[str, Sequence[float]]) -> tuple[str, float] | None:
    """Return the fastest peer, and the median speed of the kernel relative to it, by round."""
    peers = {name: statistics.median(secs) for name, secs in samples.items()}
    peers.pop("loopwright")
    if not peers:
        return None
    best = min(peers, key=peers.__getitem__)
    pairs = zip(samples[best], samples["loopwright"], strict=True)
    return best, statistics.median(theirs / ours for theirs, ours in pairs)


def _spread(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / median
