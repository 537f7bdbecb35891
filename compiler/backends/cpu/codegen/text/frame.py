"""The memory of a function: local variables on its stack, and a workspace from its caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compiler.backends.cpu.codegen.text.builder import CodeBuilder
from compiler.backends.cpu.codegen.text.instructions import RegisterValue
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Expr, IntImm

# The line of x86-64 CPUs and of most Arm ones (Cortex-A, Neoverse).
CACHE_LINE_BYTES = 64
_LINE = IntImm(CACHE_LINE_BYTES)
_MEMSET = "llvm.memset.p0.i64"


class Frame:
    """Allocates local buffers. Sizes in bytes are expressions of symbolic variables.

    Args:
        builder: The builder of the function.
        emit_integer: Emits an expression as a 64-bit integer.

    Attributes:
        allocas: The instructions that begin the function.
        externals: The declarations of what they call.
        used_bytes: The part of the workspace in use.
        peak_bytes: The largest part of the workspace in use at once.
    """

    def __init__(self, builder: CodeBuilder, emit_integer: Callable[[Expr], RegisterValue]) -> None:
        self._builder = builder
        self._emit_integer = emit_integer
        self.allocas: list[str] = []
        self.externals: set[str] = set()
        self.used_bytes: Expr = IntImm(0)
        self.peak_bytes: Expr = IntImm(0)

    def allocate_on_stack(
        self, count: int, element: str, alignment: int, stem: str, *, zeroed_bytes: int = 0
    ) -> str:
        """Return the name of an array on the stack.

        Args:
            count: The number of its elements.
            element: Their LLVM type.
            alignment: Its alignment in bytes.
            stem: The beginning of its name.
            zeroed_bytes: The bytes that are zero when the function begins.
        """
        name = f"%{self._builder.fresh_name(stem)}"
        self.allocas.append(f"  {name} = alloca [{count} x {element}], align {alignment}")
        if zeroed_bytes:
            self.externals.add(f"declare void @{_MEMSET}(ptr, i8, i64, i1)")
            call = f"call void @{_MEMSET}(ptr {name}, i8 0, i64 {zeroed_bytes}, i1 false)"
            self.allocas.append(f"  {call}")
        return name

    @contextmanager
    def workspace(self, size_bytes: Expr) -> Iterator[RegisterValue]:
        """Yield the address of memory in the workspace, which is given back at the end."""
        before, (text, level) = self.used_bytes, self.end_of_workspace()
        self.used_bytes = self.reserve(size_bytes)
        yield RegisterValue(self._builder.emit_once(text, level), level)
        self.used_bytes = before

    def end_of_workspace(self) -> tuple[str, int]:
        """Return the instruction that yields the end of the part in use, and its level."""
        offset = self._emit_integer(self.used_bytes)
        return f"getelementptr inbounds i8, ptr %workspace, i64 {offset.name}", offset.level

    def reserve(self, size_bytes: Expr) -> Expr:
        """Let the workspace have room for a size behind the part in use; return the end of both."""
        end = simplify(BinOp("+", self.used_bytes, size_bytes))
        self.peak_bytes = simplify(BinOp("max", self.peak_bytes, end))
        return end


def whole_lines(size_bytes: Expr) -> Expr:
    """Return a size, rounded up to whole cache lines."""
    lines = BinOp("//", BinOp("+", size_bytes, IntImm(CACHE_LINE_BYTES - 1)), _LINE)
    return simplify(BinOp("*", lines, _LINE))
