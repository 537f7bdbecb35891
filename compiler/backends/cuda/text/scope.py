"""The surroundings of the code that is printed: names, ranges of variables, helpers in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.backends.cuda.text.names import names_of_kernel
from compiler.backends.cuda.text.types import (
    TYPE_ALIASES,
    storage_type,
    value_type,
)
from compiler.ir.arith.bounds import FixedRanges, bounds
from compiler.ir.core.dtypes import DType, is_narrow_float
from compiler.ir.core.nodes import Buffer, Expr, Load
from compiler.ir.text.names import Names
from compiler.passes.device.kernel import TensorBox


@dataclass(slots=True)
class KernelScope:
    """The bindings and facts that hold for the expressions of a kernel.

    Attributes:
        num_threads: The number of threads of a block.
        shared_offsets: The positions of shared buffers, in bytes.
        helpers: The names of the helpers that the kernel uses.
        ranges: The intervals of variables.
        replaced: Loads that were done before, and the texts of their values.
        tensors: The names of the arguments that describe tensors to the copy engine.
    """

    num_threads: int
    shared_offsets: Mapping[Buffer, int]
    helpers: set[str]
    names: Names = field(default_factory=names_of_kernel)
    ranges: FixedRanges = field(default_factory=FixedRanges)
    replaced: dict[Load, str] = field(default_factory=dict)
    tensors: dict[TensorBox, str] = field(default_factory=dict)

    def helper(self, name: str) -> str:
        """Return the name of a helper, and have it declared."""
        self.helpers.add(name)
        return name

    def storage_type(self, dtype: DType) -> str:
        """Return the type of elements in memory."""
        return self._declared(storage_type(dtype), dtype)

    def value_type(self, dtype: DType) -> str:
        """Return the type of values in registers."""
        return self._declared(value_type(dtype), dtype)

    def _declared(self, name: str, dtype: DType) -> str:
        if name in TYPE_ALIASES or (is_narrow_float(dtype) and name == dtype):
            self.helpers.add(name)
        return name

    def is_natural(self, expr: Expr) -> bool:
        """Return whether an integer expression is surely not negative."""
        interval = bounds(expr, self.ranges)
        return interval is not None and interval[0] >= 0
