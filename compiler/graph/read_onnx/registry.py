"""The registry of conversions: `@onnx_operator` declares how an ONNX operator becomes nodes.

A conversion takes an `OnnxCall`: the node of the model with its operands, its attributes and the
version of its operator set. It adds nodes with `call.add`, and returns the results in order. One
conversion serves all versions; where they differ, it looks at `call.opset`, or uses a method of the
call that hides the difference. Names of ONNX are in its documentation at
https://onnx.ai/onnx/operators.

The reader has checked the node before: its operands and attributes have the number and the types
that the schema of ONNX allows. It names the node in each `ModelError` that a conversion raises.

Example:
    @onnx_operator("HardSigmoid")
    def _hard_sigmoid(call: OnnxCall) -> Operand:
        x = call.operand(0)
        scaled = call.add("multiply", x, call.like(x, call.float_attr("alpha", 0.2)))
        moved = call.add("add", scaled, call.like(x, call.float_attr("beta", 0.5)))
        return call.add("clip", moved, min=0.0, max=1.0)

Methods of a call:
    operand(k), optional(k), operands   what the node reads; None is an operand that is left out
    type(k), static_type(k)             the type of an operand
    int_attr, ints_attr, float_attr ... attributes with their default values, typed
    ints("axes", 1)                     integers that are an attribute, or operand 1 (by version)
    extents("shape", 1)                 the same for extents, which may be symbolic
    constant_of(1, "the pads")          the elements of an operand; refused if it is computed at
                                        run time
    add, add_all                        add a node; constants are folded
    constant(array), like(x, number)    constants
    wants(k)                            whether result k is used
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.symbolic import Result

Conversion: TypeAlias = "Callable[[OnnxCall], Result | Sequence[Result | None]]"

CONVERSIONS: dict[tuple[str, str], Conversion] = {}
"""All conversions by domain and operator; `compiler.graph.read_onnx.conversions` declares them."""


def onnx_operator(*op_types: str, domain: str = "") -> Callable[[Conversion], Conversion]:
    """Declare the conversion of one or several operators of a domain; see the module.

    Args:
        op_types: The operators, in ONNX's spelling. A conversion of several looks at
            `call.op_type`.
        domain: The domain of the operators; empty for ONNX's own.

    Raises:
        ValueError: If an operator is declared twice.
    """

    def declare(conversion: Conversion) -> Conversion:
        for op_type in op_types:
            if (domain, op_type) in CONVERSIONS:
                raise ValueError(f"the ONNX operator {op_type} is declared twice")
            CONVERSIONS[domain, op_type] = conversion
        return conversion

    return declare
