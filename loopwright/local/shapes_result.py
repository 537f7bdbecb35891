"""The result of `lw.tune` over ranges of sizes: a few kernels, and the dispatcher between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.backends.module import Module
from compiler.driver import build
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from loopwright.local.tune_result import Trial
from tuner.shapes.shape_time import ShapeTime, mean_loss


@dataclass(frozen=True, slots=True)
class ShapeKernel:
    """One of the kernels: a schedule of the symbolic program.

    Attributes:
        sketch: The sketch of its schedule.
        trace: Its schedule.
    """

    sketch: str
    trace: Trace


@dataclass(frozen=True, repr=False)
class ShapesResult:
    """The result of tuning over ranges.

    Attributes:
        func: The symbolic program, with its ranges.
        target: The target.
        kernels: The kernels, at most eight, by their numbers.
        times: The times at the sizes that were tried, in ascending order.
        module: The dispatcher, which has the name of the program, and the kernels that it calls.
        artifact: The compiled kernels with their dispatcher.
        trials: The trials of each tuned size, in the order of those of `times` that have
            `tuned_secs`.
    """

    func: PrimFunc
    target: Target
    kernels: tuple[ShapeKernel, ...]
    times: tuple[ShapeTime, ...]
    module: IRModule
    artifact: Artifact
    trials: tuple[tuple[Trial, ...], ...]

    def __repr__(self) -> str:
        kernels = f"{len(self.kernels)} kernel{'s' if len(self.kernels) > 1 else ''}"
        loss = "" if self.loss is None else f", {self.loss:+.1%} to kernels of one size"
        return f"<ShapesResult of {self.func.name} on {self.target.name}: {kernels}{loss}>"

    @property
    def dispatcher(self) -> str:
        """Return the text of the dispatcher."""
        return self.module[self.func.name].script()

    @property
    def loss(self) -> float | None:
        """Return the loss in the geometric mean over the sizes that were tuned alone."""
        return mean_loss(self.times)

    def build(self, const_params: Mapping[str, Any] | None = None) -> Module:
        """Compile the dispatcher and its kernels, and load them; see `loopwright.build`."""
        module = build(self.module, self.target, const_params)
        assert isinstance(module, Module), "the dispatcher is the only entry"
        return module
