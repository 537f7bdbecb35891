"""The programs of a model, each once: what is scheduled, tuned and built."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from compiler.graph.lower import LoweredGroup
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.program import PrimFunc


@dataclass(frozen=True, slots=True, eq=False)
class ModelTask:
    """A program of a model.

    Attributes:
        key: The structural hash of the program.
        func: The program.
        groups: The groups of nodes that it computes.
    """

    key: str
    func: PrimFunc
    groups: tuple[LoweredGroup, ...]

    @property
    def weight(self) -> float:
        """Return the number of its runs in one run of the model."""
        return float(len(self.groups))


def model_tasks(groups: Iterable[LoweredGroup]) -> list[ModelTask]:
    """Return the different programs of groups, in the order of their first use."""
    same: dict[str, list[LoweredGroup]] = defaultdict(list)
    for group in groups:
        same[structural_hash(group.func)].append(group)
    return [ModelTask(key, groups[0].func, tuple(groups)) for key, groups in same.items()]
