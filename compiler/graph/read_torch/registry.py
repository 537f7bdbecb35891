"""The registry of conversions: `@aten` declares how an ATen operator becomes nodes.

A conversion takes a `TorchCall`: the node of the program with its arguments. It adds nodes with
`call.add`, and returns the results in order; None for a result that it can't compute, which no
program may use. The reader compares the types of the results with those that PyTorch infers, and
names the node in each `ModelError` that a conversion raises.

What has a conversion is not decomposed when a module is exported. So an operator that PyTorch could
express by others needs a conversion only if graphs have an operator for the whole of it.

Example:
    @aten("hardtanh.default")
    def _hardtanh(call: TorchCall) -> Operand:
        low, high = call.number("min_val"), call.number("max_val")
        return call.add("clip", call.operand("self"), min=low, max=high)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall

Conversion: TypeAlias = "Callable[[TorchCall], Operand | Sequence[Operand | None]]"

CONVERSIONS: dict[str, Conversion] = {}
"""All conversions by overload; `compiler.graph.read_torch.conversions` declares them."""


def aten(*overloads: str) -> Callable[[Conversion], Conversion]:
    """Declare the conversion of one or several overloads, such as `add.Tensor`; see the module.

    Raises:
        ValueError: If one is declared twice.
    """

    def declare(conversion: Conversion) -> Conversion:
        for overload in overloads:
            if overload in CONVERSIONS:
                raise ValueError(f"the ATen operator {overload} is declared twice")
            CONVERSIONS[overload] = conversion
        return conversion

    return declare
