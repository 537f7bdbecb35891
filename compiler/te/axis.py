"""Axes: the dimensions of a computation, and the loops that a schedule makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.ir.core.nodes import Expr

AxisKind: TypeAlias = Literal["spatial", "reduce", "scan", "thread"]


@dataclass(frozen=True, slots=True, eq=False)
class TensorAxis:
    """An axis of a tensor, a part of one, or an axis of threads; TVM's `IterVar`.

    Attributes:
        name: The name in errors and, for a dimension, of the loop.
        kind: What its iterations do: write different elements, reduce, or depend on earlier ones.
            An axis of threads takes the place of another axis.
        extent: The number of iterations; None if the program decides.
        thread_tag: The name of the threads, such as "threadIdx.x".
    """

    name: str
    kind: AxisKind
    extent: Expr | None = None
    thread_tag: str = ""

    def __repr__(self) -> str:
        return f"<TensorAxis {self.name}>"
