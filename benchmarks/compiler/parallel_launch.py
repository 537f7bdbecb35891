"""Measure the cost of a parallel loop on two threads: launch, wake-up, uneven parts.

Parts are loops of known length in native code. The cost of a launch is the time of two parts minus
that of one part. A sample has few launches, and the shortest of many samples counts, because a
thread may lose its core on a busy host.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.report import Metric, report
from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.dynamic_partition import dynamic_launch_runtime
from compiler.backends.cpu.runtime.pool import launch_address
from compiler.executor.loaded_code import LoadedCode
from compiler.target.cpu import CpuTarget

LAUNCHES = 10
SAMPLES = 150
TURNS = 5
IDLE_SECS = 2e-3
PARTS = 64

# Iteration i of `busy` lasts `base + i * more` rounds; the rounds pass through memory.
_IR = """
define dso_local void @busy(i64 %begin, i64 %end, i64 %number, ptr %context) {
entry:
  %cell = alloca i64, align 8
  %base = load i64, ptr %context
  %more.at = getelementptr i64, ptr %context, i64 1
  %more = load i64, ptr %more.at
  br label %part
part:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %over ]
  %extra = mul i64 %i, %more
  %rounds = add i64 %base, %extra
  br label %round
round:
  %r = phi i64 [ 0, %part ], [ %r.next, %round ]
  store volatile i64 %r, ptr %cell
  %r.next = add i64 %r, 1
  %again = icmp ult i64 %r.next, %rounds
  br i1 %again, label %round, label %over
over:
  %i.next = add i64 %i, 1
  %left = icmp ult i64 %i.next, %end
  br i1 %left, label %part, label %out
out:
  ret void
}

define dso_local void @launches(
    ptr %launch, i64 %times, i64 %extent, i64 %threads, ptr %context, i64 %step) {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %static = icmp eq i64 %step, 0
  br i1 %static, label %parts, label %demand
parts:
  call void %launch(ptr @busy, i64 %extent, ptr %context, i64 %threads)
  br label %next
demand:
  call void @lw_share(
      ptr %launch, ptr @busy, i64 %extent, ptr %context, i64 %threads, i64 %step)
  br label %next
next:
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, %times
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


def main() -> None:
    """Run the benchmark."""
    launches = _native()
    micros = _micros_of_rounds(launches)
    metrics = []
    for length in (0, 5, 50):
        rounds = max(1, round(length / micros))
        costs = tuple(_launch_micros(launches, rounds) for _ in range(TURNS))
        goal = "<= 3" if length == 5 else ""
        metrics.append(Metric(f"launch of two parts of {length} us", "us", costs, goal))
    cold = tuple(_cold_launch_micros(launches) for _ in range(TURNS))
    metrics.append(Metric("launch of nothing, thread asleep", "us", cold))
    for length in (5, 50):
        rounds = max(1, round(length / micros))
        gains = tuple(_gain(launches, rounds) for _ in range(TURNS))
        metrics.append(Metric(f"two parts of {length} us, gain by threads", "x", gains))
    uneven = {"static": 0, "dynamic": 1}
    for name, step in uneven.items():
        gains = tuple(_uneven_gain(launches, 10 / micros, step) for _ in range(TURNS))
        metrics.append(Metric(f"uneven iterations, {name}: gain by threads", "x", gains))
    report("parallel_launch", metrics)


def _native() -> Callable[..., None]:
    """Return `launches(times, extent, threads, base, more, step)`."""
    target = CpuTarget("cpu")
    code = LoadedCode(compile_object(_IR + dynamic_launch_runtime(), target))
    words = [ctypes.c_int64] * 3
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *words, ctypes.c_void_p, ctypes.c_int64)
    function = kind(code.address("launches"))

    def launches(
        times: int, extent: int, threads: int, base: int, *, more: int = 0, step: int = 0
    ) -> None:
        context = np.array([base, more], np.int64)
        function(launch_address(), times, extent, threads, context.ctypes.data, step)

    launches.code = code  # type: ignore[attr-defined]  # the function lives as long as its code
    return launches


def _quick_secs(run: Callable[[], None], samples: int = SAMPLES) -> float:
    """Return the shortest time of several, in seconds."""
    secs = []
    for _ in range(samples):
        start = time.perf_counter()
        run()
        secs.append(time.perf_counter() - start)
    return min(secs)


def _micros_of_rounds(launches: Callable[..., None]) -> float:
    """Return the duration of a round in microseconds."""
    rounds = 100_000
    return 1e6 * _quick_secs(lambda: launches(1, 1, 1, rounds), 50) / rounds


def _launch_micros(launches: Callable[..., None], rounds: int) -> float:
    two = _quick_secs(lambda: launches(LAUNCHES, 2, 2, rounds))
    one = _quick_secs(lambda: launches(LAUNCHES, 1, 1, rounds))
    return 1e6 * (two - one) / LAUNCHES


def _cold_launch_micros(launches: Callable[..., None]) -> float:
    def asleep() -> float:
        time.sleep(IDLE_SECS)
        start = time.perf_counter()
        launches(1, 2, 2, 1)
        return time.perf_counter() - start

    return 1e6 * statistics.median(asleep() for _ in range(100))


def _gain(launches: Callable[..., None], rounds: int) -> float:
    one = _quick_secs(lambda: launches(LAUNCHES, 2, 1, rounds))
    two = _quick_secs(lambda: launches(LAUNCHES, 2, 2, rounds))
    return one / two


def _uneven_gain(launches: Callable[..., None], rounds: float, step: int) -> float:
    """Run a loop whose last iterations last longest: on average as long as `rounds` do."""
    more = max(1, round(2 * rounds / PARTS))
    one = _quick_secs(lambda: launches(1, PARTS, 1, 1, more=more), 50)
    two = _quick_secs(lambda: launches(1, PARTS, 2, 1, more=more, step=step), 50)
    return one / two


if __name__ == "__main__":
    main()
