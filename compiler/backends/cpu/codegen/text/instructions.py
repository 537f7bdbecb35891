"""Instructions on values: each goes to the outermost level that has its operands.

A value that does not depend on the vectorized variable is scalar until it meets a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compiler.backends.cpu.codegen.text.builder import CodeBuilder, LoadKey
from compiler.backends.cpu.codegen.text.types import splat, type_suffix, vector
from compiler.ir.core.dtypes import DType
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import Var


@frozen
class RegisterValue:
    """A value in a register: its name or literal, the level that computes it, its lanes."""

    name: str
    level: int
    lanes: int = 1


@frozen
class NarrowInteger:
    """An integer of 8 or 16 bits, or a vector of them.

    Attributes:
        is_small: Whether all are proven to be from 0 to 127.
    """

    value: RegisterValue
    bits: int
    is_signed: bool
    is_small: bool = False


@frozen
class NarrowFloat:
    """A float of 8 or 16 bits, or a vector of them, as its bits."""

    bits: RegisterValue
    dtype: DType


@frozen
class GroupPart:
    """One lane of each group of neighbours in a vector: those at `position` of `size`."""

    groups: RegisterValue
    position: int
    size: int


@frozen
class LoadedElement:
    """An integer that was loaded alone.

    Attributes:
        storage: Its buffer.
        key: The key of the load among those of its level.
        pointer: Its address.
        base: The pointer that the address is `offset` bytes from.
    """

    storage: Var
    key: LoadKey
    pointer: RegisterValue
    base: str
    offset: int


class Instructions:
    """Emits instructions of one function.

    Attributes:
        builder: The text of the function.
        externals: The declarations of the functions that it calls.
        widened_from: By the name of a wider integer, the narrow one that it was widened from.
        narrow_floats: By the name of a float32, the narrow float that it was widened from.
        parts: By the name of a vector, the groups of neighbours that it was taken out of.
        elements: By the name of a narrow integer, where it was loaded from.
        broadcasts: By the name of a scalar, a cheaper way to copy it into a number of lanes.
    """

    def __init__(self, builder: CodeBuilder) -> None:
        self.builder = builder
        self.externals: set[str] = set()
        self._declared: set[str] = set()
        self.widened_from: dict[str, NarrowInteger] = {}
        self.narrow_floats: dict[str, NarrowFloat] = {}
        self.parts: dict[str, GroupPart] = {}
        self.elements: dict[str, LoadedElement] = {}
        self.broadcasts: dict[str, Callable[[int], RegisterValue]] = {}

    def emit_once(self, text: str, level: int, lanes: int = 1) -> RegisterValue:
        """Return the value of an instruction without effect; emit it at `level` if it is new."""
        return RegisterValue(self.builder.emit_once(text, level), level, lanes)

    def binary(self, op: str, scalar: str, a: RegisterValue, b: RegisterValue) -> RegisterValue:
        """Emit an operation on two values; a scalar that meets a vector is copied into lanes."""
        lanes = max(a.lanes, b.lanes)
        a, b = self.broadcast(a, scalar, lanes), self.broadcast(b, scalar, lanes)
        level = max(a.level, b.level)
        text = f"{op} {vector(scalar, lanes)} {a.name}, {b.name}"
        return RegisterValue(self.builder.emit_once(text, level), level, lanes)

    def icmp(
        self, predicate: str, scalar: str, a: RegisterValue, b: RegisterValue
    ) -> RegisterValue:
        """Compare integers."""
        return self.binary(f"icmp {predicate}", scalar, a, b)

    def fcmp(
        self, predicate: str, scalar: str, a: RegisterValue, b: RegisterValue
    ) -> RegisterValue:
        """Compare floats."""
        return self.binary(f"fcmp {predicate}", scalar, a, b)

    def invert(self, condition: RegisterValue) -> RegisterValue:
        """Return the opposite of a condition."""
        return self.binary("xor", "i1", condition, RegisterValue("true", 0))

    def negate(self, scalar: str, a: RegisterValue) -> RegisterValue:
        """Return a float with its sign flipped."""
        return self.emit_once(f"fneg {vector(scalar, a.lanes)} {a.name}", a.level, a.lanes)

    def select(
        self, scalar: str, condition: RegisterValue, then: RegisterValue, otherwise: RegisterValue
    ) -> RegisterValue:
        """Take one of two values, lane by lane."""
        lanes = max(condition.lanes, then.lanes, otherwise.lanes)
        then, otherwise = (
            self.broadcast(then, scalar, lanes),
            self.broadcast(otherwise, scalar, lanes),
        )
        kind, test = vector(scalar, lanes), vector("i1", condition.lanes)
        level = max(condition.level, then.level, otherwise.level)
        text = f"select {test} {condition.name}, {kind} {then.name}, {kind} {otherwise.name}"
        return self.emit_once(text, level, lanes)

    def broadcast(self, a: RegisterValue, scalar: str, lanes: int) -> RegisterValue:
        """Copy a scalar into every lane; a vector of as many lanes stays as it is."""
        if a.lanes == lanes:
            return a
        assert a.lanes == 1, f"{a.lanes} lanes meet {lanes}"
        if not a.name.startswith("%"):
            return RegisterValue(splat(scalar, a.name, lanes), a.level, lanes)
        cheaper = self.broadcasts.get(a.name)
        if cheaper is not None:
            return cheaper(lanes)
        kind = vector(scalar, lanes)
        first = f"insertelement {kind} poison, {scalar} {a.name}, i64 0"
        inserted = self.builder.emit_once(first, a.level)
        text = f"shufflevector {kind} {inserted}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return self.emit_once(text, a.level, lanes)

    def cast(self, op: str, source: str, target: str, value: RegisterValue) -> RegisterValue:
        """Emit a conversion of one LLVM type to another, lane by lane."""
        lanes = value.lanes
        text = f"{op} {vector(source, lanes)} {value.name} to {vector(target, lanes)}"
        result = self.emit_once(text, value.level, lanes)
        if op in ("sext", "zext") and source in ("i8", "i16"):
            self.widened_from[result.name] = NarrowInteger(value, int(source[1:]), op == "sext")
        elif value.name in self.widened_from and target in ("i32", "i64"):
            self.widened_from[result.name] = self.widened_from[value.name]
        return result

    def note_small(self, wide: RegisterValue) -> None:
        """Record that an integer, if it was widened, is from 0 to 127."""
        if wide.name in self.widened_from:
            narrow = self.widened_from[wide.name]
            self.widened_from[wide.name] = replace(narrow, is_small=True)

    def bitcast(self, value: RegisterValue, source: str, target: str, lanes: int) -> RegisterValue:
        """Read the bits of a whole vector of one type as `lanes` lanes of another type."""
        if source == target:
            return value
        return self.emit_once(f"bitcast {source} {value.name} to {target}", value.level, lanes)

    def intrinsic(
        self,
        name: str,
        scalar: str,
        args: tuple[RegisterValue, ...],
        flags: tuple[str, ...] = (),
        fast_math: str = "",
    ) -> RegisterValue:
        """Call an LLVM intrinsic that is overloaded on the type of its operands.

        Args:
            name: Its name, without prefix and suffix.
            scalar: The LLVM type of the lanes.
            args: The operands.
            flags: Constant operands of one bit after them.
            fast_math: LLVM's fast-math flags of the call, each followed by a space.
        """
        lanes = max([a.lanes for a in args])
        kind = vector(scalar, lanes)
        operands = [(kind, self.broadcast(a, scalar, lanes)) for a in args]
        operands += [("i1", RegisterValue(flag, 0, 1)) for flag in flags]
        suffix = type_suffix(scalar, lanes)
        return self.call(kind, f"llvm.{name}.{suffix}", operands, lanes, fast_math)

    def call(
        self,
        kind: str,
        name: str,
        args: Sequence[tuple[str, RegisterValue]],
        lanes: int,
        flags: str = "",
    ) -> RegisterValue:
        """Call a function without effect.

        Args:
            kind: The LLVM type of its result.
            name: Its name, without the `@`.
            args: Its arguments, each after its LLVM type.
            lanes: The lanes of the result.
            flags: LLVM's fast-math flags of the call, each followed by a space.
        """
        if name not in self._declared:
            self._declared.add(name)
            self.externals.add(f"declare {kind} @{name}({', '.join(t for t, _ in args)})")
        level = max([a.level for _, a in args], default=0)
        operands = ", ".join([f"{t} {a.name}" for t, a in args])
        return self.emit_once(f"call {flags}{kind} @{name}({operands})", level, lanes)
