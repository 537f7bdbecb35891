"""The contract of measurers of whole modules."""

from __future__ import annotations

from typing import Protocol

from compiler.ir.core.program import IRModule
from compiler.runtime.measurement import Measurement
from tuner.task import Task


class ModuleMeasurer(Protocol):
    """Builds, checks and times modules of several functions."""

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        """Return the measurement of a module whose entry computes the program of a task.

        What goes wrong with the module is a measurement with an error; an exception means that
        measuring itself is broken.
        """
        ...
