"""Print calls: mathematical functions of CUDA, and what lowering calls by name."""

from __future__ import annotations

from collections.abc import Callable

from compiler.backends.cuda.text.scope import KernelScope
from compiler.backends.error import BuildError
from compiler.ir.core.dtypes import DType, bits, is_float, is_narrow_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.core.llvm_calls import LLVM_CALL
from compiler.ir.core.nodes import Call, Expr, StringImm
from compiler.target.gpus import WARP_SIZE

_UNARY = 15

# Our name of a function -> CUDA's, for double; the one for float has the suffix `f`. They are the
# accurate functions, with the errors that the CUDA C++ Programming Guide lists.
_FUNCTIONS = {name: name for name in INTRINSICS if name != "sigmoid"} | {
    "abs": "fabs",
    "nearbyint": "rint",
    "round": "rint",
}


class CudaCalls:
    """Prints calls.

    Args:
        scope: The surroundings of the calls.
        print_value: Prints an expression inside an operator of a precedence.
    """

    def __init__(self, scope: KernelScope, print_value: Callable[[Expr, int], str]) -> None:
        self._scope = scope
        self._value = print_value

    def call(self, call: Call, parent: int) -> str:
        """Print a call that has a value.

        Raises:
            BuildError: If CUDA has no such function.
        """
        match call:
            case Call("likely", (inner,), _):
                return self._value(inner, parent)
            case Call("undef", _, dtype):
                return f"{self._scope.value_type(dtype)}()"
            case Call("sigmoid", (inner,), _):
                return f"{self._scope.helper('sigmoid')}({self._value(inner, 0)})"
            case Call("reinterpret", (inner,), dtype):
                return self._reinterpret(inner, dtype)
            case Call("shuffle_xor", (inner, distance), dtype):
                value, lanes = self._value(inner, 0), self._value(distance, 0)
                text = f"__shfl_xor_sync({self._lanes()}, {value}, {lanes})"
                # A shuffle of a narrow integer returns an int, which holds the same value.
                return f"(bool){text}" if dtype == "bool" else text
            case Call("pack_float16" | "pack_bfloat16" as name, (low, high), _):
                values = f"{self._value(low, 0)}, {self._value(high, 0)}"
                return f"{self._scope.helper(name)}({values})"
            case Call(dtype=dtype) if not is_float(dtype):
                return self._on_integers(call)
            case Call(name, args, dtype) if name in _FUNCTIONS:
                function = _FUNCTIONS[name] + ("" if dtype == "float64" else "f")
                return f"{function}({', '.join(self._value(a, 0) for a in args)})"
            case _:
                raise _no_function(call)

    def _on_integers(self, call: Call) -> str:
        match call:
            case Call("abs", (inner,), dtype):
                return self._absolute(inner, dtype)
            case Call(name, (StringImm("llvm.ctpop"), inner), dtype) if name == LLVM_CALL:
                return self._population(inner, dtype)
            case _:
                raise _no_function(call)

    def _lanes(self) -> str:
        """Return the mask of the lanes that take part in a shuffle: those that exist."""
        threads = self._scope.num_threads
        return "0xffffffffu" if threads >= WARP_SIZE else f"{(1 << threads) - 1:#x}u"

    def _absolute(self, inner: Expr, dtype: DType) -> str:
        if dtype == "int64":
            return f"llabs({self._value(inner, 0)})"
        # The absolute value of the smallest integer is itself.
        return self._as_type(f"abs({self._value(inner, 0)})", dtype)

    def _population(self, inner: Expr, dtype: DType) -> str:
        """Print the number of ones among the bits of an integer."""
        text = self._value(inner, 0)
        if bits(dtype) == 64:
            return self._as_type(f"__popcll({text})", dtype)
        # Narrow integers are held in 32 bits, and signs are repeated there.
        mask = f"({text}) & {(1 << bits(dtype)) - 1:#x}" if bits(dtype) < 32 else text
        return self._as_type(f"__popc({mask})", dtype)

    def _as_type(self, text: str, dtype: DType) -> str:
        """Print the conversion of an `int` to a type."""
        return text if dtype == "int32" else f"({self._scope.value_type(dtype)}){text}"

    def _reinterpret(self, inner: Expr, dtype: DType) -> str:
        source = dtype_of(inner)
        if bits(source) != bits(dtype):
            raise BuildError(f"CUDA can't reinterpret {source} as {dtype}", "codegen")
        target, origin = self._scope.storage_type(dtype), self._scope.storage_type(source)
        value = self._value(inner, 0 if is_narrow_float(source) else _UNARY)
        cast = f"{origin}({value})" if is_narrow_float(source) else f"({origin}){value}"
        return f"{self._scope.helper('reinterpret')}<{target}>({cast})"


def _no_function(call: Call) -> BuildError:
    return BuildError(f"CUDA has no function {call.name!r} on {call.dtype}", "codegen")
