"""A compiled model in the hands of a user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from compiler.executor.arrays import ArrayCheck
from compiler.executor.error import ArgumentError, PackageError
from compiler.executor.executor import Executor, refuse_pickling
from compiler.executor.package import Package
from compiler.ir.core.program import PrimFunc
from compiler.package.assemble import LoweredModel
from compiler.package.build_package import build_package, save_package
from compiler.package.plan import ModelPlan
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from loopwright.models.comparison import ModelComparison
from loopwright.models.inspection import ModelInspection
from loopwright.models.profile import ModelProfile, profile_plan

Array = NDArray[Any]


class Executable:
    """A compiled model: `lw.compile` returns it.

    Calls from several threads are safe; they take turns.

    Attributes:
        plan: Its kernels and the order of their calls.
        package: What `save` writes.
        comparison: Its time beside that of the first proposals; None if it has these alone.
    """

    def __init__(
        self,
        model: LoweredModel,
        plan: ModelPlan,
        inspection: ModelInspection,
        traces: Mapping[str, Trace],
    ) -> None:
        self.comparison: ModelComparison | None = None
        self.plan = plan
        self.package = build_package(plan)
        self._executor = _loaded(self.package)
        self._model = model
        self._inspection = inspection
        self._traces = traces

    def __repr__(self) -> str:
        if isinstance(self._executor, PackageError):
            return f"<Executable {self.plan.name} for {self.plan.target.name}>"
        return f"<Executable {repr(self._executor).removeprefix('<Executor ')}"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: machine code has its place in this process."""
        refuse_pickling(self.package)

    @property
    def executor(self) -> Executor:
        """Return what runs it; `executor.bind` makes a function for repeated calls.

        Raises:
            PackageError: If the model was compiled for a CPU that this one can't replace.
        """
        if isinstance(self._executor, PackageError):
            raise PackageError(f"{self._executor}; saved, it runs on such a machine")
        return self._executor

    def run(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Array]:
        """Run the model, and return its outputs by name.

        Args:
            inputs: The inputs by name, for names that are not Python's.
            named: The same as keywords. Without any input, those of `set_input` count.

        Raises:
            ArgumentError: If an input is missing or unknown, or has the wrong shape, type or
                layout.
        """
        given = {**(inputs or {}), **named}
        return self.executor.run(given if given or inputs is not None else None)

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Run the model on inputs in its order, and return its output, or a tuple of them.

        Raises:
            ArgumentError: As `run` does.
        """
        results = tuple(self.executor.run(list(inputs)).values())
        return results[0] if len(results) == 1 else results

    def set_input(self, name: str, array: Any) -> None:
        """Copy an array into an input of the next calls of `run()`.

        Raises:
            ArgumentError: If there is no such input, or the array does not fit it.
        """
        self.executor.set_input(name, array)

    def get_output(self, name: str | int) -> Array:
        """Return an output of the last run, by its name or its position.

        Raises:
            ArgumentError: If there is no such output, or the model did not run yet.
        """
        if isinstance(name, int) and 0 <= name < len(self.plan.outputs):
            name = self.plan.outputs[name].name
        return self.executor.get_output(str(name))

    def profile(self, **inputs: Any) -> ModelProfile:
        """Time each step of the model, which takes some seconds.

        Args:
            inputs: Arrays of inputs by name; ones for those that are left out.

        Raises:
            ArgumentError: If an input is unknown, or has the wrong shape or type.
        """
        arrays = {p.name: np.ones(p.shape, p.dtype) for p in self.plan.inputs} | inputs
        if unknown := set(inputs) - {param.name for param in self.plan.inputs}:
            names = ", ".join(param.name for param in self.plan.inputs)
            raise ArgumentError(f"unknown input {min(unknown)!r}: the inputs are {names}")
        checks = map(ArrayCheck, self.executor.inputs)
        checked = {check.name: check.array(arrays[check.name]) for check in checks}
        return profile_plan(self.plan, self._model, checked)

    def schedules(self) -> list[tuple[PrimFunc, Target, Trace]]:
        """Return the programs of the model with their schedules, for `lw.lock`."""
        tasks = self._model.tasks
        return [(task.func, self.plan.target, self._traces[task.key]) for task in tasks]

    def inspect(self) -> ModelInspection:
        """Return an inspection of the model: kernels, operators without kernels, memory."""
        return self._inspection

    def save(self, path: str | Path) -> None:
        """Write the model to a package, a `.lwm` file, which runs without a compiler.

        Raises:
            OSError: If it can't be written.
        """
        save_package(self.package, path)


def _loaded(package: Package) -> Executor | PackageError:
    """Return the model in memory, or why this machine can't run it: another one may."""
    try:
        return Executor(package)
    except PackageError as error:
        return error
