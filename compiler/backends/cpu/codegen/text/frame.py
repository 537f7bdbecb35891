"""The memory of a function: local variables on its stack, and a workspace from its caller."""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.builder import CodeBuilder

# The line of x86-64 CPUs and of most Arm ones (Cortex-A, Neoverse).
CACHE_LINE_BYTES = 64


class Frame:
    """Allocates local buffers.

    Attributes:
        allocas: The instructions that begin the function.
        used_bytes: The part of the workspace in use.
        peak_bytes: The largest part of the workspace in use at once.
    """

    def __init__(self, builder: CodeBuilder) -> None:
        self._builder = builder
        self.allocas: list[str] = []
        self.used_bytes = 0
        self.peak_bytes = 0

    def allocate_on_stack(self, count: int, element: str, alignment: int, stem: str) -> str:
        """Return the name of an array on the stack.

        Args:
            count: The number of its elements.
            element: Their LLVM type.
            alignment: Its alignment in bytes.
            stem: The beginning of its name.
        """
        name = f"%{self._builder.fresh_name(stem)}"
        self.allocas.append(f"  {name} = alloca [{count} x {element}], align {alignment}")
        return name

    def allocate_in_workspace(self, size_bytes: int) -> str:
        """Return the address of memory in the workspace, which `release` gives back."""
        text = f"getelementptr inbounds i8, ptr %workspace, i64 {self.used_bytes}"
        name = self._builder.emit_once(text, 0)
        self.used_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return name

    def release(self, size_bytes: int) -> None:
        """Give back the memory that was allocated in the workspace last."""
        self.used_bytes -= size_bytes
