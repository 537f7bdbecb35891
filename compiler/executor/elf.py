"""Link a relocatable object: place its sections, and resolve what they refer to.

This is the part of a linker that the objects of kernels and models require. They are position
independent, have no constructors and no thread-local variables, and call few functions of the C
library.

The image is three parts, each of whole pages: code, constants, variables. Behind the code is one
stub for each external function.

Records are named tuples: a process that loads one kernel would take longer to make their classes
as dataclasses than to link it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .error import PackageError
from .relocations import MACHINES, Patch

PAGE_BYTES = 1 << 16  # the largest page of Linux on AArch64
_STUB_ALIGNMENT = 16
_SYMBOL_TABLE, _RELOCATIONS, _NO_BITS, _REL = 2, 4, 8, 9  # sh_type
_WRITE, _ALLOCATE, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400  # sh_flags
_UNDEFINED = 0  # st_shndx
_LOCAL = 0  # the binding in st_info
# Tables for unwinding the stack, which nothing here does.
_UNUSED = (".eh_frame", ".ARM.exidx", ".ARM.extab")
# More than any model has; a guard against sizes that only a damaged file states.
_LIMIT_BYTES = 64 << 20

# Python raises these for numbers that are no offsets in the file.
_MALFORMED = (struct.error, LookupError, OverflowError, ValueError)


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int


class _Symbol(NamedTuple):
    name: str
    is_global: bool
    section: int
    value: int


class Image(NamedTuple):
    """A linked object.

    Attributes:
        content: The bytes to place at the base address.
        code_bytes, constant_bytes: The sizes of the first two parts, in whole pages.
        addresses: The addresses of the functions that it exports, by name.
    """

    content: bytes
    code_bytes: int
    constant_bytes: int
    addresses: dict[str, int]


class _ImageLayout(NamedTuple):
    """The forms of a file's tables, for `struct`, with names in the order of ELF's manual.

    Attributes:
        tables: Of the header: the offset of the section table, the size and the number of its
            rows, the number of the section with the names.
        section: Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
        symbol: Name, value, info, section; in another order for 64 bits.
        relocation: Offset, info, and for 64 bits the addend.
        symbol_bits: The lower bits of the info, which are the number of the relocation.
    """

    tables: str
    section: str
    symbol: str
    relocation: str
    symbol_bits: int


_LAYOUTS = {
    b"\x7fELF\x01\x01": _ImageLayout("<32xI10xHHH", "<10I", "<II4xBxH", "<II", 8),
    b"\x7fELF\x02\x01": _ImageLayout("<40xQ10xHHH", "<IIQQQQIIQQ", "<IBxHQ8x", "<QQq", 32),
}


class ObjectFile:
    """A relocatable object.

    Attributes:
        arch: The architecture by Linux's name.
            size_bytes: The size of the image.

    Raises:
        PackageError: If it is none, or needs more than this linker offers.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._parse(bytes(content))
        except PackageError:
            raise
        except _MALFORMED as error:
            raise PackageError(f"malformed object code: {error}") from error

    def _parse(self, content: bytes) -> None:
        magic, kind, machine = struct.unpack_from("<6s10xHH", content)
        if magic not in _LAYOUTS or kind != 1 or machine not in MACHINES:
            raise PackageError("the object code is no relocatable ELF file of a known architecture")
        self._machine = MACHINES[machine]
        self._layout = _LAYOUTS[magic]
        self.arch = self._machine.arch
        self._content = content
        self._sections = self._read_sections()
        self._symbols = self._read_symbols()
        self._places, self._ends = self._place_sections()
        self.externals = tuple(dict.fromkeys(self._called()))
        stub_bytes = self._machine.stub_bytes
        self._stubs = {n: self._ends[0] + stub_bytes * i for i, n in enumerate(self.externals)}
        self._code_bytes = _up(self._ends[0] + stub_bytes * len(self.externals), PAGE_BYTES)
        self._constant_bytes = _up(self._ends[1], PAGE_BYTES)
        self.size_bytes = self._code_bytes + self._constant_bytes + _up(self._ends[2], PAGE_BYTES)
        if self.size_bytes > _LIMIT_BYTES:
            raise PackageError(f"the object code has {self.size_bytes} bytes")

    def _read_sections(self) -> list[_Section]:
        form = self._layout.section
        start, size, count, names = struct.unpack_from(self._layout.tables, self._content)
        rows = [struct.unpack_from(form, self._content, start + size * i) for i in range(count)]
        strings = rows[names][4] if rows else 0
        sections = []
        for name, kind, flags, _, at, length, link, info, alignment, _ in rows:
            if flags & _THREAD_LOCAL:
                raise PackageError("the object code has thread-local variables")
            if kind != _NO_BITS and at + length > len(self._content):
                raise PackageError("the object code is cut off")
            text = self._text(strings + name)
            sections.append(_Section(text, kind, flags, at, length, link, info, alignment or 1))
        return sections

    def _read_symbols(self) -> list[_Symbol]:
        form, is_wide = self._layout.symbol, self._layout.symbol_bits == 32
        symbols = []
        for table in self._sections:
            if table.kind == _SYMBOL_TABLE:
                strings = self._sections[table.link].start
                end = table.start + table.size
                for at in range(table.start, end, struct.calcsize(form)):
                    row = struct.unpack_from(form, self._content, at)
                    name, info, section, value = (
                        row if is_wide else (row[0], row[2], row[3], row[1])
                    )
                    text = self._text(strings + name)
                    symbols.append(_Symbol(text, info >> 4 != _LOCAL, section, value))
        return symbols

    def _called(self) -> Iterator[str]:
        """Yield the names of the external functions that placed sections refer to."""
        for table in self._sections:
            for _, _, number, _ in self._relocations(table):
                symbol = self._symbols[number]
                if symbol.section == _UNDEFINED and symbol.name:
                    yield symbol.name

    def _relocations(self, table: _Section) -> list[tuple[int, int, int, int]]:
        """Return the offset, the kind, the symbol and the addend of each relocation of a table.

        It is empty for a table of something else, or of a section that is not placed.
        """
        if table.kind not in (_RELOCATIONS, _REL) or table.info not in self._places:
            return []
        form, bits = self._layout.relocation, self._layout.symbol_bits
        rows = []
        for at in range(table.start, table.start + table.size, struct.calcsize(form)):
            offset, info, *addend = struct.unpack_from(form, self._content, at)
            rows.append((offset, info & ((1 << bits) - 1), info >> bits, sum(addend)))
        return sorted(rows, key=lambda row: self._machine.is_late(row[1]))

    def _text(self, start: int) -> str:
        return self._content[start : self._content.index(b"\0", start)].decode()

    def _place_sections(self) -> tuple[dict[int, tuple[int, int]], list[int]]:
        """Return the part and the offset of each section in it, and the sizes of the parts."""
        places, ends = {}, [0, 0, 0]
        for number, section in enumerate(self._sections):
            if not section.flags & _ALLOCATE or section.name.startswith(_UNUSED):
                continue
            part = 0 if section.flags & _EXECUTE else 2 if section.flags & _WRITE else 1
            start = _up(ends[part], section.alignment)
            places[number] = (part, start)
            ends[part] = start + section.size
        ends[0] = _up(ends[0], _STUB_ALIGNMENT)
        return places, ends

    def link(self, base: int, resolve: Callable[[str], int]) -> Image:
        """Return the image for a base address, a multiple of `PAGE_BYTES`.

        Args:
            base: The address that it will run at.
            resolve: Returns the address of an external function.

        Raises:
            PackageError: If a relocation is not supported.
        """
        content = bytearray(self.size_bytes)
        offsets = {number: self._offset(number) for number in self._places}
        for number, offset in offsets.items():
            section = self._sections[number]
            if section.kind != _NO_BITS:
                data = self._content[section.start : section.start + section.size]
                content[offset : offset + len(data)] = data
        for name, offset in self._stubs.items():
            stub = self._machine.stub(resolve(name))
            content[offset : offset + len(stub)] = stub
        try:
            for table in self._sections:
                self._relocate(content, table, offsets, base)
        except PackageError:
            raise
        except _MALFORMED as error:
            raise PackageError(f"malformed relocations: {error}") from error
        exported = [s for s in self._symbols if s.is_global and s.section in offsets]
        addresses = {s.name: base + offsets[s.section] + s.value for s in exported}
        return Image(bytes(content), self._code_bytes, self._constant_bytes, addresses)

    def _offset(self, number: int) -> int:
        part, start = self._places[number]
        return (0, self._code_bytes, self._code_bytes + self._constant_bytes)[part] + start

    def _relocate(
        self, content: bytearray, table: _Section, offsets: dict[int, int], base: int
    ) -> None:
        distances: dict[int, int] = {}
        for position, kind, number, addend in self._relocations(table):
            symbol = self._symbols[number]
            slot = 0
            if symbol.section == _UNDEFINED:
                target = base + self._stubs[symbol.name]
                slot = target + len(self._machine.jump) + addend
            elif symbol.section in offsets:
                target = base + offsets[symbol.section] + symbol.value
            else:
                raise PackageError(f"the object code refers to {symbol.name!r}, which is not in it")
            offset = offsets[table.info] + position
            at = base + offset
            self._machine.patch(Patch(content, offset, at, target + addend, slot, distances), kind)


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
