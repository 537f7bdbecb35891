"""Measure what the tables hold about the CPU of this host, and show where they differ.

    python -m benchmarks measure_cpu

Kernels are compiled as those of the library are. Each figure is the best of many short runs, since
other processes only slow a run down; cycles are those of a chain of dependent additions, one each.
Rates of a core come from `compiler/target/pipelines.py`, bytes a cycle from the roofline of
`tuner/space/features/`, whose figures are the same for all CPUs.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.report import Metric, report
from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.runtime import peak
from compiler.executor.loaded_code import LoadedCode
from compiler.target.caches import host_caches
from compiler.target.cpu import CpuTarget
from compiler.target.cpus import CPUS, USUAL_CACHES, Caches
from tuner.space.features.roofline import BYTES_PER_CYCLE

FAR = 0.15
"""A larger difference between a measurement and the table is reported."""
_SECS = 0.3
"""How long each figure is measured: hundreds of runs, of which an idle machine needs a few."""
_CHAIN, _CHAIN_ROUNDS = 64, 2000
_VECTORS, _ACCUMULATORS = 16, 8
_L1_ROUNDS = 200
_MEMORY_BYTES = (64 << 20, 512 << 20)
"""The least and the most bytes that are read to measure memory."""


def main() -> None:
    """Measure, and report."""
    target = CpuTarget("cpu -num-cores=1")
    if target.cpu not in CPUS:
        print(no_entry(target.cpu))
    report("measure_cpu", [*core_metrics(target), *cache_metrics(target), *byte_metrics(target)])


def no_entry(cpu: str) -> str:
    """Return a line of text for a CPU that is not listed."""
    return (
        f"{cpu} has no entry in compiler/target/cpus.py: its features are those that LLVM detects,"
        " its caches those that the system reports, its rates those of a usual CPU"
    )


def core_metrics(target: CpuTarget) -> list[Metric]:
    """Measure the frequency, and what a core starts in a cycle."""
    core, lanes = target.pipelines, target.vector_bits // 32
    hertz = frequency(target)
    chains = peak.num_chains(target)
    fmas = peak.fma_peak_gflops(target, _SECS) * 1e9 / (2 * lanes) / hertz
    one_chain = peak.fma_peak_gflops(target, _SECS, chains=1) * 1e9 / (2 * lanes) / hertz
    l1_bytes = target.l1_bytes // 2
    loads = bytes_a_second(target, l1_bytes) / (target.vector_bits // 8) / hertz
    return [
        Metric("frequency", "GHz", (hertz / 1e9,)),
        compared(f"multiply-adds of vectors, {chains} chains", "a cycle", fmas, core.fmas),
        compared("latency of a multiply-add", "cycles", 1 / one_chain, core.fma_latency),
        compared("loads of vectors", "a cycle", loads, core.loads),
    ]


def cache_metrics(target: CpuTarget) -> list[Metric]:
    """Compare the caches that the system reports with those of the table."""
    entry = CPUS.get(target.cpu)
    reported = host_caches(USUAL_CACHES[target.arch])
    table: Caches | None = entry.caches if entry else None
    return [
        compared(
            f"{level} that the system reports",
            "KiB",
            getattr(reported, f"{level}_bytes") / 1024,
            getattr(table, f"{level}_bytes") / 1024 if table else None,
        )
        for level in ("l1", "l2", "l3")
    ]


def byte_metrics(target: CpuTarget) -> list[Metric]:
    """Measure the bytes a cycle that a core reads from each level."""
    least, most = _MEMORY_BYTES
    sizes = {
        "l2": (target.l1_bytes + target.l2_bytes) // 2,
        "l3": min(2 * target.l2_bytes, target.l3_bytes // 2),
        "memory": max(least, min(most, 4 * target.l3_bytes)),
    }
    hertz = frequency(target)
    return [
        compared(
            f"reads from {level} ({size >> 10} KiB)",
            "bytes a cycle",
            bytes_a_second(target, size) / hertz,
            BYTES_PER_CYCLE[level],
        )
        for level, size in sizes.items()
    ]


def compared(name: str, unit: str, measured: float, table: float | None) -> Metric:
    """Return a metric whose goal says what the table holds, and whether that is far from it."""
    if table is None:
        return Metric(name, unit, (measured,), "no entry")
    difference = measured / table - 1
    note = f", {difference:+.0%}" if abs(difference) > FAR else ""
    return Metric(name, unit, (measured,), f"table {table:g}{note}")


def frequency(target: CpuTarget) -> float:
    """Measure the frequency in hertz."""
    with loaded(chain_kernel(), target) as address:
        run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
        return _CHAIN * _CHAIN_ROUNDS / best_secs(lambda: run(3, 5))


def bytes_a_second(target: CpuTarget, size: int) -> float:
    """Measure the rate at which one core reads a buffer of some bytes again and again."""
    step = _VECTORS * target.vector_bits // 8
    steps = max(1, size // step)
    rounds = max(1, _L1_ROUNDS * (16 << 10) // (steps * step))
    data = np.ones(steps * step + 64, np.uint8)
    start = data.ctypes.data + -data.ctypes.data % 64
    with loaded(read_kernel(target), target) as address:
        run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        function = run(address)
        return rounds * steps * step / best_secs(lambda: function(start, steps, rounds))


def best_secs(run: Callable[[], object]) -> float:
    """Return the shortest time of a call."""
    best, end = math.inf, time.perf_counter() + _SECS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@contextmanager
def loaded(text: str, target: CpuTarget) -> Iterator[int]:
    """Link a kernel, and yield its address."""
    code = LoadedCode(compile_object(text, target))
    yield code.address("lw_measure")


def chain_kernel() -> str:
    """Return the LLVM IR of a loop of dependent additions and exclusive ors."""
    steps = [
        f"  %v{n + 1} = {'xor' if n % 2 else 'add'} i64 %v{n}, %{'y' if n % 2 else 'x'}"
        for n in range(_CHAIN)
    ]
    return "\n".join(
        [
            "define i64 @lw_measure(i64 %x, i64 %y) {",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            f"  %v0 = phi i64 [ 1, %entry ], [ %v{_CHAIN}, %loop ]",
            *steps,
            "  %next = add i64 %i, 1",
            f"  %more = icmp ult i64 %next, {_CHAIN_ROUNDS}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            f"  ret i64 %v{_CHAIN}",
            "}",
        ]
    )


def read_kernel(target: CpuTarget) -> str:
    """Return the LLVM IR that reads a buffer in vectors, and joins them by `or`."""
    lanes, size = target.vector_bits // 32, target.vector_bits // 8
    kind = f"<{lanes} x i32>"
    starts, reads = [], []
    names = [f"%a{n}" for n in range(_ACCUMULATORS)]
    for n, name in enumerate(names):
        last = f"%b{_VECTORS - _ACCUMULATORS + n}"
        starts.append(f"  {name} = phi {kind} [ zeroinitializer, %round ], [ {last}, %loop ]")
    for n in range(_VECTORS):
        so_far = names[n] if n < _ACCUMULATORS else f"%b{n - _ACCUMULATORS}"
        reads.append(f"  %p{n} = getelementptr i8, ptr %here, i64 {n * size}")
        reads.append(f"  %l{n} = load {kind}, ptr %p{n}, align {size}")
        reads.append(f"  %b{n} = or {kind} {so_far}, %l{n}")
    lasts = [f"%b{_VECTORS - _ACCUMULATORS + n}" for n in range(_ACCUMULATORS)]
    joins = [f"  %j0 = or {kind} %seen, {lasts[0]}"]
    joins += [f"  %j{n} = or {kind} %j{n - 1}, {lasts[n]}" for n in range(1, _ACCUMULATORS)]
    return "\n".join(
        [
            "define i32 @lw_measure(ptr %data, i64 %steps, i64 %rounds) #0 {",
            "entry:",
            "  br label %round",
            "round:",
            "  %r = phi i64 [ 0, %entry ], [ %r.next, %after ]",
            f"  %seen = phi {kind} [ zeroinitializer, %entry ], [ %j{_ACCUMULATORS - 1}, %after ]",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %round ], [ %next, %loop ]",
            *starts,
            f"  %offset = mul i64 %i, {_VECTORS * size}",
            "  %here = getelementptr i8, ptr %data, i64 %offset",
            *reads,
            "  %next = add i64 %i, 1",
            "  %more = icmp ult i64 %next, %steps",
            "  br i1 %more, label %loop, label %after",
            "after:",
            *joins,
            "  %r.next = add i64 %r, 1",
            "  %again = icmp ult i64 %r.next, %rounds",
            "  br i1 %again, label %round, label %done",
            "done:",
            f"  %result = extractelement {kind} %j{_ACCUMULATORS - 1}, i64 0",
            "  ret i32 %result",
            "}",
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bits}"'
            f' "min-legal-vector-width"="{target.vector_bits}" }}',
        ]
    )


if __name__ == "__main__":
    main()
