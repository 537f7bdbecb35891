"""The task: what is tuned, for which machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compiler.ir.analysis.flops import flops
from compiler.ir.analysis.specialize import sized
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.target.target import Target


@dataclass(frozen=True)
class Task:
    """A workload on a target; `weight` says how often a model runs it."""

    func: PrimFunc
    target: Target
    weight: float = 1.0

    @cached_property
    def workload_key(self) -> str:
        """The structural hash of the workload, in hexadecimal."""
        return structural_hash(self.func)

    @cached_property
    def key(self) -> str:
        """The identity of the task: workload and target, without the weight."""
        return f"{self.workload_key}@{self.target.name}"

    @cached_property
    def script(self) -> str:
        """The workload as text."""
        return script(self.func)

    @cached_property
    def flops(self) -> int:
        """The floating-point operations of one run."""
        return flops(sized(self.func))
