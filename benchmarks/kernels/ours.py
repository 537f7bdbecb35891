"""Our backends for a worker process: default and tuned kernels, and the machine's ceiling."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from benchmarks.kernels.ceiling import ceiling
from benchmarks.kernels.traces import load_tuned, program
from benchmarks.peers.library import Ceiling, Prepared
from benchmarks.workloads.workload import BenchmarkWorkload, aligned
from compiler.driver import toolchain
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.interpret.oracle.oracle import compare, interpret

_threads = 1


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    global _threads  # noqa: PLW0603 - a process has one
    _threads = threads
    return {"loopwright": toolchain()}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared | Ceiling:
    """Prepare a workload for the backend "default", "tuned", "tuned@SEED" or "ceiling".

    Raises:
        NotTunedError: If there is no tuned schedule.
        ScheduleError: If it no longer applies.
    """
    target = lw.Target(f"cpu -num-cores={_threads}")
    if backend == "ceiling":
        return ceiling(workload, target)
    func = program(workload)
    if backend == "default":
        return _prepared(workload, func, func, target, "")
    tuned = load_tuned(workload, _threads, backend)
    note = f"{tuned.trials} trials, sketch {tuned.sketch}"
    return _prepared(workload, func, tuned.trace.apply_to(func), target, note)


def _prepared(
    workload: BenchmarkWorkload,
    func: lw.PrimFunc,
    scheduled: lw.PrimFunc | lw.Schedule,
    target: lw.Target,
    note: str,
) -> Prepared:
    """Build a schedule of a program; constant inputs are packed now."""
    names = [buffer.name for buffer in func.buffers]
    *arrays, out = (
        array.view(np.dtype(kind))
        for array, kind in zip(
            (*workload.inputs(), aligned(workload.out, workload.all_types[-1])),
            workload.all_types,
            strict=True,
        )
    )
    inputs = dict(zip(names, arrays, strict=False))
    constants = {buffer.name: inputs[buffer.name] for buffer in constant_params(func)}
    module = lw.build(scheduled, target, const_params=constants)
    arguments = [array for name, array in inputs.items() if name not in constants]

    def check() -> None:
        # A scan reads what it has written, so that its output is an input of the program.
        compare(func, {names[-1]: out}, interpret(func, inputs | {names[-1]: np.zeros_like(out)}))

    return Prepared(module.bind(*arguments, out), lambda: out, check, note)
