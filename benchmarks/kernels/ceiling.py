"""Measure the peak of the machine: multiply-adds in registers, or bytes over a footprint.

The bandwidth is that of simple loops over as many bytes as the workload moves, with a warm cache.
They copy one half to the other, or sum all bytes if the workload only reads. The fastest of several
copies counts.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm

import loopwright as lw
from benchmarks.peers.library import Ceiling
from benchmarks.workloads.workload import BenchmarkWorkload, aligned
from compiler.backends.cpu.codegen.machine_code import compile_object, initialize
from compiler.target.cpu import CpuTarget

_BATCH_SECS = 2e-3
_VECTORS = 8  # in a step of a loop: enough to hide the latency of the caches


def ceiling(workload: BenchmarkWorkload, target: lw.Target) -> Ceiling:
    """Return the bound for a workload, in operations or bytes, depending on its unit."""
    if workload.unit != "GB/s":
        threads = target.num_cores

        def sample_peak(secs: float) -> float:
            with ThreadPoolExecutor(threads) as pool:
                rates = pool.map(lambda _: lw.fma_peak_gflops(target, secs), range(threads))
                return workload.flops / sum(rates) / 1e9

        return Ceiling(sample_peak, "FMA peak of float32")
    kind = "read" if workload.reads_only else "copy"
    bandwidth = Bandwidth(workload.bytes, CpuTarget.of(target))
    return Ceiling(lambda secs: workload.bytes / bandwidth.sample(kind, secs), kind)


class Bandwidth:
    """Measures the bandwidth over a footprint, in bytes per second.

    Args:
        footprint: Its size in bytes, rounded up to whole steps of a loop.
        target: The target, with the number of threads and the width of vectors.
    """

    def __init__(self, footprint: int, target: CpuTarget) -> None:
        self._threads = target.num_cores
        lanes = target.vector_bits // 32
        step = 4 * lanes * _VECTORS
        # Each thread has one part of two halves.
        self._half = -(-footprint // (2 * step * self._threads)) * step
        self._memory = [aligned((2 * self._half // 4,)) for _ in range(self._threads)]
        for part in self._memory:
            part.fill(1.0)
        self._engine, self._loops = _load(target, lanes)
        self._clock = time.process_time if self._threads == 1 else time.perf_counter

    def sample(self, kind: str, secs: float) -> float:
        """Return the bytes per second of reading or copying, measured for about `secs` seconds."""
        names = ("read",) if kind == "read" else ("copy", "stream", "memmove")
        with ThreadPoolExecutor(self._threads) as pool:
            runs = [self._runner(name, pool) for name in names]
            return max(self._rate(run, secs / len(runs)) for run in runs)

    def _rate(self, run: Callable[[int], None], secs: float) -> float:
        run(1)
        once = self._time(run, 1)
        times = max(1, round(_BATCH_SECS / max(once, 1e-7)))
        end = self._clock() + secs
        batches: list[float] = []
        while not batches or self._clock() < end:
            batches.append(self._time(run, times))
        return 2 * self._half * self._threads / statistics.median(batches)

    def _time(self, run: Callable[[int], None], times: int) -> float:
        start = self._clock()
        run(times)
        return (self._clock() - start) / times

    def _runner(self, name: str, pool: ThreadPoolExecutor) -> Callable[[int], None]:
        def run_part(part: int, times: int) -> None:
            base = self._memory[part].ctypes.data
            if name == "memmove":
                for _ in range(times):
                    ctypes.memmove(base + self._half, base, self._half)
            elif name == "read":
                self._loops["read"](base, base, 2 * self._half, times)
            else:
                self._loops[name](base + self._half, base, self._half, times)

        def run(times: int) -> None:
            if self._threads == 1:
                run_part(0, times)
            else:
                list(pool.map(lambda part: run_part(part, times), range(self._threads)))

        return run


def _load(
    target: CpuTarget, lanes: int
) -> tuple[llvm.ExecutionEngine, dict[str, Callable[[int, int, int, int], None]]]:
    """Compile the loops; each is called with (to, from, bytes, times)."""
    initialize()
    machine = llvm.Target.from_triple(target.triple).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    names = ("read", "copy", "stream")
    text = "\n".join(_loop(name, lanes) for name in names) + "\n!0 = !{i32 1}\n"
    engine.add_object_file(llvm.ObjectFileRef.from_data(compile_object(text, target)))
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 4)
    return engine, {name: kind(engine.get_function_address(f"lw_{name}")) for name in names}


def _loop(name: str, lanes: int) -> str:
    """Return a function that passes over memory in whole steps, so many times."""
    vector, width = f"<{lanes} x float>", 4 * lanes
    numbers = range(_VECTORS)
    step = _VECTORS * width
    is_read = name == "read"
    past_caches = ", !nontemporal !0" if name == "stream" else ""
    starts, body, end = [], [], []
    for n in numbers:
        body += [
            f"  %o{n} = add i64 %i, {n * width}",
            f"  %f{n} = add i64 %from, %o{n}",
            f"  %p{n} = inttoptr i64 %f{n} to ptr",
            f"  %v{n} = load {vector}, ptr %p{n}, align {width}",
        ]
        if is_read:
            zero = "zeroinitializer"
            starts.append(f"  %a{n} = phi {vector} [ {zero}, %outer ], [ %b{n}, %inner ]")
            body.append(f"  %b{n} = fadd {vector} %a{n}, %v{n}")
        else:
            body += [
                f"  %t{n} = add i64 %to, %o{n}",
                f"  %q{n} = inttoptr i64 %t{n} to ptr",
                f"  store {vector} %v{n}, ptr %q{n}, align {width}{past_caches}",
            ]
    if is_read:  # LLVM removes loads of unused sums
        end = [f"  %s1 = fadd {vector} %b0, %b1"]
        end += [f"  %s{n} = fadd {vector} %s{n - 1}, %b{n}" for n in numbers[2:]]
        end += ["  %place = inttoptr i64 %to to ptr"]
        end += [f"  store volatile {vector} %s{_VECTORS - 1}, ptr %place, align {width}"]
    lines = [
        f"define void @lw_{name}(i64 %to, i64 %from, i64 %bytes, i64 %times) {{",
        "entry:",
        "  br label %outer",
        "outer:",
        "  %time = phi i64 [ 0, %entry ], [ %again, %pass ]",
        "  br label %inner",
        "inner:",
        "  %i = phi i64 [ 0, %outer ], [ %next, %inner ]",
        *starts,
        *body,
        f"  %next = add i64 %i, {step}",
        "  %more = icmp ult i64 %next, %bytes",
        "  br i1 %more, label %inner, label %pass",
        "pass:",
        *end,
        "  %again = add i64 %time, 1",
        "  %repeat = icmp ult i64 %again, %times",
        "  br i1 %repeat, label %outer, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)
