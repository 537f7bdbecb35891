"""A model whose programs have the schedules of a lock file, and no others."""

from __future__ import annotations

from pathlib import Path

from compiler.backends.error import BuildError
from compiler.graph.nodes import Graph
from compiler.ir.analysis.structural import structural_hash
from compiler.package.assemble import LoweredModel
from compiler.package.lower_model import lower_model
from compiler.schedule.error import ScheduleError
from compiler.target.cpu import CpuTarget
from loopwright.errors import LockError
from loopwright.locks.lock_file import LockFile
from loopwright.locks.locked_kernel import check_toolchain, find_locked
from loopwright.models.compilation import Compilation
from loopwright.models.executable import Executable
from loopwright.models.image_layouts import PIXEL_LIMITS
from loopwright.models.schedules import ProposedKernel, build_candidate, kernel_name
from tuner.candidate import Candidate
from tuner.task import Task

LOCKED_SKETCH = "locked"
"""The name of a schedule from a lock file, which does not have the name of its sketch."""


def locked_model(graph: Graph, target: CpuTarget, path: str | Path) -> Executable:
    """Build a model with the schedules of a lock file: nothing is proposed or measured.

    Raises:
        LockError: If the file is damaged, lacks a program of the model for this target, or was
            written with another compiler.
        BuildError: If a program can't be built.
    """
    file = LockFile.load(path)
    model = _model(graph, file)
    kernels = {
        task.key: _built(file, Task(task.func, target, task.weight), number, str(path))
        for number, task in enumerate(model.tasks)
    }
    return Compilation(graph, model, target, kernels).executable(kernels)


def _model(graph: Graph, file: LockFile) -> LoweredModel:
    """Return the model in the first layout whose programs are locked; else in the usual one."""
    layouts = [lower_model(graph, max_pixels) for max_pixels in PIXEL_LIMITS]
    locked = [m for m in layouts if all(file.of(structural_hash(t.func)) for t in m.tasks)]
    return next(iter(locked), layouts[0])


def _built(file: LockFile, task: Task, number: int, path: str) -> ProposedKernel:
    entry = find_locked(file, task.func, task.target, path)
    check_toolchain(entry, path)
    candidate = Candidate(LOCKED_SKETCH, entry.schedule)
    try:
        built = build_candidate(task, candidate, kernel_name(number, task.func.name))
    except (BuildError, ScheduleError) as error:
        raise LockError(f"{entry.label} can't be built in the model: {error}") from error
    return ProposedKernel(built, candidate)
