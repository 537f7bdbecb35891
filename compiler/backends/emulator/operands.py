"""Operands: registers, immediate values and addresses, as functions of the active lanes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from compiler.backends.emulator.errors import EmulatorError
from compiler.backends.emulator.types import ALL, Array, Lanes, PtxType, ptx_type, unsigned

Source: TypeAlias = Callable[[Lanes], Any]
"""Returns the values of the active lanes, or a scalar."""

Target: TypeAlias = Callable[[Lanes, Any], None]
"""Sets the values of the active lanes."""

_ADDRESS = re.compile(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+)\s*)?\]")
_SYMBOL_SUM = re.compile(r"([A-Za-z_$][\w$@]*)\s*\+\s*(-?\d+)")


@dataclass(frozen=True, slots=True)
class PtxAddress:
    """The address `[base + offset]`: of a register, or of a name alone."""

    base: str
    offset: int


def parse_address(text: str) -> PtxAddress:
    """Split an operand in brackets."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise EmulatorError(f"the address {text!r} is not understood")
    return PtxAddress(match[1], int(match[2] or "0", 0))


def parse_vector(text: str) -> tuple[str, ...]:
    """Return the operands in braces, or the operand alone."""
    if not text.startswith("{"):
        return (text,)
    return tuple(part.strip() for part in text[1:-1].split(","))


class Operands:
    """The registers of all lanes, and the values of names.

    Attributes:
        registers: By name: unsigned integers of the width of the register; predicates are booleans.
        symbols: The addresses of variables.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        special: Mapping[str, Array],
        symbols: Mapping[str, int],
        num_lanes: int,
    ) -> None:
        self.registers: dict[str, Array] = dict(special)
        self.symbols = dict(symbols)
        for name, type_name in types.items():
            kind = ptx_type(type_name)
            dtype = kind.dtype if type_name == "pred" else unsigned(kind.num_bytes)
            self.registers[name] = np.zeros(num_lanes, dtype)

    def source(self, text: str, kind: PtxType) -> Source:
        """Return the values of an operand as a type."""
        if text in self.registers:
            read: Source = _view(self.registers[text], kind).__getitem__
            return read
        value = self.constant(text, kind)
        return lambda lanes: value

    def target(self, text: str, kind: PtxType) -> Target:
        """Return what writes values of a type to a register; `_` discards them.

        A register that is wider than the type is extended, by the sign of signed types.
        """
        if text == "_":
            return lambda lanes, value: None
        register = self.registers[text]
        if kind.name == "pred" or register.itemsize == kind.num_bytes:
            view = _view(register, kind)
        elif kind.is_float:
            return self._wide_float_target(register, kind)
        else:
            view = register.view(np.dtype(f"{'i' if kind.is_signed else 'u'}{register.itemsize}"))
        write: Target = view.__setitem__
        return write

    def _wide_float_target(self, register: Array, kind: PtxType) -> Target:
        bits = unsigned(kind.num_bytes)

        def write(lanes: Lanes, value: Any) -> None:
            register[lanes] = np.asarray(value, kind.dtype).view(bits)

        return write

    def constant(self, text: str, kind: PtxType) -> Any:
        """Return the value of an immediate operand or of the address of a variable."""
        if text[:2] in ("0f", "0F", "0d", "0D"):
            bits = int(text[2:], 16)
            wide = text[1] in "dD"
            source = np.array(bits, np.uint64 if wide else np.uint32)
            value = source.view(np.float64 if wide else np.float32)
            if kind.is_float:
                return value.astype(kind.dtype)[()]
            return source.astype(kind.dtype)[()]
        return self.bits(self._integer(text), kind)

    @staticmethod
    def bits(value: int, kind: PtxType) -> Any:
        """Return an integer as the bits of a type."""
        if kind.name == "pred":
            return np.bool_(value)
        size = kind.num_bytes
        pattern = np.array([value % (1 << 8 * size)], unsigned(size)).view(kind.dtype)
        return pattern if kind.count > 1 else pattern[0]

    def _integer(self, text: str) -> int:
        if text in self.symbols:
            return self.symbols[text]
        if match := _SYMBOL_SUM.fullmatch(text):
            return self.symbols[match[1]] + int(match[2])
        if text == "WARP_SZ":
            return 32
        try:
            return int(text.rstrip("U"), 0)
        except ValueError:
            raise EmulatorError(f"the operand {text!r} is not understood") from None

    def address(self, text: str) -> Source:
        """Return the addresses of an operand in brackets, as int64."""
        parsed = parse_address(text)
        offset = parsed.offset
        if parsed.base not in self.registers:
            value = np.int64(self._integer(parsed.base) + offset)
            return lambda lanes: value
        register = self.registers[parsed.base]
        if register.itemsize < 8:
            return lambda lanes: register[lanes].astype(np.int64) + offset
        view = register.view(np.int64)
        return (lambda lanes: view[lanes] + offset) if offset else view.__getitem__


def _view(register: Array, kind: PtxType) -> Array:
    """View a register as a type: of its low bytes if the register is wider."""
    if kind.name == "pred":
        return register
    size = kind.num_bytes
    if register.dtype == np.bool_ or register.itemsize < size:
        raise EmulatorError(f"a register of {register.dtype} is used as {kind.name}")
    view = register.view(kind.dtype)
    if kind.count > 1 or register.itemsize > size:
        view = view.reshape(len(register), -1)
        view = view[:, : kind.count] if kind.count > 1 else view[:, 0]
    return view


def everywhere(lanes: Lanes) -> bool:
    """Return whether all lanes are active."""
    return lanes is ALL
