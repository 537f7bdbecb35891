"""Calls: polynomials, LLVM intrinsics, functions of the C library, and combinations of them."""

from __future__ import annotations

from collections.abc import Callable

from compiler.backends.cpu.codegen.operations.conversions import Conversions
from compiler.backends.cpu.codegen.operations.lane_prefixes import lane_prefixes, last_lane
from compiler.backends.cpu.codegen.operations.library_calls import library_call
from compiler.backends.cpu.codegen.operations.math_functions import (
    LIBRARY_FUNCTIONS,
    POLYNOMIALS,
    expand,
)
from compiler.backends.cpu.codegen.operations.vector_math.error_function import one_plus_erf
from compiler.backends.cpu.codegen.operations.vector_math.exponentials import logistic
from compiler.backends.cpu.codegen.operations.vector_math.lanes import Lanes
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import scalar_type, type_suffix, vector
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.lane_calls import SHUFFLE, picked_lanes, place_of_lane
from compiler.ir.core.llvm_calls import LLVM_CALL, llvm_function, llvm_result
from compiler.ir.core.nodes import BinOp, Call, Expr, FloatImm, IntImm, StringImm
from compiler.passes.cpu.scan_in_lanes import LAST, PREFIXES


class Calls:
    """Emits calls.

    Args:
        instructions: The instructions of the function.
        conversions: Its conversions.
        emit_value: Emits an expression.
        has_fma: Whether the CPU multiplies and adds with one rounding, which polynomials need.
    """

    def __init__(
        self,
        instructions: Instructions,
        conversions: Conversions,
        emit_value: Callable[[Expr], RegisterValue],
        *,
        has_fma: bool,
    ) -> None:
        self._instructions = instructions
        self._conversions = conversions
        self._value = emit_value
        self._has_fma = has_fma

    def _lanes(self, dtype: DType) -> Lanes:
        return Lanes(self._instructions, self._conversions, dtype)

    def call(self, call: Call) -> RegisterValue:  # noqa: C901 - one case a function
        """Emit a call under the current bindings."""
        instructions = self._instructions
        has_polynomial = self._has_fma and scalar_type(call.dtype) == "float"
        if has_polynomial and call.name in POLYNOMIALS:
            return POLYNOMIALS[call.name](self._lanes("float32"), *map(self._value, call.args))
        if call.name in (PREFIXES, LAST):
            return self._across_lanes(call)
        if call.name == SHUFFLE:
            return self._shuffle(call)
        match expand(call):
            case Call("sigmoid", (x,), dtype):
                scalar = scalar_type(dtype)
                lanes = self._lanes("float64" if scalar == "double" else "float32")
                return logistic(
                    lanes, self._value(x), lambda t: instructions.intrinsic("exp", scalar, (t,))
                )
            case Call("reinterpret", (inner,), dtype):
                return self._conversions.reinterpret(self._value(inner), dtype_of(inner), dtype)
            case Call("likely", (inner,), _):
                return self._value(inner)
            case Call("undef", _, dtype):
                return self._value(FloatImm(0.0, dtype) if is_float(dtype) else IntImm(0, dtype))
            case Call(name, (StringImm(function), *operands), dtype) if name == LLVM_CALL:
                return self._llvm_call(function, operands, dtype)
            case Call(name, args, dtype) if name in LIBRARY_FUNCTIONS:
                values = tuple(self._value(a) for a in args)
                return library_call(
                    instructions, self._conversions, LIBRARY_FUNCTIONS[name], dtype, values
                )
            case Call(name, args, dtype):
                return instructions.intrinsic(
                    name, scalar_type(dtype), tuple(map(self._value, args))
                )
            case expanded:
                return self._value(expanded)

    def one_plus(self, expr: BinOp) -> RegisterValue | None:
        """Emit `1 + f(x)` for a function with a polynomial for that, else return None."""
        match expr:
            case BinOp("+", Call("erf", (x,), dtype), FloatImm(1.0)) | BinOp(
                "+", FloatImm(1.0), Call("erf", (x,), dtype)
            ) if self._has_fma and scalar_type(dtype) == "float":
                return one_plus_erf(self._lanes("float32"), self._value(x))
            case _:
                return None

    def _across_lanes(self, call: Call) -> RegisterValue:
        """Emit what combines the lanes of a vector."""
        scalar, x = scalar_type(call.dtype), self._value(call.args[-1])
        match call.args[0]:
            case StringImm(op):
                return lane_prefixes(self._instructions, op, scalar, x)
            case _:
                return last_lane(self._instructions, scalar, x)

    def _shuffle(self, call: Call) -> RegisterValue:
        """Take lanes of vectors, one by one: LLVM makes shuffles of them."""
        builder, scalar, vectors = (
            self._instructions.builder,
            scalar_type(call.dtype),
            call.args[1:],
        )
        values, counts = list(map(self._value, vectors)), list(map(lanes_of, vectors))
        picked = picked_lanes(call)
        result, kind = "poison", vector(scalar, len(picked))
        for lane, number in enumerate(picked):
            position, inner = place_of_lane(number, counts)
            element = values[position].name
            if values[position].lanes > 1:  # otherwise all lanes are copies of one scalar
                of = vector(scalar, counts[position])
                element = builder.emit(f"extractelement {of} {element}, i32 {inner}")
            if len(picked) == 1:
                return RegisterValue(element, builder.depth)
            inserted = f"insertelement {kind} {result}, {scalar} {element}, i32 {lane}"
            result = builder.emit(inserted)
        return RegisterValue(result, builder.depth, len(picked))

    def _llvm_call(self, name: str, operands: list[Expr], dtype: DType) -> RegisterValue:
        """Call a function of LLVM with exactly the lanes that its operands have."""
        function = llvm_function(name)
        types = [(dtype_of(a), lanes_of(a)) for a in operands]
        if function.args is None and not function.is_reduction:
            values = tuple(self._value(a) for a in operands)
            constants = ("false",) if function.has_flag else ()
            return self._instructions.intrinsic(
                function.name[5:], scalar_type(dtype), values, constants
            )
        lanes = llvm_result(name, types)[1]
        symbol = function.name
        if function.is_reduction:
            symbol += f".{type_suffix(scalar_type(types[-1][0]), types[-1][1])}"
        args = [
            (
                vector(scalar_type(kind), width),
                self._instructions.broadcast(self._value(a), scalar_type(kind), width),
            )
            for a, (kind, width) in zip(operands, types, strict=True)
        ]
        # The lanes may be summed in any order: adding halves takes the fewest steps.
        flags = "reassoc " if function.is_reduction and is_float(dtype) else ""
        return self._instructions.call(
            vector(scalar_type(dtype), lanes), symbol, args, lanes, flags
        )
