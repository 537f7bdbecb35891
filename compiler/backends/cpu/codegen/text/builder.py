"""The text of a function while it grows: nested levels of code that stay open for hoisting.

The body of a loop is written into a level of its own, and joins its parent when the loop is
complete. Until then the parent is open, so an instruction that does not depend on the loop can
still be put before it: addresses and broadcasts are computed at the outermost level that has their
operands. This replaces LLVM's passes LICM, GVN and EarlyCSE.

Example: the body of `for i: for j: C[i, j] = A[i] * B[j]` asks for `A[i]` in the loop over `j`.
The multiplication of `i` by the row's size in bytes is emitted at the level of the loop over `i`:

    level 0  entry        %v1 = load of whatever depends on no loop
    level 1  loop over i  %v2 = mul nsw i64 %i, 16
    level 2  loop over j  (open; its lines join level 1 when it closes)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Buffer, Var

AddressKey: TypeAlias = tuple[str, int | None, str | None, int]
"""An address: the pointer, the stride of lanes or the vector of their offsets, and how many."""
LoadKey: TypeAlias = tuple[AddressKey, int, object, DType]
"""A load: the address, the number of lanes, the mask, the type."""


@dataclass(slots=True)
class Level:
    """A region of code that dominates the levels nested in it.

    Attributes:
        label: The basic block that new lines go to.
        lines: The instructions and labels so far.
        values: The results of instructions without effect at this level, by their text.
        addresses: Addresses of accesses, by the bindings of their variables.
        loads: The loaded elements of each storage since its last store.
    """

    label: str
    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    addresses: dict[object, Any] = field(default_factory=dict)
    loads: dict[Var, dict[LoadKey, str]] = field(default_factory=dict)


class CodeBuilder:
    """Writes the lines of one function: its levels, innermost last, and fresh names."""

    def __init__(self) -> None:
        self.levels: list[Level] = [Level("entry")]
        # The values of all levels, each with the index of the outermost level that has it.
        self._values: dict[str, tuple[str, int]] = {}
        self._num_names = 0

    @property
    def depth(self) -> int:
        """Return the index of the innermost level."""
        return len(self.levels) - 1

    @property
    def innermost(self) -> Level:
        """Return the level that new instructions go to."""
        return self.levels[-1]

    def fresh_name(self, stem: str = "v") -> str:
        """Return a name that no instruction or block of the function has."""
        self._num_names += 1
        return f"{stem}{self._num_names}"

    def emit(self, text: str, level: int = -1) -> str:
        """Append an instruction that yields a value; return the value's name."""
        self._num_names += 1
        result = f"%v{self._num_names}"
        self.levels[level].lines.append(f"  {result} = {text}")
        return result

    def emit_void(self, text: str) -> None:
        """Append an instruction that yields no value."""
        self.levels[-1].lines.append(f"  {text}")

    def emit_once(self, text: str, level: int) -> str:
        """Return the value of an instruction without effect; emit it at `level` if it is new.

        Every operand must be available at `level`.
        """
        cached = self._values.get(text)
        if cached is not None and cached[1] <= level:
            return cached[0]
        value = self.levels[level].values[text] = self.emit(text, level)
        self._values[text] = value, level
        return value

    def open(self, label: str) -> None:
        """Start a nested level at the block `label`."""
        self.levels.append(Level(label))

    def reopen(self, level: Level) -> None:
        """Continue a level that was closed and whose lines have not joined its parent yet."""
        for text, value in level.values.items():
            self._values.setdefault(text, (value, len(self.levels)))
        self.levels.append(level)

    def close(self) -> Level:
        """Leave the innermost level; its parent forgets its loads, which the level may change."""
        level = self.levels.pop()
        depth, values = len(self.levels), self._values
        for text in level.values:
            if values[text][1] == depth:
                del values[text]
        self.levels[-1].loads.clear()
        return level

    def forget_loads(self, buffer: Buffer) -> None:
        """Forget the loaded elements of a buffer, after a store to it."""
        for level in self.levels:
            level.loads.pop(buffer.data, None)
