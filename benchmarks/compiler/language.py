"""Measure the cost of parsing, scheduling and lowering, and of hostile texts; on one core."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable

import loopwright as lw
from benchmarks.report import Metric, report
from compiler.driver import compile_kernel
from compiler.ir.analysis.structural import structural_hash
from examples.cases import mm_relu

REPEATS = 50
TARGET = lw.Target("cpu -num-cores=1")

# Each runs in a new process, because the peak memory of a process never falls.
HOSTILE = """
import resource, sys, time
import loopwright as lw
HEAD = '@T.prim_func\\ndef main(A: T.Buffer((64,), "float32")):\\n    for i in range(64):\\n'
HEAD += " " * 8
def sized(line, total=1 << 20):
    return HEAD + line * ((total - len(HEAD)) // len(line))
TEXTS = {
    "statements": lambda: sized("A[i] = A[i] + 1.0\\n        "),
    "one long sum": lambda: HEAD + "A[i] = " + "A[i] + " * 149_000 + "0.0\\n",
    "no program": lambda: "(" * (1 << 20),
    "parentheses": lambda: HEAD + "A[i] = " + "(" * 10_000 + "i" + ")" * 10_000 + "\\n",
    "calls": lambda: HEAD + "A[i] = " + "T.exp(" * 10_000 + "A[i]" + ")" * 10_000 + "\\n",
    "negations": lambda: HEAD + "A[i] = " + "-" * 10_000 + "A[i]\\n",
    "loops": lambda: "@T.prim_func\\ndef main():\\n"
    + "".join(" " * depth + f"for i{depth} in range(2):\\n" for depth in range(1, 1400)),
}
lw.parse(HEAD + "A[i] = A[i]\\n")
text = TEXTS[sys.argv[1]]()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
try:
    lw.parse(text)
except lw.ScriptError:
    secs = time.perf_counter() - start
    print(secs, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
else:
    sys.exit("a hostile text was accepted")
"""
HOSTILE_TEXTS = {
    "statements": "1 MB of statements",
    "one long sum": "1 MB of one sum",
    "no program": "1 MB of open parentheses",
    "parentheses": "10,000 parentheses deep",
    "calls": "10,000 calls deep",
    "negations": "10,000 negations deep",
    "loops": "1 MB of nested loops",
}


def main() -> None:
    """Run the benchmark."""
    report("language", [*_language(), *_hostile()])


def schedule_matmul(sch: lw.Schedule) -> None:
    """Tile a matrix product in 25 instructions, as the search does for CPUs."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1, i_2, i_3 = sch.split(i, sch.sample_perfect_tile(i, 4, 64, [8, 4, 4, 4]))
    j_0, j_1, j_2, j_3 = sch.split(j, sch.sample_perfect_tile(j, 4, 64, [4, 2, 4, 16]))
    k_0, k_1 = sch.split(k, sch.sample_perfect_tile(k, 2, 64, [64, 8]))
    sch.reorder(i_0, j_0, i_1, j_1, k_0, i_2, j_2, k_1, i_3, j_3)
    write = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(write, j_1)
    packed = sch.cache_read(block, 1, "global")
    sch.compute_at(packed, j_0)
    sch.annotate(sch.get_loops(packed)[-1], "pragma_auto_unroll_max_step", 16)
    outer = sch.fuse(i_0, j_0)
    sch.parallel(outer)
    sch.vectorize(j_3)
    sch.unroll(i_3)
    sch.unroll(k_1)
    sch.vectorize(sch.get_loops(write)[-1])
    sch.annotate(write, "stage", 2)
    sch.annotate(block, "stage", 1)
    sch.decompose_reduction(block, k_0)


def _language() -> list[Metric]:
    case = mm_relu()
    text, func = str(case.workload), case.func
    matmul = lw.ops.matmul(512, 512, 512)
    sch = lw.Schedule(matmul, seed=0)
    schedule_matmul(sch)
    trace, scheduled = sch.trace, sch.func
    count = len(trace.instructions)
    return [
        _timed("parse mm_relu", lambda: lw.parse(text), goal="< 3"),
        _timed("print mm_relu", func.script),
        _timed("structural hash of mm_relu", lambda: structural_hash(func)),
        _timed(f"apply {count} instructions to matmul", lambda: trace.apply_to(matmul), "< 10"),
        _timed("lower it", lambda: lw.lower(scheduled, TARGET), goal="< 5"),
        _timed("lower, generate, compile", lambda: compile_kernel(scheduled, TARGET)),
    ]


def _timed(name: str, work: Callable[[], object], goal: str = "") -> Metric:
    work()  # includes imports on first use
    samples = []
    gc.disable()
    try:
        for _ in range(REPEATS):
            start = time.thread_time()  # excludes other processes on the core
            work()
            samples.append(1e3 * (time.thread_time() - start))
            gc.collect()
    finally:
        gc.enable()
    return Metric(name, "ms", tuple(samples), goal)


def _hostile() -> list[Metric]:
    metrics = []
    for name, description in HOSTILE_TEXTS.items():
        runs = [_refuse(name) for _ in range(3)]
        secs, megabytes = zip(*runs, strict=True)
        metrics.append(Metric(f"refuse {description}", "s", secs, goal="< 1"))
        metrics.append(Metric("  memory for it", "MB", megabytes))
    return metrics


def _refuse(name: str) -> tuple[float, float]:
    ran = subprocess.run(
        [sys.executable, "-c", HOSTILE, name], capture_output=True, text=True, check=True
    )
    secs, megabytes = ran.stdout.split()
    return float(secs), float(megabytes)


if __name__ == "__main__":
    main()
