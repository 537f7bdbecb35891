"""The result of an inspection: the code and the resources of a kernel before it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from compiler.runtime.resources import KernelResources


@dataclass(frozen=True, slots=True)
class CodeText:
    """A text that a compiler made of a program.

    Attributes:
        language: The name of its language, such as "LLVM IR" or "PTX".
    """

    language: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Emulation:
    """What a kernel does in the emulator of its device, on inputs of the oracle.

    Attributes:
        reports: The report of each launch as text: faults, each with its line, block and thread,
            and costs such as bank conflicts.
        num_faults: The number of faults of all launches.
        is_complete: Whether all blocks ran; of a large grid some are left out.
        max_error: The largest difference from the oracle, relative to the output's magnitude; None
            if the result is wrong, or was not compared.
        problem: Why the result is wrong, or was not compared; empty if it is correct.
    """

    reports: tuple[str, ...]
    num_faults: int
    is_complete: bool
    max_error: float | None = None
    problem: str = ""

    @property
    def is_correct(self) -> bool:
        """Return whether no fault was found, and the result is the oracle's."""
        return self.num_faults == 0 and self.max_error is not None

    @property
    def summary(self) -> str:
        """Return the outcome in words."""
        faults = f"{self.num_faults} faults" if self.num_faults else "no faults"
        extent = "all blocks" if self.is_complete else "some blocks"
        result = self.problem or f"equal to the oracle (error {self.max_error:.1e})"
        return f"{extent}, {faults}; {result}"


@dataclass(frozen=True, slots=True, repr=False)
class Inspection:
    """The code and the resources of a kernel, before it runs; printed, a summary and the source.

    Attributes:
        name: The name of the program.
        target: The target that it was compiled for.
        toolchain: The versions of the code generator and of its compiler.
        code_bytes: The size of the compiled code.
        source: The source code that the backend generated.
        assembly: What the compiler made of it, as text.
        resources: What the kernel uses of its device; None for a CPU.
        emulation: What it does in the emulator of its device; None for a CPU.
    """

    name: str
    target: str
    toolchain: str
    code_bytes: int
    source: CodeText
    assembly: CodeText
    resources: KernelResources | None = None
    emulation: Emulation | None = None

    def __repr__(self) -> str:
        return f"<Inspection of {self.name} for {self.target}>"

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        lines = (f"{name:{width}}  {value}" for name, value in self.facts.items())
        reports = () if self.emulation is None else self.emulation.reports
        return "\n".join((*lines, "", *reports, "", self.source.text))

    @property
    def facts(self) -> dict[str, str]:
        """Return the facts of the kernel in words, by name."""
        return {
            "kernel": self.name,
            "target": self.target,
            "compiled by": self.toolchain,
            "code": f"{self.code_bytes} bytes",
            **{text.language: _length(text.text) for text in (self.source, self.assembly)},
            **({} if self.resources is None else self.resources.in_words()),
            **({} if self.emulation is None else {"emulated": self.emulation.summary}),
        }

    def to_json(self) -> dict[str, Any]:
        """Return all of it as a JSON-able object."""
        return asdict(self)


def _length(text: str) -> str:
    return f"{len(text.splitlines())} lines"
