"""Where instructions go: nested levels of straight-line code that stay open for hoisting.

The body of a loop is written into a level of its own and joins its parent when the loop is
complete. Until then the parent is open, so an instruction that does not depend on the loop can
still be put before it: addresses and broadcasts are computed at the outermost level that knows
their operands. This does the work of LICM, GVN and EarlyCSE while writing, and no pass has to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Buffer, Var

Place: TypeAlias = tuple[str, int | None, str | None, int]
"""An address: the pointer, the stride of lanes or the vector of their offsets, and how many."""
LoadKey: TypeAlias = tuple[Place, int, object, DType]
"""What was loaded of a storage: the address, how many lanes, the mask, the type."""


@dataclass(slots=True)
class Level:
    """A region of code: its lines, the block it is in, and what it has computed so far.

    `values` holds pure values by their meaning, `addresses` those of accesses by what their
    variables stand for; `loads` holds what was loaded of each storage, until a store.
    """

    label: str
    lines: list[str] = field(default_factory=list)
    values: dict[object, str] = field(default_factory=dict)
    addresses: dict[object, Any] = field(default_factory=dict)
    loads: dict[Var, dict[LoadKey, str]] = field(default_factory=dict)


class Emitter:
    """The levels of one function, innermost last, and fresh names."""

    def __init__(self) -> None:
        self.levels: list[Level] = [Level("entry")]
        self._names = 0

    @property
    def depth(self) -> int:
        """The index of the innermost level."""
        return len(self.levels) - 1

    @property
    def current(self) -> Level:
        """The innermost level."""
        return self.levels[-1]

    def name(self, stem: str = "v") -> str:
        """Return a name that no instruction or block of the function has."""
        self._names += 1
        return f"{stem}{self._names}"

    def emit(self, text: str, level: int = -1) -> str:
        """Append an instruction that yields a value; return the value's name."""
        result = f"%{self.name()}"
        self.levels[level].lines.append(f"  {result} = {text}")
        return result

    def do(self, text: str) -> None:
        """Append an instruction that yields nothing."""
        self.current.lines.append(f"  {text}")

    def pure(self, text: str, level: int) -> str:
        """Return the value of an instruction without effect, computed once, at `level`.

        Every operand must be known at `level`.
        """
        # Most of what is known was asked for at the same level.
        own = self.levels[level].values
        known = own.get(text)
        if known is not None:
            return known
        for outer in self.levels[:level]:
            known = outer.values.get(text)
            if known is not None:
                return known
        value = own[text] = self.emit(text, level)
        return value

    def open(self, label: str) -> Level:
        """Start a nested level at the block `label`."""
        level = Level(label)
        self.levels.append(level)
        return level

    def close(self) -> Level:
        """Leave the innermost level; its parent forgets what it had loaded."""
        level = self.levels.pop()
        self.current.loads.clear()
        return level

    def forget_loads(self, buffer: Buffer) -> None:
        """Drop what is known of a buffer's elements after a store to it."""
        for level in self.levels:
            level.loads.pop(buffer.data, None)
