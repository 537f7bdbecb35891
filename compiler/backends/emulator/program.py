"""A parsed kernel: its instructions with resolved names, and the layout of its memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class PtxInstruction:
    """An instruction.

    Attributes:
        parts: Its name, split at the dots.
        operands: Their texts, with names that are unique in the program.
        guard: The predicate on which it depends.
        is_negated: Whether it runs if the predicate is false.
        ptx_line: Its line in the PTX, from 1.
        source_line: The line of the CUDA source that it comes from; None if unknown.
        text: The statement as written.
        target: The position of the instruction that a branch continues at; -1 for others.
        index: Its own position.
    """

    parts: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None
    is_negated: bool
    ptx_line: int
    source_line: int | None
    text: str
    target: int = -1
    index: int = -1

    @property
    def opcode(self) -> str:
        """Return its name without suffixes."""
        return self.parts[0]


@dataclass(frozen=True, slots=True)
class PtxVariable:
    """A variable of the module in global or constant memory, with its initial content."""

    name: str
    align: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PtxParameter:
    """A parameter of the kernel: its position in the parameter memory, and its size in bytes."""

    offset: int
    num_bytes: int
    type_name: str


@dataclass(slots=True)
class Program:
    """A kernel that is ready to be decoded.

    Attributes:
        name: The name of the kernel.
        parameters: By name, in order.
        registers: The type of each register, such as `b32` or `pred`.
        instructions: Those of the kernel, with the functions that it calls inlined.
        variables: The variables of the module.
        shared: The offset of each shared variable in the shared memory of a block.
        static_shared_bytes: The size of the shared variables with a known size.
        dynamic_shared: The name of the variable that holds the dynamic shared memory.
        local: The offset of each local variable in the local memory of a thread.
        local_bytes: The size of that memory.
    """

    name: str
    parameters: dict[str, PtxParameter] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    instructions: list[PtxInstruction] = field(default_factory=list)
    variables: list[PtxVariable] = field(default_factory=list)
    shared: dict[str, int] = field(default_factory=dict)
    static_shared_bytes: int = 0
    dynamic_shared: str | None = None
    local: dict[str, int] = field(default_factory=dict)
    local_bytes: int = 0

    @property
    def synchronizes_parts(self) -> bool:
        """Return whether warps of a block synchronize without the others."""
        return any(
            instruction.opcode == "mbarrier"
            or (instruction.opcode in ("bar", "barrier") and "warp" in instruction.parts)
            or (instruction.opcode in ("bar", "barrier") and instruction.operands != ("0",))
            for instruction in self.instructions
        )
