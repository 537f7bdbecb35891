"""Our backends for a worker process: kernels of several kinds, and the machine's ceiling."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from benchmarks.kernels.ceiling import ceiling
from benchmarks.kernels.traces import load_tuned, program
from benchmarks.peers.library import Ceiling, Prepared
from benchmarks.shapes.dispatched import artifact_path, load_facts
from benchmarks.workloads.shapes import FAMILY_OF
from benchmarks.workloads.workload import Array, BenchmarkWorkload, aligned
from compiler.driver import toolchain
from compiler.executor.kernel import LoadedKernel
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.user_cache import default_directory
from loopwright.models.schedules import propose_kernel
from tuner.replay import base_model
from tuner.task import Task

_threads = 1


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    global _threads  # noqa: PLW0603 - a process has one
    _threads = threads
    return {"loopwright": toolchain()}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared | Ceiling:
    """Prepare a workload for a backend.

    Args:
        workload: The workload.
        backend: "default", "proposed" (the base model's first proposal, without trials), "tuned",
            "tuned@SEED" or "tuned@SEED-1s" of a race, "dispatched" (a kernel of a search over a
            range of shapes) or "ceiling".

    Raises:
        NotTunedError: If there is no tuned schedule, or no artifact.
        ScheduleError: If it no longer applies.
    """
    target = lw.Target(f"cpu -num-cores={_threads}")
    if backend == "ceiling":
        return ceiling(workload, target)
    func = program(workload)
    if backend == "default":
        return _prepared(workload, func, func, target, "")
    if backend == "proposed":
        return _prepared(workload, func, _proposed(Task(func, target)), target, "no trials")
    if backend == "dispatched":
        family = FAMILY_OF[workload.name]
        note = f"{load_facts(family, _threads)['trials']} trials for all shapes"
        return _run(workload, func, lw.load_kernel(artifact_path(family, _threads)), note)
    tuned = load_tuned(workload, _threads, backend)
    note = f"{tuned.trials} trials, sketch {tuned.sketch}"
    return _prepared(workload, func, tuned.trace.apply_to(func), target, note)


def _proposed(task: Task) -> lw.Schedule:
    """Return the schedule that a search would try first."""
    base = base_model.base_model(default_directory())
    kernel = propose_kernel(task, "proposed", cost_model=base.model)
    return kernel.candidate.trace.apply_to(task.func)


def _prepared(
    workload: BenchmarkWorkload,
    func: lw.PrimFunc,
    scheduled: lw.PrimFunc | lw.Schedule,
    target: lw.Target,
    note: str,
) -> Prepared:
    """Build a schedule of a program; constant inputs are packed now."""
    inputs = dict(zip(_names(func), _typed_inputs(workload), strict=False))
    constants = {buffer.name: inputs[buffer.name] for buffer in constant_params(func)}
    return _run(workload, func, lw.build(scheduled, target, const_params=constants), note)


def _run(
    workload: BenchmarkWorkload, func: lw.PrimFunc, kernel: lw.Module | LoadedKernel, note: str
) -> Prepared:
    names = _names(func)
    inputs = dict(zip(names, _typed_inputs(workload), strict=False))
    out = aligned(workload.out, workload.all_types[-1]).view(np.dtype(workload.all_types[-1]))
    constants = {buffer.name for buffer in constant_params(func)}
    arguments = [array for name, array in inputs.items() if name not in constants]

    def check() -> None:
        # A scan reads what it has written, so that its output is an input of the program.
        compare(func, {names[-1]: out}, interpret(func, inputs | {names[-1]: np.zeros_like(out)}))

    return Prepared(kernel.bind(*arguments, out), lambda: out, check, note)


def _names(func: lw.PrimFunc) -> list[str]:
    return [buffer.name for buffer in func.buffers]


def _typed_inputs(workload: BenchmarkWorkload) -> list[Array]:
    pairs = zip(workload.inputs(), workload.all_types, strict=False)
    return [array.view(np.dtype(kind)) for array, kind in pairs]
